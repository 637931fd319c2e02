import type { EventEmitter } from "node:events";
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

type Done = (error: null, context: tls.SecureContext) => void;

/** What a server says who it is: to clients that ask for a name by `certByName`, where there is one. */
export interface Identity {
  cert: string;
  certByName?: string | undefined;
  key: string;
}

/** Makes the server of TLS connections: each goes on to the server of the HTTP version that it agrees on. */
export function tlsServer({ cert, certByName, key }: Identity, h1: EventEmitter, h2: EventEmitter): tls.Server {
  const common = { key, minVersion: "TLSv1.2", ciphers } as const;
  const byName = certByName === undefined ? undefined : tls.createSecureContext({ ...common, cert: certByName });
  const server = tls.createServer({
    ...common,
    cert,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: handshakeMs,
    // Asked when the client names the server it wants; an address is not named.
    ...(byName && { SNICallback: (_name: string, done: Done) => done(null, byName) }),
  });
  server.on("secureConnection", (socket) => {
    const inner = socket.alpnProtocol === "h2" ? h2 : h1;
    inner.emit("connection", socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}
