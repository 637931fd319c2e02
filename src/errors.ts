import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ResourceInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";

const listedMax = 100;
const namedMax = 10; // in the message
// What a request may make as long as it likes is cut: gRPC carries an error in headers.
const pathCharsMax = 200;
const lonePathCharsMax = 1000; // a clause may lie 32 deep
const textCharsMax = 512;

function brief(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax).toWellFormed()}…`;
}

/** Code 3: a value of the request breaks a rule. `path` is the field's JSON path, `rule` reads on after it ("must be …"). */
export function invalidField(path: string, rule: string): ConnectError {
  return invalidFields([{ path, rule }]);
}

/**
 * Code 3 for several fields at once. The details list the first hundred, the message the first ten, and both say how many
 * more there are. `count`: of all, when `broken` holds the first ones alone.
 */
export function invalidFields(broken: readonly { path: string; rule: string }[], count = broken.length): ConnectError {
  const pathMax = count === 1 ? lonePathCharsMax : pathCharsMax;
  const violations = broken.slice(0, Math.max(listedMax, namedMax + 1)).map(({ path, rule }) => ({
    field: brief(path, pathMax),
    description: brief(rule, textCharsMax),
  }));
  const message = listed(violations, count, namedMax)
    .map(({ field, description }) => `${field || "request"}: ${description}`)
    .join("; ");
  return new ConnectError(message, Code.InvalidArgument, undefined, [
    { desc: BadRequestSchema, value: { fieldViolations: listed(violations, count, listedMax) } },
  ]);
}

interface Violation {
  field: string;
  description: string;
}

/** The first `most` of all, and how many more there are. */
function listed(violations: readonly Violation[], count: number, most: number): Violation[] {
  // One more is no more than the line that would stand for it.
  if (count <= most + 1 && violations.length === count) return [...violations];
  const first = violations.slice(0, most);
  return [...first, { field: "", description: `has ${count - first.length} more mistakes` }];
}

function aboutResource(message: string, code: Code, kind: string, name: string): ConnectError {
  return new ConnectError(message, code, undefined, [
    {
      desc: ResourceInfoSchema,
      value: create(ResourceInfoSchema, { resourceType: kind, resourceName: brief(name, textCharsMax) }),
    },
  ]);
}

const shown = (name: string) => JSON.stringify(brief(name, textCharsMax));

/** Code 5: there is no `kind` of this name or id in the caller's tenant. */
export function notFound(kind: string, name: string): ConnectError {
  return aboutResource(`no ${kind} found for ${shown(name)}`, Code.NotFound, kind, name);
}

/** Code 6: the name is taken. */
export function alreadyExists(kind: string, name: string): ConnectError {
  return aboutResource(`a ${kind} named ${shown(name)} exists already`, Code.AlreadyExists, kind, name);
}

/** Code 9: something else still refers to it; `by` says what. */
export function inUse(kind: string, name: string, by: string): ConnectError {
  return aboutResource(
    `${kind} ${shown(name)} is used by ${brief(by, textCharsMax)}`,
    Code.FailedPrecondition,
    kind,
    name,
  );
}

/** Code 7: the key is good, but its client may not do this. */
export function permissionDenied(reason: string): ConnectError {
  return new ConnectError(reason, Code.PermissionDenied);
}

/** Code 16: no key, or one that is not (or no longer) valid. */
export function unauthenticated(reason: string): ConnectError {
  return new ConnectError(reason, Code.Unauthenticated);
}

/** Code 8: a bound of the server is reached. With `retryAfterSec` the same call may succeed later; the header says whole seconds. */
export function exhausted(reason: string, retryAfterSec?: number): ConnectError {
  if (retryAfterSec === undefined) return new ConnectError(reason, Code.ResourceExhausted);
  const delayMs = Math.round(retryAfterSec * 1000);
  return new ConnectError(reason, Code.ResourceExhausted, { "retry-after": String(Math.ceil(delayMs / 1000)) }, [
    { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: durationFromMs(delayMs) }) },
  ]);
}

/** Code 14: the database is away or the server is stopping; send again. */
export function unavailable(reason: string): ConnectError {
  return new ConnectError(reason, Code.Unavailable, { "retry-after": "1" }, [
    { desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: durationFromMs(1000) }) },
  ]);
}

/** Code 9: the request conflicts with the state of things. */
export function failedPrecondition(reason: string): ConnectError {
  return new ConnectError(reason, Code.FailedPrecondition);
}

/** Code 10: the resource is no longer what the sender of a change has read. The details hold what it is now. */
export function changedMeanwhile<S extends DescMessage>(
  kind: string,
  name: string,
  schema: S,
  current: MessageShape<S>,
): ConnectError {
  const message = `the ${kind} ${shown(name)} has been changed since it was read; read it again, then change it`;
  return new ConnectError(message, Code.Aborted, undefined, [
    {
      desc: ResourceInfoSchema,
      value: create(ResourceInfoSchema, { resourceType: kind, resourceName: brief(name, textCharsMax) }),
    },
    { desc: schema, value: current as MessageInitShape<S> },
  ]);
}

/** Code 12: the request asks for what this service (or this operation) does not do. */
export function unsupported(what: string): ConnectError {
  return new ConnectError(what, Code.Unimplemented);
}
