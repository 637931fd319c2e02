import http, { type IncomingMessage, type ServerResponse } from "node:http";
import http2, {
  Http2ServerRequest,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import net, { type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import type { Request } from "../wire/body-reader.ts";
import type { Response } from "../wire/send-response.ts";
import { answerBrokenRequest } from "./client-error.ts";
import { streamScheduler } from "./stream-scheduler.ts";
import { type Identity, type TlsServer, tlsServer } from "./tls-server.ts";
import { CountedHttp2Response, CountedResponse } from "./unread-responses.ts";

/** Takes every request of both HTTP versions. `sendContinue` sends 100 Continue to a client that waits for it. */
export type RequestHandler = (request: Request, response: Response, sendContinue: (() => void) | undefined) => void;

/** An open port. */
export interface HttpListener {
  readonly address: { host: string; port: number };
  connections(): number;
  /** No new connections; idle ones close, clients are asked to leave (GOAWAY). Resolves when all have left, at the latest after `ms`. */
  drain(ms: number): Promise<void>;
  /** Cuts what is left. */
  destroy(): void;
}

/** Connections of another process's port. */
export interface Incoming {
  readonly address: HttpListener["address"];
  /** Hands each of them to `take`, unread. */
  each(take: Taker): void;
  /** Resolves once no further one comes. */
  end(): Promise<void>;
}

interface Options {
  host: string;
  port: number;
  incoming?: Incoming | undefined;
  /** Without it the port speaks plain text. */
  tls: Identity | undefined;
  onRequest: RequestHandler;
  /** How long a connection over HTTP/1.1 may take nothing of what was written, ms. */
  stallMs: number;
  /** Connections at once. A further one replaces the oldest that has sent no request yet; without such a one it is closed. */
  connectionsMax: number;
}

const headMs = 20_000;
const keepAliveMs = 72_000; // longer than the 60 s of common load balancers, so that they close first
const idleMs = 300_000; // of an HTTP/2 connection; then it is asked to go
const controlFramesMax = 10_000;
const controlFramesMs = 10_000;
const settleMs = 100;
const pipelinedMax = 100;
const headBytesMax = 16 * 1024;
const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 1024 * 1024;
const preface = Buffer.from("PRI");
const tlsHandshake = 22; // the type of the first record of a connection over TLS

/** Opens one port for HTTP/1.1 and HTTP/2: by ALPN over TLS, by the first bytes in plain text. What is not TLS where it must be gets an answer that says so. */
export async function listen(options: Options): Promise<HttpListener> {
  const { host, port, incoming, tls: identity, connectionsMax, stallMs } = options;
  const sockets = new Set<Socket>();
  // Nothing has been asked over them yet; by peer, since TLS makes another socket of a connection. The oldest come first.
  const fresh = new Map<string, Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const onRequest: RequestHandler = (request, response, sendContinue) => {
    if (fresh.size > 0) fresh.delete(peerOf(request.socket as Socket));
    options.onRequest(request, response, sendContinue);
  };
  const h1 = http1Server(onRequest, stallMs);
  const h2 = http2Server(onRequest, sessions);

  const outer = byFirstBytes(identity === undefined ? plainTaker(h1, h2) : tlsTaker(tlsServer(identity, h1, h2)));
  outer.on("connection", (socket: Socket) => {
    const peer = peerOf(socket);
    sockets.add(socket);
    fresh.set(peer, socket);
    socket.setNoDelay(true).setKeepAlive(true, 60_000);
    socket.on("close", () => sockets.delete(socket) && fresh.get(peer) === socket && fresh.delete(peer));
    if (sockets.size <= connectionsMax) return;
    const [[oldest, idle] = [peer, socket]] = fresh;
    fresh.delete(oldest);
    idle.destroy();
  });
  if (incoming) incoming.each((socket) => outer.emit("connection", Object.assign(socket, { allowHalfOpen: true })));
  else await new Promise<void>((resolve, reject) => void outer.once("error", reject).listen(port, host, resolve));
  outer.on("error", () => {}); // a connection that could not be taken, for want of file descriptors
  h1.emit("listening"); // starts its own watch over slow heads and idle connections

  return {
    address: incoming?.address ?? { host, port: (outer.address() as AddressInfo).port },
    connections: () => sockets.size,
    async drain(ms) {
      await (incoming ? incoming.end() : outer.close());
      for (const session of sessions) session.close();
      const end = performance.now() + ms;
      await sleep(Math.min(ms, settleMs)); // what lies unread in a connection is a request that came in time
      await turn(); // also where the process had no processor for that long: what came meanwhile is read before this goes on
      for (const socket of fresh.values()) if (identity !== undefined || socket.bytesRead === 0) socket.destroy();
      for (; ; await sleep(20)) {
        // A connection that was taken last becomes a session only when it is read; a second close has no effect.
        for (const session of sessions) session.close();
        h1.closeIdleConnections();
        if (sockets.size === 0 || performance.now() >= end) return;
      }
    },
    destroy() {
      if (!incoming) outer.close();
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
      h1.close();
    },
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

/** Requests of an HTTP/1.1 connection: the one being answered, and those after it. */
interface Line {
  request: IncomingMessage;
  waiting: (() => void)[];
}

function http1Server(onRequest: RequestHandler, stallMs: number) {
  const server = http.createServer({
    headersTimeout: headMs,
    requestTimeout: 0, // client streams may last; silence within a body is bounded where it is read
    keepAliveTimeout: keepAliveMs,
    connectionsCheckingInterval: 2000,
    maxHeaderSize: headBytesMax,
    ServerResponse: CountedResponse as never,
    requireHostHeader: false, // it is required below, in our words
  });
  // Of connections whose last request has not been answered whole.
  const lines = new WeakMap<Socket, Line>();
  // Requests of one connection are begun one after the other: answers are sent in order, and after a disconnect no further one begins.
  function inOrder(request: IncomingMessage, response: ServerResponse, begin: () => void) {
    const { socket } = request;
    const line = lines.get(socket);
    if (line === undefined) {
      lines.set(socket, { request, waiting: [] });
      response.once("close", next);
      return begin();
    }
    if (line.waiting.length >= pipelinedMax) return socket.destroy();
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
  function take(request: IncomingMessage, response: ServerResponse, sendContinue: (() => void) | undefined) {
    inOrder(request, response, () => {
      const hosts = request.headersDistinct.host?.length ?? 0;
      if (hosts > 1 || (hosts === 0 && request.httpVersion === "1.1"))
        return answerBrokenRequest(request.socket, "HOST");
      // The form that proxies are sent, which every server must take (RFC 9112, 3.2.2).
      if (request.url?.charCodeAt(0) !== 47) request.url = request.url?.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
      onRequest(request, response, sendContinue);
    });
  }
  server.on("request", (request: IncomingMessage, response: ServerResponse) => take(request, response, undefined));
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    take(request, response, () => response.writeContinue());
  });
  server.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    inOrder(request, response, () => answerBrokenRequest(request.socket, "EXPECTATION"));
  });
  // A silent client may wait for an answer; one that does not take its answer is cut.
  server.setTimeout(stallMs, (socket) => {
    if (socket.writableLength > 0) socket.destroy();
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    // What is broken comes behind a request that is still being answered: the client would take it for that answer.
    if (lines.get(socket)?.request.complete) socket.destroy();
    else answerBrokenRequest(socket, error.code);
  });
  return server;
}

function http2Server(onRequest: RequestHandler, sessions: Set<ServerHttp2Session>) {
  const server = http2.createServer({
    settings: {
      maxConcurrentStreams: 250,
      initialWindowSize: streamWindowBytes,
      maxHeaderListSize: headBytesMax,
      enablePush: false,
    },
    maxHeaderListPairs: 128,
    // Data that was under way when a stream was reset counts as invalid frames; a client may not die of its refused calls.
    maxSessionInvalidFrames: 100_000,
    // Streams that a client opens and resets: a thousand at once, then 33 a second; beyond that the connection ends.
    streamResetBurst: 1000,
    streamResetRate: 33,
  });
  const inTurn = streamScheduler();
  // What Node does before its event "request", only for the streams whose turn has come: most of a flood never gets there.
  function begin(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]) {
    const request = new Http2ServerRequest(stream, headers, {}, rawHeaders);
    const response = new CountedHttp2Response(stream);
    if (stream.readableEnded) request.push(null); // an empty body that ended meanwhile
    if (headers[":method"] === "CONNECT") response.writeHead(405).end();
    else if (headers.expect === undefined) onRequest(request, response, undefined);
    else if (headers.expect === "100-continue") onRequest(request, response, () => response.writeContinue());
    else response.writeHead(417).end();
  }
  server.on("stream", (incoming, headers, _flags, rawHeaders) => {
    const stream = incoming as ServerHttp2Stream;
    stream.on("error", () => {}); // its call sees it close
    // Without a session the client has gone already.
    if (stream.session) inTurn(stream.session, { stream, begin: () => begin(stream, headers, rawHeaders) });
  });
  server.on("session", (session) => {
    session.setLocalWindowSize(connectionWindowBytes);
    sessions.add(session);
    session.on("close", () => sessions.delete(session));
    session.setTimeout(idleMs, () => session.close());
    boundControlFrames(session);
  });
  server.on("sessionError", () => {}); // the session is closed; its calls see their streams end
  return server;
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

/** Takes a connection of which nothing is read. */
type Taker = (socket: Socket) => void;

function plainTaker(h1: http.Server, h2: http2.Http2Server) {
  return (head: Buffer): Taker | undefined => {
    if (head.length < preface.length && preface.subarray(0, head.length).equals(head)) return undefined;
    // HTTP/1.1 clients may close their side and wait for the answer; an HTTP/2 client that does so has gone.
    return head.subarray(0, preface.length).equals(preface)
      ? whole((socket) => h2.emit("connection", socket))
      : (socket) => h1.emit("connection", socket);
  };
}

function tlsTaker(secure: TlsServer) {
  const refuse: Taker = (socket) =>
    answerBrokenRequest(
      socket.on("error", () => {}),
      "PLAIN",
    );
  return (head: Buffer): Taker => (head[0] === tlsHandshake ? whole(secure.take) : refuse);
}

function whole(take: Taker): Taker {
  return (socket) => {
    socket.allowHalfOpen = false;
    take(socket);
  };
}

/** Hands each connection to the taker that its first bytes call for; undefined while these do not show it. */
function byFirstBytes(takerOf: (head: Buffer) => Taker | undefined) {
  return net.createServer({ allowHalfOpen: true }, (socket) => {
    const drop = () => socket.destroy();
    socket.setTimeout(headMs, drop);
    socket.on("error", drop);
    let head = Buffer.alloc(0);
    const look = () => {
      for (let piece = socket.read(); piece !== null; piece = socket.read()) head = Buffer.concat([head, piece]);
      const taker = head.length === 0 ? undefined : takerOf(head);
      // Given back only when it is decided: what is given back is readable at once, and would be looked at for ever.
      if (taker === undefined) return;
      socket.off("readable", look).off("timeout", drop).off("end", drop).off("error", drop);
      socket.setTimeout(0);
      socket.unshift(head);
      taker(socket);
    };
    socket.on("readable", look).on("end", drop);
  });
}
