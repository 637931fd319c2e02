import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { RequestRecord } from "../rpc/context.ts";
import type { Response } from "./answer.ts";
import { codeOfStatus } from "./status.ts";

/** Writes what a protocol handler answered. Notes the code in the record when no RPC function has done so (what could not be decoded). */
export async function writeAnswer(
  response: Response,
  answer: UniversalServerResponse,
  record: RequestRecord | undefined,
  signal: AbortSignal,
): Promise<void> {
  const target = response as ServerResponse; // HTTP/2's compatibility response has the same methods
  const chunks = answer.body?.[Symbol.asyncIterator]();
  try {
    // The head follows the first chunk, because handlers may set headers until then.
    let chunk = await chunks?.next();
    if (signal.aborted || target.destroyed) return;
    target.writeHead(answer.status, nodeHeaders(answer.header));
    let last: Uint8Array | undefined;
    while (chunk !== undefined && !chunk.done) {
      last = chunk.value;
      if (!target.write(chunk.value)) await Promise.race([once(target, "drain"), once(target, "close")]);
      if (target.destroyed) return;
      chunk = await chunks?.next();
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
