import type { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import type { RequestRecord } from "./context.ts";
import { toAnswer } from "./errors.ts";
import { logUnexpected } from "./log.ts";

/** What a call that failed returns: the code is noted in its record, and the log has the cause of what is unexpected. */
export function failedCall(log: Logger, error: unknown, record: RequestRecord, signal?: AbortSignal): ConnectError {
  const { answer, unexpected } = toAnswer(error, record.requestId, signal);
  record.code = answer.code;
  if (unexpected) logUnexpected(log, record, error);
  return answer;
}
