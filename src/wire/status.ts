import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { ruleId, withReason } from "../error-reasons.ts";

/** HTTP status by gRPC code. */
const statuses = [200, 499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401];

/** The HTTP status of a gRPC code, where neither the RPC nor the error says another. */
export function httpStatus(code: number): number {
  return statuses[code] ?? 500;
}

const fixedStatus = new WeakMap<object, number>();

/** An error whose HTTP status no option of an RPC changes, such as 413 and 415. */
export function refusalOf(code: Code, status: number, message: string, reason?: ErrorReason): ConnectError {
  const byStatus = status === 413 ? ErrorReason.REQUEST_TOO_LARGE : undefined;
  const error = withReason(new ConnectError(message, code), reason ?? byStatus);
  fixedStatus.set(error, status);
  return error;
}

/** Code 8, 413: a message, or what it unpacks to, has more bytes than it may. */
export function messageTooLarge(bytesMax: number): ConnectError {
  return refusalOf(Code.ResourceExhausted, 413, `the message is larger than ${bytesMax} bytes`);
}

/** Code 8, 413: a client stream has more bytes than it may, in all. */
export function streamTooLarge(bytesMax: number): ConnectError {
  return refusalOf(Code.ResourceExhausted, 413, `a stream may have at most ${bytesMax} bytes`);
}

/** Code 3 about one field; `path` is its JSON path, `rule` reads on after it. `note` ends the message alone. */
export function invalidValue(path: string, rule: string, note = ""): ConnectError {
  return new ConnectError(`${path === "" ? rule : `${path}: ${rule}`}${note}`, Code.InvalidArgument, undefined, [
    {
      desc: BadRequestSchema,
      value: { fieldViolations: [{ field: path, description: rule, reason: ruleId(FieldRule.MALFORMED) }] },
    },
  ]);
}

/** Any thrown value as a ConnectError; an unexpected one becomes code 13 without a word of it, and is `reported`. */
export function asConnectError(thrown: unknown, report: (error: unknown) => void): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  if (thrown instanceof Error && thrown.name === "AbortError") return new ConnectError("cancelled", Code.Canceled);
  report(thrown);
  return new ConnectError("internal error", Code.Internal);
}

/** The HTTP status of an error of an RPC. */
export function errorStatus(error: ConnectError, overrides: ReadonlyMap<number, number>): number {
  return fixedStatus.get(error) ?? overrides.get(error.code) ?? httpStatus(error.code);
}

/** The code that most likely stands behind an HTTP status, for the log of answers that no RPC function has given. */
export function codeOfStatus(status: number): number {
  if (status < 400) return 0;
  if (status === 413) return 8;
  if (status === 405) return 12;
  for (let code = 3; code <= 16; code += 1) if (httpStatus(code) === status) return code;
  return status < 500 ? 3 : 2;
}
