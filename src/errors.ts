import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { BadRequestSchema, ResourceInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { moreMistakes, ruleId, type Violation, withReason } from "./error-reasons.ts";

const listedMax = 100;
const namedMax = 10; // in the message
// What a request may make as long as it likes is cut: gRPC carries an error in headers.
const pathCharsMax = 200;
const lonePathCharsMax = 1000; // a clause may lie 32 deep
const textCharsMax = 512;

function brief(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax).toWellFormed()}…`;
}

/** A rule that a field breaks: its JSON path, what reads on after it ("must be …"), and the rule's id for programs. */
export interface BrokenRule {
  path: string;
  rule: string;
  /** A rule, or its name; absent: FIELD_RULE_VALUE. */
  id?: FieldRule | string;
}

/** Code 3: a value of the request breaks a rule. `path` is the field's JSON path, `rule` reads on after it ("must be …"). */
export function invalidField(path: string, rule: string, broken: FieldRule = FieldRule.VALUE): ConnectError {
  return invalidFields([{ path, rule, id: broken }]);
}

/**
 * Code 3 for several fields at once. The details list the first hundred, the message the first ten, and both say how many
 * more there are. `count`: of all, when `broken` holds the first ones alone.
 */
export function invalidFields(broken: readonly BrokenRule[], count = broken.length): ConnectError {
  const pathMax = count === 1 ? lonePathCharsMax : pathCharsMax;
  const violations = broken.slice(0, Math.max(listedMax, namedMax + 1)).map(({ path, rule, id = FieldRule.VALUE }) => ({
    field: brief(path, pathMax),
    description: brief(rule, textCharsMax),
    reason: typeof id === "string" ? id : ruleId(id),
  }));
  const message = listed(violations, count, namedMax)
    .map(({ field, description }) => `${field || "request"}: ${description}`)
    .join("; ");
  return new ConnectError(message, Code.InvalidArgument, undefined, [
    { desc: BadRequestSchema, value: { fieldViolations: listed(violations, count, listedMax) } },
  ]);
}

/** The first `most` of all, and how many more there are. */
function listed(violations: readonly Violation[], count: number, most: number): Violation[] {
  // One more is no more than the line that would stand for it.
  if (count <= most + 1 && violations.length === count) return [...violations];
  const first = violations.slice(0, most);
  return [...first, moreMistakes(count - first.length)];
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
  const message = `${kind} ${shown(name)} is used by ${brief(by, textCharsMax)}`;
  return withReason(aboutResource(message, Code.FailedPrecondition, kind, name), ErrorReason.RESOURCE_IN_USE);
}

/** Code 7: the key is good, but its client may not do this. */
export function permissionDenied(message: string): ConnectError {
  return new ConnectError(message, Code.PermissionDenied);
}

/** Code 16: no key, or one that is not (or no longer) valid. */
export function unauthenticated(message: string, reason: ErrorReason = ErrorReason.UNAUTHENTICATED): ConnectError {
  return withReason(new ConnectError(message, Code.Unauthenticated), reason);
}

/** Code 8: a bound of the server is reached. With `retryAfterSec` the same call may succeed later; the header says whole seconds. */
export function exhausted(message: string, retryAfterSec?: number, reason?: ErrorReason): ConnectError {
  if (retryAfterSec === undefined) return withReason(new ConnectError(message, Code.ResourceExhausted), reason);
  const delayMs = Math.round(retryAfterSec * 1000);
  const headers = { "retry-after": String(Math.ceil(delayMs / 1000)) };
  const details = [{ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: durationFromMs(delayMs) }) }];
  return withReason(new ConnectError(message, Code.ResourceExhausted, headers, details), reason);
}

/** Code 14: the database is away or the server is stopping; send again. */
export function unavailable(message: string, reason: ErrorReason = ErrorReason.UNAVAILABLE): ConnectError {
  const details = [{ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: durationFromMs(1000) }) }];
  return withReason(new ConnectError(message, Code.Unavailable, { "retry-after": "1" }, details), reason);
}

/** Code 9: the request conflicts with the state of things. */
export function failedPrecondition(message: string, reason: ErrorReason = ErrorReason.WRONG_STATE): ConnectError {
  return withReason(new ConnectError(message, Code.FailedPrecondition), reason);
}

/** Code 10: the resource is no longer what the sender of a change has read. The details hold what it is now. */
export function changedMeanwhile<S extends DescMessage>(
  kind: string,
  name: string,
  schema: S,
  current: MessageShape<S>,
): ConnectError {
  const message = `the ${kind} ${shown(name)} has been changed since it was read; read it again, then change it`;
  const error = new ConnectError(message, Code.Aborted, undefined, [
    {
      desc: ResourceInfoSchema,
      value: create(ResourceInfoSchema, { resourceType: kind, resourceName: brief(name, textCharsMax) }),
    },
    { desc: schema, value: current as MessageInitShape<S> },
  ]);
  return withReason(error, ErrorReason.RESOURCE_CHANGED);
}

/** Code 12: the request asks for what this service (or this operation) does not do. */
export function unsupported(what: string): ConnectError {
  return new ConnectError(what, Code.Unimplemented);
}
