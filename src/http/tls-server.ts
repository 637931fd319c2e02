import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import tls from "node:tls";

const handshakeMs = 20_000;

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

type Done = (error: null, context: tls.SecureContext | undefined) => void;

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

/** A server of TLS connections. */
export interface TlsServer {
  readonly server: tls.Server;
  /** Takes a connection of which nothing is read, with the certificate of now. */
  take(socket: Socket): void;
}

/** Makes the server of TLS connections: each goes on to the server of the HTTP version that it agrees on. */
export function tlsServer({ renewed, ...first }: Identity, h1: EventEmitter, h2: EventEmitter): TlsServer {
  const rules = { minVersion: "TLSv1.2", ciphers } as const;
  const byNameOf = ({ certByName: cert, key }: Pair) => cert && tls.createSecureContext({ cert, key, ...rules });
  let byName = byNameOf(first);
  const server = tls.createServer({
    cert: first.cert,
    key: first.key,
    ...rules,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: handshakeMs,
    // Asked when the client names the server it wants; an address is not named.
    ...(byName && { SNICallback: (_name: string, done: Done) => done(null, byName || undefined) }),
  });
  server.on("secureConnection", (socket) => {
    const inner = socket.alpnProtocol === "h2" ? h2 : h1;
    inner.emit("connection", socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return {
    server,
    take(socket) {
      const pair = renewed?.();
      if (pair !== undefined) {
        server.setSecureContext({ cert: pair.cert, key: pair.key, ...rules });
        byName = byNameOf(pair);
      }
      server.emit("connection", socket);
    },
  };
}
