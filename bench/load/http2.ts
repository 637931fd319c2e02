import { once } from "node:events";
import { connect } from "node:net";
import { bodyOf } from "./body.ts";
import type { Connection, ConnectionOptions } from "./connection.ts";
import { headerBlocks } from "./header-block.ts";

const frame = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const;
const endStream = 1;
const ack = 1;
const endHeaders = 4;
const frameBytesMax = 16_384;
const windowBytesMax = 2 ** 31 - 1;
const refillBytes = 2 ** 24;

/** A request in work. */
interface Stream {
  id: number;
  startMs: number;
  /** How much of the body was sent. */
  sent: number;
  window: number;
  /** How much of the answer's body came. */
  received: number;
  body: ReturnType<typeof bodyOf>;
}

/**
 * HTTP/2 by hand: only frames and flow control, so that one processor asks more than any server under test answers.
 * Answers' headers are not decoded: an answer without a body is a bad one, as gRPC's refusals are.
 */
export async function openHttp2(options: ConnectionOptions): Promise<Connection> {
  const { port, request, streams: streamCount, answered, failed } = options;
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  const blocks = headerBlocks(request, `localhost:${port}`);
  const streams = new Map<number, Stream>();
  let nextId = 1;
  let window = 65_535;
  let streamWindow = 65_535;
  let toRefill = 0;
  let going = true;
  let stopped: (() => void) | undefined;
  let pending: Buffer | undefined;

  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frameOf(frame.settings, 0, 0, setting(4, windowBytesMax)));
  socket.write(frameOf(frame.windowUpdate, 0, 0, uint32(windowBytesMax - 65_535)));

  function send(body: Stream["body"]): void {
    body.next();
    const stream = {
      id: nextId,
      startMs: performance.now(),
      sent: 0,
      window: streamWindow,
      received: 0,
      body,
    };
    nextId += 2;
    streams.set(stream.id, stream);
    const flags = endHeaders | (body.bytes.byteLength === 0 ? endStream : 0);
    const head = frameOf(frame.headers, flags, stream.id, blocks.next());
    sendBody(stream, head);
  }

  /** Sends what the windows allow, the head in one write with it. */
  function sendBody(stream: Stream, head?: Buffer): void {
    const { bytes } = stream.body;
    const pieces = head === undefined ? [] : [head];
    while (stream.sent < bytes.byteLength) {
      const length = Math.min(bytes.byteLength - stream.sent, window, stream.window, frameBytesMax);
      if (length <= 0) break;
      const last = stream.sent + length === bytes.byteLength;
      pieces.push(
        frameOf(frame.data, last ? endStream : 0, stream.id, bytes.subarray(stream.sent, stream.sent + length)),
      );
      stream.sent += length;
      stream.window -= length;
      window -= length;
    }
    if (pieces.length > 0) socket.write(pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
  }

  function ended(stream: Stream, good: boolean): void {
    streams.delete(stream.id);
    answered(stream.startMs, good && stream.received > 0);
    if (going) send(stream.body);
    else if (streams.size === 0) stopped?.();
  }

  function take(type: number, flags: number, id: number, payload: Buffer): void {
    const stream = streams.get(id);
    if (type === frame.data) {
      toRefill += payload.byteLength;
      if (stream !== undefined) stream.received += payload.byteLength;
      if (toRefill > refillBytes) {
        socket.write(frameOf(frame.windowUpdate, 0, 0, uint32(toRefill)));
        toRefill = 0;
      }
    }
    if ((type === frame.data || type === frame.headers) && (flags & endStream) !== 0) {
      if (stream !== undefined) ended(stream, true);
    } else if (type === frame.reset) {
      if (stream !== undefined) ended(stream, false);
    } else if (type === frame.settings && (flags & ack) === 0) {
      for (let at = 0; at < payload.byteLength; at += 6) {
        if (payload.readUInt16BE(at) === 4) setStreamWindow(payload.readUInt32BE(at + 2));
      }
      socket.write(frameOf(frame.settings, ack, 0, Buffer.alloc(0)));
    } else if (type === frame.ping && (flags & ack) === 0) {
      socket.write(frameOf(frame.ping, ack, 0, payload));
    } else if (type === frame.goaway) {
      failed(new Error(`the server ended a connection with code ${payload.readUInt32BE(4)}`));
    } else if (type === frame.windowUpdate) {
      if (id === 0) window += payload.readUInt32BE(0);
      else if (stream !== undefined) stream.window += payload.readUInt32BE(0);
      for (const waiting of id === 0 ? streams.values() : stream === undefined ? [] : [stream]) sendBody(waiting);
    }
  }

  function setStreamWindow(bytes: number): void {
    for (const stream of streams.values()) stream.window += bytes - streamWindow;
    streamWindow = bytes;
    for (const stream of streams.values()) sendBody(stream);
  }

  socket.on("data", (chunk: Buffer) => {
    const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
    let at = 0;
    while (bytes.byteLength - at >= 9) {
      const length = bytes.readUIntBE(at, 3);
      if (bytes.byteLength - at < 9 + length) break;
      const payload = bytes.subarray(at + 9, at + 9 + length);
      take(bytes[at + 3] as number, bytes[at + 4] as number, bytes.readUInt32BE(at + 5) & 0x7fffffff, payload);
      at += 9 + length;
    }
    pending = at === bytes.byteLength ? undefined : bytes.subarray(at);
  });
  socket.on("error", failed);
  socket.on("close", () => failed(new Error("the server closed a connection")));

  return {
    start() {
      for (let i = 0; i < streamCount; i += 1) send(bodyOf(request));
    },
    async stop() {
      going = false;
      await new Promise<void>((resolve) => {
        stopped = resolve;
        if (streams.size === 0) resolve();
      });
      socket.removeAllListeners("close").destroy();
    },
  };
}

function frameOf(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(9 + payload.byteLength);
  bytes.writeUIntBE(payload.byteLength, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(id, 5);
  bytes.set(payload, 9);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function setting(id: number, value: number): Buffer {
  const bytes = Buffer.allocUnsafe(6);
  bytes.writeUInt16BE(id);
  bytes.writeUInt32BE(value, 2);
  return bytes;
}
