import { once } from "node:events";
import { connect } from "node:net";
import { bodyOf } from "./body.ts";
import type { Connection, ConnectionOptions } from "./connection.ts";

const headEnd = Buffer.from("\r\n\r\n");
const lastChunk = "0\r\n\r\n";

/** A keep-alive connection with one request in work, its bytes made beforehand. */
export async function openHttp1({ port, request, answered, failed }: ConnectionOptions): Promise<Connection> {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  const { bytes, next } = bodyOf(request);
  const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (request.method === "POST") headers.push(`content-length: ${bytes.byteLength}\r\n`);
  const head = Buffer.from(
    `${request.method} ${request.path} HTTP/1.1\r\nhost: localhost:${port}\r\n${headers.join("")}\r\n`,
  );
  let startMs = 0;
  let received: Buffer | undefined;
  let going = true;
  let stopped: (() => void) | undefined;

  function send(): void {
    next();
    startMs = performance.now();
    // The body may be overwritten once it was answered, and not before.
    socket.cork();
    socket.write(head);
    if (bytes.byteLength > 0) socket.write(bytes);
    socket.uncork();
  }

  socket.on("data", (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const length = wholeLength(received);
    if (length === undefined || received.byteLength < length) return;
    const good = received[9] === 50 && received.byteLength === length; // status 2xx, and nothing after it
    received = undefined;
    answered(startMs, good);
    if (going) send();
    else stopped?.();
  });
  socket.on("error", failed);
  socket.on("close", () => failed(new Error("the server closed a connection")));

  return {
    start: send,
    async stop() {
      going = false;
      await new Promise<void>((resolve) => {
        stopped = resolve;
      });
      socket.removeAllListeners("close").destroy();
    },
  };
}

/** The length of the answer that begins here, head and body; undefined when that is not known yet. */
export function wholeLength(bytes: Buffer): number | undefined {
  const end = bytes.indexOf(headEnd);
  if (end < 0) return undefined;
  const head = bytes.toString("latin1", 0, end);
  const [, length] = /content-length: (\d+)/i.exec(head) ?? [];
  if (length !== undefined) return end + 4 + Number(length);
  if (head.startsWith("HTTP/1.1 204")) return end + 4;
  return bytes.toString("latin1", bytes.byteLength - lastChunk.length) === lastChunk ? bytes.byteLength : undefined;
}
