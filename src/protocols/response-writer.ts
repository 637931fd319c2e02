import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { recordOf } from "../rpc/context.ts";
import type { Request } from "../wire/body-reader.ts";
import { endResponse, type Response, writePieces, writeResponseHead } from "../wire/send-response.ts";
import { codeOfStatus } from "./status.ts";

/** Writes what a protocol handler answered. Notes the code in the record when no RPC function has done so. */
export async function writeAnswer(
  request: Request,
  response: Response,
  answer: UniversalServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const record = recordOf(request);
  const chunks = answer.body?.[Symbol.asyncIterator]();
  let last: Uint8Array | undefined;
  async function next() {
    const step = await chunks?.next();
    const chunk = step?.done === false ? step.value : undefined;
    last = chunk ?? last;
    return chunk;
  }
  try {
    // The head follows the first chunk, because handlers may set headers until then.
    const first = await next();
    if (signal.aborted || response.destroyed) return;
    writeResponseHead(response, answer.status, Object.fromEntries(answer.header ?? []));
    if (!(await writePieces(response, first, next))) return;
    if (record !== undefined) record.code ??= codeOf(answer, last);
    endResponse(response, undefined, answer.trailer && Object.fromEntries(answer.trailer));
  } finally {
    chunks?.return?.().catch(() => {});
  }
}

/** gRPC has its code in trailers, gRPC-Web in a last frame, Connect in the HTTP status. */
function codeOf(answer: UniversalServerResponse, last: Uint8Array | undefined) {
  const status = answer.trailer?.get("grpc-status");
  if (status) return Number(status);
  if (last !== undefined && last[0] === 0x80) {
    const found = /grpc-status: *(\d+)/i.exec(Buffer.from(last).toString("latin1"));
    if (found) return Number(found[1]);
  }
  return codeOfStatus(answer.status);
}
