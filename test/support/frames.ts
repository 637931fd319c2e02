import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** HTTP/2 by hand, for what no client library sends. */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flag = { endStream: 1, ack: 1, endHeaders: 4 } as const;

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export const uint32 = (value: number) => Buffer.from([value >>> 24, value >>> 16, value >>> 8, value]);

/** Headers as HPACK writes them without its tables (RFC 7541, 6.2.2); names and values have at most 126 bytes. */
export function headerBlock(headers: Record<string, string>): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.from([Buffer.byteLength(value)]), Buffer.from(value)]);
  return Buffer.concat(Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

/** The head of a POST as a HEADERS frame; more of it, or its body, follows. */
export function post(stream: number, path: string, headers: Record<string, string>, flags: number = flag.endHeaders) {
  const block = { ":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost", ...headers };
  return frame(frameType.headers, flags, stream, headerBlock(block));
}

/** A connection on which anything may be sent. */
export async function openSocket(url: string): Promise<Socket> {
  const { protocol, hostname, port } = new URL(url);
  const secure = protocol === "https:";
  const to = { host: hostname, port: Number(port), noDelay: true };
  const socket = secure ? connectTls({ ...to, ALPNProtocols: ["h2"], rejectUnauthorized: false }) : connect(to);
  socket.on("error", () => {});
  await once(socket, secure ? "secureConnect" : "connect");
  return socket;
}

/** When a connection has closed, however. */
export const closing = (socket: Socket) => new Promise<void>((resolve) => socket.once("close", () => resolve()));

/** What came over a connection: the code of a GOAWAY, and how many PINGs were answered. */
interface Told {
  goaway: number | undefined;
  pings: number;
}

/** The same with HTTP/2 begun; what comes is thrown away but for `told`. */
export async function openFrames(url: string): Promise<{ socket: Socket; told: Told }> {
  const socket = await openSocket(url);
  const told: Told = { goaway: undefined, pings: 0 };
  let pending = Buffer.alloc(0);
  socket.on("data", (piece: Buffer) => {
    pending = Buffer.concat([pending, piece]);
    for (let length = 0; pending.byteLength >= 9; pending = pending.subarray(9 + length)) {
      length = pending.readUIntBE(0, 3);
      if (pending.byteLength < 9 + length) return;
      if (pending[3] === frameType.goaway) told.goaway = pending.readUInt32BE(13);
      if (pending[3] === frameType.ping) told.pings += 1;
    }
  });
  socket.write(Buffer.concat([preface, frame(frameType.settings, 0, 0)]));
  return { socket, told };
}
