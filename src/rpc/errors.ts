import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { BadRequestSchema } from "#gen/google/rpc/error_details_pb.ts";
import { tooManyComparisons, tooManySteps, undecided } from "../clause/expression.ts";
import { causes, isConnectionLost } from "../db/driver/connection-errors.ts";
import { moreMistakes, type Violation } from "../error-reasons.ts";
import { invalidFields, unavailable } from "../errors.ts";

/** Code 1: the caller has left. */
export function canceled(): ConnectError {
  return new ConnectError("the call was cancelled", Code.Canceled);
}

/** Code 4: it took longer than the caller, or the server, allows. */
export function deadlineExceeded(reason: string): ConnectError {
  return new ConnectError(reason, Code.DeadlineExceeded);
}

/** A unary call has one message; this one has none, or more. The code is the protocol's. */
export function notOneMessage(found: string): ConnectError {
  return new ConnectError(`the request holds ${found}; a unary call has one`, Code.Unimplemented);
}

/** Code 3: the request ends before its message does. */
export function brokenMessage(): ConnectError {
  return new ConnectError("the request ends within its message", Code.InvalidArgument);
}

/** Code 13, without a word of the cause. */
export function internalError(): ConnectError {
  return new ConnectError("internal error", Code.Internal);
}

/** The same error with words that can be written in UTF-8: what quotes a request may hold half of a character. */
export function writable(error: ConnectError): ConnectError {
  if (error.rawMessage.isWellFormed()) return error;
  const told = new ConnectError(error.rawMessage.toWellFormed(), error.code, error.metadata);
  told.details = error.details;
  return told;
}

/** The violations that an error lists, and how many there are of them in all. */
function violationsOf(error: ConnectError): { violations: Violation[]; count: number } {
  const all = error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
  const [, more] = /^has (\d+) more mistakes$/.exec(all.at(-1)?.description ?? "") ?? [];
  if (more === undefined || all.at(-1)?.field !== "") return { violations: all, count: all.length };
  return { violations: all.slice(0, -1), count: all.length - 1 + Number(more) };
}

// gRPC carries an error in headers, of which many clients take 8 KiB.
const headerListedMax = 10;

/** The same error with no more details than headers hold. */
export function briefError(error: ConnectError): ConnectError {
  if (error.code !== Code.InvalidArgument || error.details.length !== 1) return error;
  const { violations, count } = violationsOf(error);
  if (violations.length <= headerListedMax + 1) return error;
  const first = violations.slice(0, headerListedMax);
  const rest = moreMistakes(count - headerListedMax);
  return new ConnectError(error.rawMessage, error.code, error.metadata, [
    { desc: BadRequestSchema, value: { fieldViolations: [...first, rest] } },
  ]);
}

/** The same error with paths as they are in the JSON body: without `field`, whose value the body is. */
export function pathsWithin(field: string, error: ConnectError): ConnectError {
  if (error.code !== Code.InvalidArgument || error.details.length === 0) return error;
  const { violations, count } = violationsOf(error);
  if (!violations.some(({ field: path }) => path.startsWith(`${field}.`))) return error;
  return invalidFields(
    violations.map(({ field: path, description, reason }) => ({
      path: path.startsWith(`${field}.`) ? path.slice(field.length + 1) : path,
      rule: description,
      id: reason,
    })),
    count,
  );
}

/** Why a signal of a call aborted, as the error to answer: 4 after the deadline, 14 when the server stops, 1 when the caller has left. */
export function abortError(signal: AbortSignal): ConnectError {
  const { reason } = signal;
  const code = reason instanceof ConnectError ? reason.code : undefined;
  if (code === Code.Unavailable) return reason;
  // Connect's plugin has words of its own.
  if (code === Code.DeadlineExceeded || (reason instanceof Error && reason.name === "TimeoutError"))
    return deadlineExceeded("the deadline has passed");
  return canceled();
}

/** What PostgreSQL refuses for want of room or connections, or to end an idle transaction: it may take the same later. */
const overloaded = /^(53...|57P05|25P03)$/;

/** Tells a statement that compares with regular expressions by the operator, as `toSql` writes it. */
const isComparing = (error: unknown) =>
  causes(error).some((each) => "query" in each && String(each.query).includes('collate "C" ~ '));

function stateOf(error: unknown): string | undefined {
  for (const at of causes(error)) if ("code" in at && typeof at.code === "string") return at.code;
  return undefined;
}

/**
 * The single exit of errors: what handlers threw by intent passes, what the database or the caller's going away caused
 * gets its code, everything else becomes code 13 without internals. `unexpected` says that the log needs the cause.
 */
export function toAnswer(
  error: unknown,
  requestId: string,
  signal?: AbortSignal,
): { answer: ConnectError; unexpected: boolean } {
  if (signal?.aborted && (error === signal.reason || stateOf(error) === "57014"))
    return { answer: abortError(signal), unexpected: false };
  if (error instanceof ConnectError)
    return { answer: error, unexpected: error.code === Code.Internal || error.code === Code.Unknown };
  const state = stateOf(error);
  if (state === "23505")
    return { answer: new ConnectError("it exists already", Code.AlreadyExists), unexpected: false };
  if (state === "40001" || state === "40P01" || state === "55P03") {
    return {
      answer: new ConnectError("it collided with another change; send it again", Code.Aborted),
      unexpected: false,
    };
  }
  if (state === "57014" && isComparing(error)) return { answer: tooManyComparisons(), unexpected: false };
  if (state === "57014")
    return { answer: deadlineExceeded("a statement took longer than the server allows"), unexpected: false };
  if (state?.startsWith("54")) {
    const rule = "holds more values, or longer ones, than one statement takes: send fewer";
    return { answer: invalidFields([{ path: "", rule }]), unexpected: false };
  }
  if (state === "22P02" && causes(error).some((each) => (each as Error).message.includes(tooManySteps)))
    return { answer: undecided(""), unexpected: false };
  // What PostgreSQL gives up of the expressions that are let through; none is known.
  if (state === "2201B")
    return { answer: invalidFields([{ path: "", rule: "a regular expression is too complex" }]), unexpected: false };
  if (causes(error).some(isConnectionLost) || (state !== undefined && overloaded.test(state)))
    return {
      answer: unavailable(
        "the database cannot be reached at the moment; send the request again",
        ErrorReason.DATABASE_UNAVAILABLE,
      ),
      unexpected: false,
    };
  return {
    answer: new ConnectError(`internal error; the log has its cause under request id ${requestId}`, Code.Internal),
    unexpected: true,
  };
}
