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

/** Makes the server of TLS connections: each goes on to the server of the HTTP version that it agrees on. */
export function tlsServer(identity: { cert: string; key: string }, h1: EventEmitter, h2: EventEmitter): tls.Server {
  const server = tls.createServer({
    ...identity,
    ALPNProtocols: ["h2", "http/1.1"],
    minVersion: "TLSv1.2",
    ciphers,
    handshakeTimeout: handshakeMs,
  });
  server.on("secureConnection", (socket) => {
    const inner = socket.alpnProtocol === "h2" ? h2 : h1;
    inner.emit("connection", socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}
