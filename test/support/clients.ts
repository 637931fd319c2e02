import { readFileSync } from "node:fs";
import http, { type IncomingHttpHeaders } from "node:http";
import http2 from "node:http2";
import https from "node:https";
import type { Writable } from "node:stream";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { checkAnswer } from "./documented.ts";

/** Where a client connects: the address, and the file of the CA's certificate over TLS. */
export interface Target {
  url: string;
  ca?: string | undefined;
}

/** Versions of HTTP that the port speaks. */
export const httpVersions = ["1.1", "2"] as const;
export type HttpVersion = (typeof httpVersions)[number];

/** Protocols that have clients of Connect's; gRPC needs HTTP/2 for them. */
export const protocols = ["grpc", "grpc-web", "connect", "connect-json"] as const;
export type Protocol = (typeof protocols)[number];

const withHeaders =
  (headers: Record<string, string>): Interceptor =>
  (next) =>
  (request) => {
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    return next(request);
  };

/** A client's way to a port in one of the protocols, with headers on every call. */
export function transport(
  { url, ca }: Target,
  protocol: Protocol,
  headers: Record<string, string>,
  httpVersion: HttpVersion = "2",
): Transport {
  const nodeOptions = ca === undefined ? {} : { ca: readFileSync(ca) };
  const options = { baseUrl: url, httpVersion, nodeOptions, interceptors: [withHeaders(headers)] };
  if (protocol === "grpc") return createGrpcTransport(options);
  if (protocol === "grpc-web") return createGrpcWebTransport(options);
  return createConnectTransport({ ...options, useBinaryFormat: protocol === "connect" });
}

/** A whole answer as it came over the wire. */
export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  trailers: IncomingHttpHeaders;
  body: Buffer;
  /** From the request's first byte to the end of the answer. */
  ms: number;
}

export interface RawRequest {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  /** Sent piece by piece, as fast as the other side takes it. */
  body?: Iterable<Uint8Array> | AsyncIterable<Uint8Array> | undefined;
}

/** A piece, and no more: who waits for the rest of the body waits for ever. */
export async function* unfinished(piece: Uint8Array = Buffer.alloc(64 * 1024, 32)) {
  yield piece;
  await new Promise(() => {});
}

async function upload(stream: Writable, body: RawRequest["body"], stop: () => boolean) {
  const closed = new Promise<void>((resolve) => stream.once("close", resolve));
  for await (const piece of body ?? []) {
    if (stop() || stream.destroyed) return;
    if (!stream.write(piece))
      await Promise.race([new Promise<void>((resolve) => stream.once("drain", resolve)), closed]);
  }
  if (!stop() && !stream.destroyed) stream.end();
}

/** Resolves with an answer; one of /v1 is held to the OpenAPI document. */
function settle(
  resolve: (answer: RawAnswer) => void,
  reject: (error: unknown) => void,
  method: string,
  path: string,
  answer: RawAnswer,
) {
  const { status, headers, body } = answer;
  const json = headers["content-type"]?.startsWith("application/json") && headers["content-encoding"] === undefined;
  try {
    if (path.startsWith("/v1/") && json && body.byteLength > 0) checkAnswer(method, path, status, body.toString());
    resolve(answer);
  } catch (error) {
    reject(error);
  }
}

/** One request over HTTP/1.1. Resolves as soon as the answer has ended, however much of the body is still to be sent. */
export function rawHttp1(
  target: Target,
  { method = "POST", path, headers = {}, body }: RawRequest,
  agent?: http.Agent,
): Promise<RawAnswer> {
  const url = new URL(path, target.url);
  const startMs = performance.now();
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    let answered = false;
    const call = request(url, {
      method,
      headers,
      agent: agent ?? false,
      ...(target.ca && { ca: readFileSync(target.ca) }),
    });
    call.on("error", (error) => answered || reject(error));
    call.on("response", (response) => {
      const pieces: Uint8Array[] = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("end", () => {
        answered = true;
        const { statusCode = 0, headers, trailers } = response;
        const answer = { status: statusCode, headers, trailers, body: Buffer.concat(pieces), ms: 0 };
        settle(resolve, reject, method, path, { ...answer, ms: performance.now() - startMs });
        if (body !== undefined) call.destroy();
      });
    });
    if (body === undefined) call.end();
    else upload(call, body, () => answered).catch(reject);
  });
}

/** A connection of its own for requests over HTTP/2. */
export function openHttp2({ url, ca }: Target) {
  // A body that is refused is larger than the 10 MB beyond which Node's client closes its own stream.
  const options = { maxSessionMemory: 64 };
  const session = http2.connect(url, ca === undefined ? options : { ...options, ca: readFileSync(ca) });
  session.on("error", () => {});
  let goaway: number | undefined;
  session.on("goaway", (code) => {
    goaway = code;
  });

  function send({ method = "POST", path, headers = {}, body }: RawRequest): Promise<RawAnswer> {
    const startMs = performance.now();
    return new Promise((resolve, reject) => {
      let answered = false;
      const stream = session.request(
        { ":method": method, ":path": path, ...headers },
        { endStream: body === undefined },
      );
      let head: IncomingHttpHeaders & { ":status"?: number } = {};
      let trailers: IncomingHttpHeaders = {};
      const pieces: Uint8Array[] = [];
      stream.on("response", (received) => {
        head = received as typeof head;
      });
      stream.on("trailers", (received) => {
        trailers = received as IncomingHttpHeaders;
      });
      stream.on("data", (piece: Uint8Array) => pieces.push(piece));
      stream.on("error", (error) => answered || reject(error));
      stream.on("end", () => {
        answered = true;
        const answer = {
          status: head[":status"] ?? 0,
          headers: head,
          trailers,
          body: Buffer.concat(pieces),
          ms: 0,
        };
        settle(resolve, reject, method, path, { ...answer, ms: performance.now() - startMs });
        if (body !== undefined) stream.close(http2.constants.NGHTTP2_CANCEL);
      });
      stream.on("close", () => answered || reject(new Error(`stream closed with code ${stream.rstCode}`)));
      upload(stream, body, () => answered).catch(reject);
    });
  }

  return {
    session,
    send,
    /** The code of a GOAWAY that came. */
    goaway: () => goaway,
    close: () => session.destroy(),
  };
}

/** One request over a connection of its own. */
export async function raw(target: Target, version: HttpVersion, request: RawRequest): Promise<RawAnswer> {
  if (version === "1.1") return rawHttp1(target, request);
  const connection = openHttp2(target);
  try {
    return await connection.send(request);
  } finally {
    connection.close();
  }
}

/** A message as gRPC, gRPC-Web and Connect's streams frame it. */
export function envelope(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

/** The gRPC code of an answer, wherever its protocol puts it. */
export function codeOf({ status, headers, trailers, body }: RawAnswer): number | string {
  const told = trailers["grpc-status"] ?? headers["grpc-status"];
  if (told !== undefined) return Number(told);
  const text = body.toString("latin1");
  const framed = /grpc-status: *(\d+)/i.exec(text);
  if (framed !== null) return Number(framed[1]);
  const json = /\{.*\}/s.exec(text);
  if (json === null) return status < 400 ? 0 : `HTTP ${status}`;
  const parsed = JSON.parse(json[0]);
  return parsed.error?.code ?? parsed.code ?? 0;
}
