import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import http2, { type Http2Session, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { sliceQueue } from "../event-loop.ts";
import { networkOf } from "../limiter.ts";
import { errorBody } from "../protocols/error-body.ts";
import { isGrpc } from "../protocols/grpc.ts";
import type { Request } from "../wire/body-reader.ts";
import type { Response } from "../wire/send-response.ts";
import { GrpcStream } from "./grpc-stream.ts";
import { CountedHttp2Response, CountedResponse } from "./unread-responses.ts";

/**
 * Takes every request of both HTTP versions. `sendContinue` sends 100 Continue to a client that waits for it. A unary gRPC call
 * over HTTP/2 at one of `ServeOptions.grpcPaths` comes as a `GrpcStream`.
 */
export type RequestHandler = (request: Request, response: Response, sendContinue: (() => void) | undefined) => void;

const pipelinedMax = 100;
const idleMs = 300_000; // of a connection; then it is asked to go
const controlFramesMax = 10_000;
const controlFramesMs = 10_000;
const streamsMax = 250;
// Opening and resetting a stream costs 33 µs in Node alone.
const resetsOfAddress: ResetBound = { max: 1000, ms: 60_000 };
// Of all clients of a proxy together: 2,500 at once take 83 ms.
const resetsOfAll: ResetBound = { max: 2500, ms: 1000 };
const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 1024 * 1024;

const headBytesMax = 16 * 1024;
/** The longest time for the head of a request, ms. */
export const headMs = 20_000;

/** Options of a server that speaks HTTP/1.1. */
export const http1Options = {
  headersTimeout: headMs,
  requestTimeout: 0, // client streams may last; silence within a body is bounded where it is read
  keepAliveTimeout: 72_000, // longer than the 60 s of common load balancers, so that they close first
  connectionsCheckingInterval: 2000,
  maxHeaderSize: headBytesMax,
  ServerResponse: CountedResponse as never,
  requireHostHeader: false, // it is required below, in our words
};

/** Options of a server that speaks HTTP/2. */
export const http2Options: http2.ServerOptions = {
  settings: {
    maxConcurrentStreams: streamsMax,
    initialWindowSize: streamWindowBytes,
    maxHeaderListSize: headBytesMax,
    enablePush: false,
  },
  Http2ServerResponse: CountedHttp2Response as never,
  maxHeaderListPairs: 128,
  // Data that was under way when a stream was reset counts as invalid frames; a client may not die of its refused calls.
  maxSessionInvalidFrames: 100_000,
  // Streams that a client resets on one connection: as many at once as it may have, then 33 a second; beyond that the connection ends.
  streamResetBurst: streamsMax,
  streamResetRate: 33,
};

/** Requests of an HTTP/1.1 connection: the one being answered, and those after it. */
interface Line {
  request: IncomingMessage;
  waiting: (() => void)[];
}

interface ServeOptions {
  /** How long a connection over HTTP/1.1 may take nothing of what was written, ms. */
  stallMs: number;
  /** Whether an address is that of one client; behind a proxy it is that of all. */
  ownAddresses: boolean;
  /** Paths of unary RPCs; absent: there are none. */
  grpcPaths?: { has(path: string): boolean };
}

type StreamListener = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, flags: number, raw: string[]) => void;

/** Bounds the connections of a server of either HTTP version, or of both, and takes their requests. */
export function serveRequests(server: Server, onRequest: RequestHandler, options: ServeOptions): void {
  const { stallMs, ownAddresses, grpcPaths } = options;
  const arrivals = sliceQueue();
  const mayReset = resetCounts(ownAddresses ? resetsOfAddress : resetsOfAll);
  const networks = new WeakMap<Http2Session, string>();
  // Of connections whose last request has not been answered whole.
  const lines = new WeakMap<Socket, Line>();
  function take(request: Request, response: Response, sendContinue: (() => void) | undefined) {
    if ("stream" in request) {
      const { session } = request.stream;
      const network = session && networks.get(session);
      // Else the client has gone already, or has reset it.
      if (session === undefined || network === undefined) return;
      // In a turn after the one that read it: what is reset by then is not begun.
      arrivals.add([network, session], () => {
        if (!request.stream.closed && !session.destroyed) onRequest(request, response, sendContinue);
      });
      return;
    }
    inOrder(lines, request, response as ServerResponse, () => {
      const hosts = request.headersDistinct.host?.length ?? 0;
      if (hosts > 1 || (hosts === 0 && request.httpVersion === "1.1"))
        return answerBrokenRequest(request.socket, "HOST");
      // The form that proxies are sent, which every server must take (RFC 9112, 3.2.2).
      if (request.url?.charCodeAt(0) !== 47) request.url = request.url?.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
      onRequest(request, response, sendContinue);
    });
  }
  server.on("request", (request: Request, response: Response) => take(request, response, undefined));
  server.on("checkContinue", (request: Request, response: Response) => {
    take(request, response, () => (response as ServerResponse).writeContinue());
  });
  takeGrpcStreams(server, grpcPaths, take);
  server.on("checkExpectation", (request: Request, response: Response) => {
    if ("stream" in request) {
      response.writeHead(417, {});
      response.end();
    } else
      inOrder(lines, request, response as ServerResponse, () => answerBrokenRequest(request.socket, "EXPECTATION"));
  });
  // A silent client may wait for an answer; one that does not take its answer is cut.
  server.on("timeout", (socket: Socket | Http2Session) => {
    if ("writableLength" in socket && socket.writableLength > 0) socket.destroy();
  });
  Object.assign(server, { timeout: stallMs });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    // What is broken comes behind a request that is still being answered: the client would take it for that answer.
    if (lines.get(socket)?.request.complete) socket.destroy();
    else answerBrokenRequest(socket, error.code);
  });
  server.on("session", (session: ServerHttp2Session) => {
    session.setLocalWindowSize(connectionWindowBytes);
    session.setTimeout(idleMs, () => session.close());
    boundControlFrames(session);
    const network = networkOf(session.socket.remoteAddress ?? "");
    networks.set(session, network);
    boundResets(session, () => mayReset(ownAddresses ? network : ""));
  });
  server.on("sessionError", () => {}); // the session is closed; its calls see their streams end
  server.emit("listening"); // starts its own watch over slow heads and idle connections
}

