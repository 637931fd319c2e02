import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { recordOf } from "../rpc/context.ts";
import type { Request } from "../wire/body-reader.ts";
import { drained, type Response } from "../wire/send-response.ts";
import { codeOfStatus } from "./status.ts";

/** Writes what a protocol handler answered. Notes the code in the record when no RPC function has done so. */
export async function writeAnswer(
  request: Request,
  response: Response,
  answer: UniversalServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const record = recordOf(request);
  const target = response as ServerResponse; // HTTP/2's compatibility response has the same methods
  const chunks = answer.body?.[Symbol.asyncIterator]();
  try {
    // The head follows the first chunk, because handlers may set headers until then.
    let chunk = await chunks?.next();
    let bytes = chunk?.done === false ? chunk.value : undefined;
    if (signal.aborted || target.destroyed) return;
    target.writeHead(answer.status, nodeHeaders(answer.header));
    let last: Uint8Array | undefined;
    while (bytes !== undefined) {
      last = bytes;
      if (!target.write(bytes)) await drained(response);
      if (target.destroyed) return;
      chunk = await chunks?.next();
      bytes = chunk?.done === false ? chunk.value : undefined;
    }
    if (record !== undefined) record.code ??= codeOf(answer, last);
    if (answer.trailer !== undefined) target.addTrailers(nodeHeaders(answer.trailer) as NodeJS.Dict<string>);
    target.end();
  } finally {
    chunks?.return?.().catch(() => {});
  }
}

function nodeHeaders(headers: Headers | undefined): OutgoingHttpHeaders {
  const plain: OutgoingHttpHeaders = {};
  headers?.forEach((value, name) => {
    plain[name] = value;
  });
  return plain;
}

/** gRPC tells its code in trailers, gRPC-Web in a last frame, Connect in the HTTP status. */
function codeOf(answer: UniversalServerResponse, last: Uint8Array | undefined) {
  const status = answer.trailer?.get("grpc-status");
  if (status) return Number(status);
  if (last !== undefined && last[0] === 0x80) {
    const found = /grpc-status: *(\d+)/i.exec(Buffer.from(last).toString("latin1"));
    if (found) return Number(found[1]);
  }
  return codeOfStatus(answer.status);
}
