import type { Duplex } from "node:stream";
import { errorBody } from "../protocols/error-body.ts";

const answers: Record<string, [status: string, code: number, message: string]> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", 8, "the request's headers are larger than 16 KiB"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", 4, "the request's head did not come in time"],
  HOST: ["400 Bad Request", 3, "an HTTP/1.1 request names its Host, once"],
  PLAIN: ["400 Bad Request", 3, "this port speaks TLS: use an address that begins with https"],
  EXPECTATION: ["417 Expectation Failed", 3, "the only expectation that is met is 100-continue"],
};

/** Answers an HTTP/1.1 request that cannot be taken, in our error form, and closes the connection. `errorCode`: Node's, or a key above. */
export function answerBrokenRequest(socket: Duplex | null, errorCode: string | undefined): void {
  if (socket === null || socket.destroyed) return;
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