/** Begins the requests of one connection of HTTP/1.1 one after the other: after a disconnect no further one begins. */
function inOrder(
  lines: WeakMap<Socket, Line>,
  request: IncomingMessage,
  response: ServerResponse,
  begin: () => void,
): void {
  const { socket } = request;
  const line = lines.get(socket);
  if (line === undefined) {
    lines.set(socket, { request, waiting: [] });
    response.once("close", next);
    begin();
  } else if (line.waiting.length >= pipelinedMax) socket.destroy();
  else
    line.waiting.push(() => {
      line.request = request;
      response.once("close", next);
      begin();
    });

  function next() {
    const begin = lines.get(socket)?.waiting.shift();
    if (begin === undefined) lines.delete(socket);
    // In a turn of its own, as those of other connections. No answer can be read where writing has ended.
    else setImmediate(() => socket.writable && begin());
  }
}

/** Hands over unary gRPC calls on their streams, before Node makes a request and a response of each. */
function takeGrpcStreams(server: Server, paths: ServeOptions["grpcPaths"], take: RequestHandler) {
  // Node's own listener, which comes with the first for "request"; a server of HTTP/1.1 alone has none.
  const [compatible] = server.listeners("stream") as StreamListener[];
  if (compatible === undefined) return;
  server.off("stream", compatible).on("stream", (stream, headers, flags, raw) => {
    const { expect, ":method": method, ":path": path = "" } = headers;
    const continues = expect === "100-continue";
    if (!isGrpc({ method, headers }) || !paths?.has(path) || (expect !== undefined && !continues))
      return compatible(stream, headers, flags, raw);
    const call = new GrpcStream(stream, headers, raw);
    take(call, call, continues ? () => call.writeContinue() : undefined);
  });
}

/** Ends a session that floods: each PING and SETTINGS wants an answer, and costs its sender almost nothing. */
function boundControlFrames(session: ServerHttp2Session) {
  let left = controlFramesMax;
  let sinceMs = performance.now();
  const count = () => {
    left -= 1;
    if (left >= 0) return;
    const nowMs = performance.now();
    if (nowMs - sinceMs < controlFramesMs)
      return session.destroy(new Error("a flood of control frames"), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    left = controlFramesMax;
    sinceMs = nowMs;
  };
  session.on("ping", count).on("remoteSettings", count);
}

/** Ends a session that resets a request when too many were reset, over whatever connections. */
function boundResets(session: ServerHttp2Session, mayReset: () => boolean) {
  session.on("stream", (stream: ServerHttp2Stream) => {
    stream.once("close", () => {
      // Streams also close with their connection, and those that this side resets have begun to be answered.
      if (session.destroyed || stream.headersSent || mayReset()) return;
      session.destroy(new Error("a flood of resets"), http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
    });
  });
}

/** How many unanswered requests may be reset in how long, ms. */
interface ResetBound {
  max: number;
  ms: number;
}

/** Counts resets of unanswered requests by network; false beyond the bound. */
function resetCounts({ max, ms }: ResetBound): (network: string) => boolean {
  const counts = new Map<string, number>();
  let sinceMs = performance.now();
  return (network) => {
    const nowMs = performance.now();
    if (nowMs - sinceMs >= ms) {
      counts.clear();
      sinceMs = nowMs;
    }
    const count = (counts.get(network) ?? 0) + 1;
    counts.set(network, count);
    return count <= max;
  };
}

const answers: Record<string, [status: string, code: number, message: string]> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", 8, "the request's headers are larger than 16 KiB"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", 4, "the request's head did not come in time"],
  HOST: ["400 Bad Request", 3, "an HTTP/1.1 request names its Host, once"],
  PLAIN: ["400 Bad Request", 3, "this port speaks TLS: use an address that begins with https"],
  EXPECTATION: ["417 Expectation Failed", 3, "the only expectation that is met is 100-continue"],
};

/** Answers an HTTP/1.1 request that cannot be taken, in our error form, and closes the connection. `errorCode`: Node's, or a key above. */
export function answerBrokenRequest(socket: Duplex, errorCode: string | undefined): void {
  if (socket.destroyed) return;
  // Without a code the peer has disconnected; after a reset no answer can be read.
  if (!socket.writable || errorCode === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const [status, code, message] = answers[errorCode ?? ""] ?? [
    "400 Bad Request",
    3,
    "the request is not well-formed HTTP",
  ];
  const body = errorBody(code, message);
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.byteLength}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\nconnection: close\r\n\r\n${body.toString()}`,
    () => socket.destroy(),
  );
}
