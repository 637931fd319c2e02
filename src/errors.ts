import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ResourceInfoSchema, RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";

// gRPC carries an error in headers, of which many clients take 8 KiB: what a request may make as long as it likes is cut.
const listedMax = 10;
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

/** Code 3 for several fields at once; the message lists the first ten, and says how many more there are. */
export function invalidFields(broken: readonly { path: string; rule: string }[]): ConnectError {
  // One more is no more than the line that would stand for it.
  const all = broken.length <= listedMax + 1;
  const pathMax = broken.length === 1 ? lonePathCharsMax : pathCharsMax;
  const violations = (all ? broken : broken.slice(0, listedMax)).map(({ path, rule }) => ({
    path: brief(path, pathMax),
    rule: brief(rule, textCharsMax),
  }));
  if (!all) violations.push({ path: "", rule: `has ${broken.length - listedMax} more mistakes` });
  const message = violations.map(({ path, rule }) => `${path || "request"}: ${rule}`).join("; ");
  return new ConnectError(message, Code.InvalidArgument, undefined, [
    {
      desc: BadRequestSchema,
      value: { fieldViolations: violations.map(({ path, rule }) => ({ field: path, description: rule })) },
    },
  ]);
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
  return new ConnectError(reason, Code.ResourceExhausted, { "retry-after": String(Math.ceil(retryAfterSec)) }, [
    {
      desc: RetryInfoSchema,
      value: create(RetryInfoSchema, { retryDelay: durationFromMs(Math.round(retryAfterSec * 1000)) }),
    },
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

/** Code 12: the request asks for what this service (or this operation) does not do. */
export function unsupported(what: string): ConnectError {
  return new ConnectError(what, Code.Unimplemented);
}
