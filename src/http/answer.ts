import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";
import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import type { Request } from "../wire/pieces.ts";

/** A response as Node gives it, over HTTP/1.1 or HTTP/2. */
export type Response = ServerResponse | Http2ServerResponse;

/** Serves an RPC at one path. The answer is written when the promise resolves; it rejects only with unexpected errors. */
export type RpcRoute = (request: Request, response: Response) => Promise<void>;

/** An error as this server words it wherever no protocol prescribes another form. */
export function errorBody(code: number, message: string, details: JsonValue[] = []): Buffer {
  return Buffer.from(JSON.stringify({ code, message, details }));
}

/** The same for an error that carries details. */
export function connectErrorBody(error: ConnectError): Buffer {
  const details = error.details.flatMap((detail) => {
    if (!("desc" in detail)) return [];
    const json = toJson(detail.desc, create(detail.desc, detail.value)) as Record<string, JsonValue>;
    return [{ "@type": `type.googleapis.com/${detail.desc.typeName}`, ...json }];
  });
  return errorBody(error.code, error.rawMessage, details);
}

/** Answers with an error in our form, whole and at once. */
export function sendBody(response: Response, status: number, body: Buffer, headers: Record<string, string> = {}): void {
  if (response.headersSent || response.destroyed) return;
  const own = { ...headers, "content-type": "application/json", "content-length": String(body.byteLength) };
  (response as ServerResponse).writeHead(status, own);
  (response as ServerResponse).end(body);
}
