import http2, {
  Http2ServerRequest,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { fairQueue } from "../fair-queue.ts";
import { headBytesMax, type RequestHandler } from "./http1.ts";
import { CountedHttp2Response } from "./unread-responses.ts";

const idleMs = 300_000; // of a connection; then it is asked to go
const controlFramesMax = 10_000;
const controlFramesMs = 10_000;
const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 1024 * 1024;
/** How many requests are begun in a turn of the event loop. */
const turnStreams = 4;

/** Options of a server that speaks HTTP/2. */
export const http2Options: http2.ServerOptions = {
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
};

/** Takes the requests of HTTP/2 connections, in turns. */
export function serveHttp2(server: http2.Http2Server | http2.Http2SecureServer, onRequest: RequestHandler): void {
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
  // A server that speaks HTTP/1.1, too, would begin each stream at once.
  server.removeAllListeners("stream");
  server.on("stream", (incoming, headers, _flags, rawHeaders) => {
    const stream = incoming as ServerHttp2Stream;
    stream.on("error", () => {}); // its call sees it close
    // Without a session the client has gone already.
    if (stream.session) inTurn(stream.session, { stream, begin: () => begin(stream, headers, rawHeaders) });
  });
  server.on("session", (session: ServerHttp2Session) => {
    session.setLocalWindowSize(connectionWindowBytes);
    session.setTimeout(idleMs, () => session.close());
    boundControlFrames(session);
  });
  server.on("sessionError", () => {}); // the session is closed; its calls see their streams end
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

/** A stream whose request waits for its turn. */
interface Waiting {
  stream: ServerHttp2Stream;
  begin(): void;
}

/**
 * Begins requests when all that arrived at once is read, so that a stream that was reset in the same breath costs nothing
 * more; a few in each turn of the event loop, connection after connection, so that no connection waits for all requests of another.
 */
function streamScheduler(): (session: Http2Session, waiting: Waiting) => void {
  const waiting = fairQueue<Waiting>();
  function serve() {
    for (let left = turnStreams; left > 0 && waiting.size > 0; ) {
      const next = waiting.next();
      if (next === undefined || next.stream.closed) continue;
      next.begin();
      left -= 1;
    }
    if (waiting.size > 0) setImmediate(serve);
  }
  return (session, stream) => {
    waiting.add([session], stream);
    if (waiting.size === 1) setImmediate(serve);
  };
}
