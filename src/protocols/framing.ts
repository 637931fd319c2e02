import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { type Compression, envelopeCompress } from "@connectrpc/connect/protocol";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import type { Pace } from "../event-loop.ts";
import { brokenMessage, notOneMessage } from "../rpc/errors.ts";
import { type BodyReader, keep } from "../wire/body-reader.ts";
import type { CallTime } from "../wire/call.ts";
import { invalidValue, messageTooLarge } from "../wire/status.ts";
import { unpack } from "../wire/unpack.ts";
import { whenDone } from "../wire/when-done.ts";
import { binaryOf, messageJson } from "../wire/write-message.ts";
import { type Exchange, paceOf } from "./engine.ts";
import type { MessageReader } from "./message-reader.ts";

/** An RPC whose messages go over gRPC, gRPC-Web and Connect. */
export interface WireRpc {
  /** Returns what reads the message of a request. */
  readerOf(exchange: Exchange): MessageReader;
  /** Longest silence within a request, ms. */
  readonly idleMs: number;
  /** Writes an answer, a large one in slices. @throws what `pace` throws */
  bytesOf(answer: unknown, binary: boolean, pace: Pace): Uint8Array | Promise<Uint8Array>;
  /** Words an error for the senders of another tool. */
  told?(error: ConnectError): ConnectError | undefined;
}

/** The compressions of messages. */
export const compressions: Compression[] = [compressionGzip, compressionBrotli];

/** What a request may have beside its message. */
export const envelopeRoom = 1024;

const headBytes = 5; // of a message in an envelope: its flags and its length
const compressedFlag = 1;
/** Smaller messages are not compressed, as by Connect's handlers. */
const compressBytesMin = 1024;

/** What the reading of a message needs of its call. */
export interface Reading {
  readonly reader: MessageReader;
  readonly binary: boolean;
  readonly encoding: string | undefined;
  reserve(bytes: number): void;
  readonly pace: Pace;
}

/** Joins what the reading of a message needs. */
export function readingOf(
  rpc: WireRpc,
  exchange: Exchange,
  call: CallTime,
  binary: boolean,
  encoding: string | undefined,
): Reading {
  return { reader: rpc.readerOf(exchange), binary, encoding, reserve: exchange.reserve, pace: paceOf(exchange, call) };
}

/** Reads the one message of a call. @throws code 3, 8 or 12 when there is none, more than one, or it cannot be read. */
export function messageInEnvelope(bytes: Buffer, reading: Reading): Message | Promise<Message> {
  if (bytes.byteLength === 0) throw notOneMessage("no message");
  const end = bytes.byteLength < headBytes ? headBytes : headBytes + bytes.readUInt32BE(1);
  if (bytes.byteLength < end) throw brokenMessage();
  if (bytes.byteLength > end) throw notOneMessage("more than one message");
  return messageOf(bytes.subarray(headBytes), isCompressed(bytes, reading), reading);
}

/** Looks at what a message says of its length as soon as it is there. */
export function lookAtLength(bytesMax: number): (piece: Uint8Array) => void {
  const head = Buffer.allocUnsafe(headBytes);
  let bytes = 0;
  return (piece) => {
    if (bytes === headBytes) return;
    const taken = piece.subarray(0, headBytes - bytes);
    head.set(taken, bytes);
    bytes += taken.byteLength;
    if (bytes === headBytes) checkLength(head.readUInt32BE(1), bytesMax);
  };
}

function checkLength(length: number, bytesMax: number) {
  if (length > bytesMax) throw messageTooLarge(bytesMax);
}

function isCompressed(envelope: Uint8Array, { encoding }: Reading): boolean {
  const flags = envelope[0] as number;
  if ((flags & ~compressedFlag) !== 0) throw invalidValue("", `a message of the request has unknown flags (${flags})`);
  if (flags === compressedFlag && encoding === undefined)
    throw invalidValue("", "a message is compressed, and no header says how");
  return flags === compressedFlag;
}

/** Makes a message of its bytes, which are unpacked first. @throws code 3 or 8 */
export function messageOf(bytes: Uint8Array, compressed: boolean, reading: Reading): Message | Promise<Message> {
  const { encoding, binary, reader, reserve, pace } = reading;
  const { bytesMax } = reader;
  const read = (plain: Uint8Array) => reader.read(plain, binary, { reserve, pace });
  if (!compressed || encoding === undefined || bytes.byteLength === 0) return read(bytes);
  return unpack(bytes, encoding, { bytesMax, tooLarge: () => messageTooLarge(bytesMax), received: reserve }).then(read);
}

/** The messages of a client stream, each read as it is asked for. @throws as `messageInEnvelope` does. */
export async function* messages(
  body: AsyncIterable<Uint8Array> & Pick<BodyReader, "release">,
  reading: Reading,
): AsyncGenerator<Message, void, undefined> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  let wanted = headBytes;
  try {
    for await (const piece of body) {
      keep(held, piece);
      bytes += piece.byteLength;
      while (bytes >= wanted) {
        // Joined when a whole message is there: each piece is copied once or twice, however many they are.
        const joined = held.length === 1 ? bufferOf(held[0] as Uint8Array) : Buffer.concat(held);
        const length = joined.readUInt32BE(1);
        checkLength(length, reading.reader.bytesMax);
        held = [joined];
        wanted = headBytes + length;
        if (bytes < wanted) break;
        held = [joined.subarray(wanted)];
        bytes -= wanted;
        const message = joined.subarray(headBytes, wanted);
        wanted = headBytes;
        yield await messageOf(message, isCompressed(joined, reading), reading);
      }
    }
    if (bytes > 0) throw brokenMessage();
  } finally {
    body.release();
  }
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

/** Writes an answer in the form of its call, a large one in slices. @throws what `pace` throws */
export function answerBytes(
  desc: DescMessage,
  answer: Message,
  binary: boolean,
  pace: Pace,
): Uint8Array | Promise<Uint8Array> {
  return binary ? binaryOf(desc, answer, pace) : whenDone(messageJson(desc, answer, pace), (text) => Buffer.from(text));
}

/** Puts these bytes in an envelope, compressed when they are many. */
export function envelopeOf(bytes: Uint8Array, compression: Compression | null): Uint8Array | Promise<Uint8Array> {
  if (compression === null || bytes.byteLength < compressBytesMin) return enveloped(0, bytes);
  const packed = envelopeCompress({ flags: 0, data: bytes }, compression, compressBytesMin);
  return packed.then(({ flags, data }) => enveloped(flags, data));
}

function enveloped(flags: number, data: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes + data.byteLength);
  bytes[0] = flags;
  bytes.writeUInt32BE(data.byteLength, 1);
  bytes.set(data, headBytes);
  return bytes;
}
