import { Code, type ConnectError } from "@connectrpc/connect";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { unavailable } from "../errors.ts";

const passing: ReadonlySet<Code> = new Set([Code.Aborted, Code.Internal, Code.Unknown, Code.DataLoss]);

/**
 * An error that the same request may not meet again as code 14, which is 503 over HTTP, with RetryInfo and `Retry-After`: of other
 * refusals senders drop their data. All else as it is.
 */
export function sentAgain(error: ConnectError): ConnectError {
  // What is too large has this code, too, and does not say when to come again.
  const full = error.code === Code.ResourceExhausted && error.findDetails(RetryInfoSchema).length > 0;
  if (!full && !passing.has(error.code)) return error;
  const again = unavailable(error.rawMessage);
  const after = error.metadata.get("retry-after");
  if (after !== null) again.metadata.set("retry-after", after);
  if (error.findDetails(RetryInfoSchema).length > 0) again.details = error.details;
  return again;
}
