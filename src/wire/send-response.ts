import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type Http2ServerResponse, constants as http2 } from "node:http2";
import { brotliCompress, constants, deflate, gzip } from "node:zlib";
import type { StreamEvents } from "./body-reader.ts";

/** What is used of a response over HTTP/2. */
export interface Http2Response extends StreamEvents, Http2State {
  addTrailers(trailers: OutgoingHttpHeaders): void;
  end(last?: string | Uint8Array): unknown;
  setHeader(name: string, value: string): unknown;
  writeHead(status: number, headers: OutgoingHttpHeaders): unknown;
}

type Http2State = Pick<Http2ServerResponse, "destroyed" | "getHeader" | "headersSent" | "statusCode" | "stream">;

/** A response, over HTTP/1.1 or HTTP/2. */
export type Response = ServerResponse | Http2Response;

/** Below this, to compress an answer takes longer than to send it. */
const compressBytesMin = 4096;

/** Sends a whole answer: Content-Length set, compressed as the request accepts when it is above 4 KiB, no body for HEAD. */
export function sendWhole(
  response: Response,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Uint8Array,
  request: { method?: string | undefined; acceptEncoding: string | string[] | undefined },
): void | Promise<void> {
  const size = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  if (size > compressBytesMin) {
    headers.vary = varyBy(headers.vary, "accept-encoding");
    if (request.acceptEncoding !== undefined) {
      const encoding = chooseEncoding(String(request.acceptEncoding));
      if (encoding !== undefined) return sendCompressed(encoding);
    }
  }
  finish(body, size);

  function finish(content: string | Uint8Array, length: number): void {
    if (response.destroyed) return;
    headers["content-length"] = length;
    writeResponseHead(response, status, headers);
    if (request.method === "HEAD") response.end();
    // A text that is all ASCII is the same in Latin-1, which Node writes several times as fast as UTF-8.
    else if (typeof content === "string")
      (response as NodeJS.WritableStream).end(content, length === content.length ? "latin1" : "utf8");
    else (response as NodeJS.WritableStream).end(content);
  }

  async function sendCompressed(encoding: Encoding): Promise<void> {
    const packed = await compress(encoding, body);
    headers["content-encoding"] = encoding;
    finish(packed, packed.length);
  }
}

/** Sends an answer that ends with trailers: of gRPC, whose status stands there. */
export function sendWithTrailers(
  response: Response,
  headers: OutgoingHttpHeaders,
  trailers: NodeJS.Dict<string>,
  body: Uint8Array | undefined,
): void {
  if (response.destroyed) return;
  writeResponseHead(response, 200, headers);
  endResponse(response, body, trailers);
}

/** Ends an answer, with what comes last. */
export function endResponse(
  response: Response,
  last?: string | Uint8Array | undefined,
  trailers?: NodeJS.Dict<string>,
): void {
  const target = response as ServerResponse; // HTTP/2's compatibility response has the same methods
  if (trailers !== undefined) target.addTrailers(trailers);
  if (last === undefined) target.end();
  else target.end(last);
}

/** Writes the pieces of a body as fast as the client takes them, and returns whether it is still there. */
export async function writePieces<T extends string | Uint8Array>(
  response: Response,
  first: T | undefined,
  next: () => Promise<T | undefined>,
): Promise<boolean> {
  for (let piece = first; piece !== undefined; piece = await next()) {
    if (response.destroyed) return false;
    if (!(response as ServerResponse).write(piece)) await drained(response);
  }
  return !response.destroyed;
}

/** Until the other side has taken what was written, or the connection is closed. */
function drained(response: Response): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    response.on("drain", done).on("close", done);
  });
}

/** Sent with every answer: what it holds is of its type, and for its caller alone. */
export const answerDefaults = { "x-content-type-options": "nosniff", "cache-control": "no-store" } as const;

/** Sends the head of an answer, over either version of HTTP. */
export function writeResponseHead(response: Response, status: number, headers: OutgoingHttpHeaders): void {
  if (headers.vary !== undefined) headers.vary = varyBy(response.getHeader("vary"), headers.vary);
  (response as ServerResponse).writeHead(status, { ...answerDefaults, ...headers });
}

function varyBy(...values: OutgoingHttpHeaders[string][]): string {
  const names = values.flatMap((value) => (value === undefined ? [] : String(value).split(",")));
  return [...new Set(names.map((name) => name.trim().toLowerCase()))].join(", ");
}

/**
 * Breaks off an answer whose head is sent, so that no client takes it for whole. An HTTP/2 stream that is only destroyed
 * says that it ended in order.
 */
export function breakOff(response: Response): void {
  if ("stream" in response) response.stream?.close(http2.NGHTTP2_INTERNAL_ERROR);
  else response.destroy();
}

/** A content encoding that answers are sent in. */
export type Encoding = "br" | "gzip" | "deflate";

/** The encoding that the client prefers; br before gzip before deflate where it does not mind. */
export function chooseEncoding(accepted: string): Encoding | undefined {
  const weights = new Map<string, number>();
  for (const part of accepted.toLowerCase().split(",")) {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim());
    const q = parameters.find((piece) => piece.startsWith("q="));
    const weight = q === undefined ? 1 : Number(q.slice(2));
    if (name !== "" && weight >= 0 && weight <= 1) weights.set(name, weight);
  }
  let best: Encoding | undefined;
  let bestWeight = 0;
  for (const name of ["br", "gzip", "deflate"] as const) {
    const weight = weights.get(name) ?? weights.get("*") ?? 0;
    if (weight > bestWeight) {
      best = name;
      bestWeight = weight;
    }
  }
  return bestWeight >= (weights.get("identity") ?? 0) ? best : undefined;
}

/** The same bytes, compressed; `effort` is the level of the encoding, by default one for an answer that is sent once. */
export function compress(encoding: Encoding, body: string | Uint8Array, effort?: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const done = (error: Error | null, bytes: Buffer) => (error === null ? resolve(bytes) : reject(error));
  // Brotli's default quality is for files that are compressed once.
  if (encoding === "br") brotliCompress(body, { params: { [constants.BROTLI_PARAM_QUALITY]: effort ?? 4 } }, done);
  else if (encoding === "gzip") gzip(body, { level: effort ?? 5 }, done);
  else deflate(body, { level: effort ?? 5 }, done);
  return promise;
}
