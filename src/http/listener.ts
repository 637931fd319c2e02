import http from "node:http";
import http2 from "node:http2";
import net, { type Socket } from "node:net";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import tls from "node:tls";
import {
  answerBrokenRequest,
  headMs,
  http1Options,
  http2Options,
  type RequestHandler,
  serveRequests,
} from "./http-servers.ts";

/** A server of HTTP/1.1 and HTTP/2 on one port. */
export interface HttpListener {
  /** Takes connections once it listens, or is given them. */
  readonly server: net.Server;
  connections(): number;
  /** No new connections; idle ones close, clients are asked to leave (GOAWAY). Resolves when all have left, at the latest after `ms`. */
  drain(ms: number): Promise<void>;
  /** Cuts what is left. */
  destroy(): void;
}

interface Options {
  /** Without it the port speaks plain text. */
  tls: Identity | undefined;
  onRequest: RequestHandler;
  /** Paths of unary RPCs; absent: there are none. */
  grpcPaths?: { has(path: string): boolean };
  /** How long a connection over HTTP/1.1 may take nothing of what was written, ms. */
  stallMs: number;
  /** Connections at once. A further one replaces the oldest that has sent no request yet; without such a one it is closed. */
  connectionsMax: number;
}

/** Certificate chain and key of a port, PEM. */
export interface Pair {
  readonly cert: string;
  /** What clients are shown that ask for a name, where there is one. */
  readonly certByName?: string | undefined;
  readonly key: string;
}

/** The certificate that a server shows, and whether there is a newer one. */
export interface Identity extends Pair {
  /** Another pair that connections get from now on; undefined: there is none. Asked before each connection. */
  renewed?(): Pair | undefined;
}

/** Takes a connection of which nothing is read. */
export type Taker = (socket: Socket) => void;

const settleMs = 100;
const handshakeMs = 20_000;
const preface = Buffer.from("PRI");
const tlsHandshake = 22; // the type of the first record of a connection over TLS

/** Makes the server of one port for HTTP/1.1 and HTTP/2: by ALPN over TLS, by the first bytes in plain text. What is not TLS where it must be gets an answer that says so. */
export function httpListener({ tls: identity, connectionsMax, stallMs, grpcPaths, ...options }: Options): HttpListener {
  const sockets = new Set<Socket>();
  // Nothing has been asked over them yet; by peer, since TLS makes another socket of a connection. The oldest come first.
  const fresh = new Map<string, Socket>();
  const onRequest: RequestHandler = (request, response, sendContinue) => {
    if (fresh.size > 0) fresh.delete(peerOf(request.socket as Socket));
    options.onRequest(request, response, sendContinue);
  };
  const { takerOf, servers } = identity === undefined ? plainServers() : secureServer(identity);
  const serving = { stallMs, ownAddresses: identity !== undefined, grpcPaths };
  for (const each of servers) serveRequests(each, onRequest, serving);

  const server = byFirstBytes(takerOf);
  server.on("connection", (socket: Socket) => {
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
  server.on("listening", () => server.on("error", () => {})); // a connection that could not be taken, for want of file descriptors
  const close = () => {
    for (const each of servers) each.close(() => {});
  };

  return {
    server,
    connections: () => sockets.size,
    async drain(ms) {
      server.close(() => {});
      close();
      const end = performance.now() + ms;
      await sleep(Math.min(ms, settleMs)); // what lies unread in a connection is a request that came in time
      await turn(); // also where the process had no processor for that long: what came meanwhile is read before this goes on,
      await turn(); // and begun
      for (const socket of fresh.values()) if (identity !== undefined || socket.bytesRead === 0) socket.destroy();
      for (; ; await sleep(20)) {
        // A connection that was taken last becomes a session only when it is read; a second close has no effect.
        close();
        if (sockets.size === 0 || performance.now() >= end) return;
      }
    },
    destroy() {
      server.close(() => {});
      close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

/** The servers behind a port, and what takes a connection that begins with these bytes; undefined while they do not show it. */
interface Behind {
  readonly servers: readonly net.Server[];
  takerOf(head: Buffer): Taker | undefined;
}

function plainServers(): Behind {
  const h1 = http.createServer(http1Options);
  const h2 = http2.createServer(http2Options);
  return {
    servers: [h1, h2],
    takerOf(head) {
      if (head.length < preface.length && preface.subarray(0, head.length).equals(head)) return undefined;
      // HTTP/1.1 clients may close their side and wait for the answer; an HTTP/2 client that does so has gone.
      return head.subarray(0, preface.length).equals(preface)
        ? whole((socket) => h2.emit("connection", socket))
        : (socket) => h1.emit("connection", socket);
    },
  };
}

// TLS 1.3 as it is; of TLS 1.2 what has forward secrecy and authenticates what it encrypts.
const ciphers = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
].join(":");
const tlsRules = { minVersion: "TLSv1.2", ciphers } as const;

type Named = (error: null, context: tls.SecureContext | undefined) => void;

function secureServer({ renewed, ...first }: Identity): Behind {
  const byNameOf = ({ certByName: cert, key }: Pair) => cert && tls.createSecureContext({ cert, key, ...tlsRules });
  let byName = byNameOf(first);
  const server = http2.createSecureServer({
    ...http2Options,
    allowHTTP1: true,
    http1Options,
    cert: first.cert,
    key: first.key,
    ...tlsRules,
    handshakeTimeout: handshakeMs,
    // Asked when the client names the server it wants; an address is not named.
    ...(byName && { SNICallback: (_name: string, done: Named) => done(null, byName || undefined) }),
  });
  // Node takes a handshake that fails for a request that is none.
  server.removeAllListeners("tlsClientError").on("tlsClientError", (_error, socket) => socket.destroy());
  const take = whole((socket) => {
    const pair = renewed?.();
    if (pair !== undefined) {
      server.setSecureContext({ cert: pair.cert, key: pair.key, ...tlsRules });
      byName = byNameOf(pair);
    }
    server.emit("connection", socket);
  });
  const refuse: Taker = (socket) => {
    socket.on("error", () => {});
    answerBrokenRequest(socket, "PLAIN");
  };
  return { servers: [server], takerOf: (head) => (head[0] === tlsHandshake ? take : refuse) };
}

function whole(take: Taker): Taker {
  return (socket) => {
    socket.allowHalfOpen = false;
    take(socket);
  };
}

/** Hands each connection to the taker that its first bytes call for. */
function byFirstBytes(takerOf: Behind["takerOf"]) {
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
