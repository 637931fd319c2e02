import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { parseContentType as grpcType } from "@connectrpc/connect/protocol-grpc";
import { exhausted } from "../errors.ts";
import type { Pace } from "../event-loop.ts";
import { brokenMessage, notOneMessage } from "../rpc/errors.ts";
import { type BodyReader, keep } from "../wire/body-reader.ts";
import { invalidValue } from "../wire/status.ts";
import { canUnpack, unpack } from "../wire/unpack.ts";
import type { MessageReader } from "./message-reader.ts";

const headBytes = 5; // of a message in an envelope: its flags and its length
const compressedFlag = 1;

/** How the messages of a request are in its body. */
export interface Form {
  readonly enveloped: boolean;
  readonly binary: boolean;
  /** The header that names the encoding of compressed messages. */
  readonly encodingHeader: string;
}

const webType = /^application\/grpc-web(?:\+(?:(json)(?:; ?charset=utf-?8)?|proto))?$/i;
const connectType = /^application\/(connect\+)?(?:(json)(?:; ?charset=utf-?8)?|proto)$/i;

/** The form of a content type; undefined for one that no protocol has, or that has messages in another coding. */
export function formOf(type: string): Form | undefined {
  const grpc = grpcType(type);
  if (grpc !== undefined) return { enveloped: true, binary: grpc.binary, encodingHeader: "grpc-encoding" };
  const web = webType.exec(type);
  if (web !== null) return { enveloped: true, binary: web[1] === undefined, encodingHeader: "grpc-encoding" };
  const connect = connectType.exec(type);
  if (connect === null) return undefined;
  const enveloped = connect[1] !== undefined;
  const encodingHeader = enveloped ? "connect-content-encoding" : "content-encoding";
  return { enveloped, binary: connect[2] === undefined, encodingHeader };
}

/** The encodings that Connect's protocols name. */
const encodings = ["gzip", "br"];

/** Whether messages of this encoding can be read; null and `identity` are none. */
export function isEncoding(encoding: string | null): boolean {
  return encoding === null || encoding === "identity" || (encodings.includes(encoding) && canUnpack(encoding));
}

/** What the reading of a request needs of its call. */
export interface Reading {
  readonly body: BodyReader;
  readonly reader: MessageReader;
  readonly form: Pick<Form, "enveloped" | "binary">;
  readonly encoding: string | null;
  reserve(bytes: number): void;
  readonly pace: Pace;
}

/** Reads the one message of a call. @throws code 3, 8 or 12 when there is none, more than one, or it cannot be read. */
export async function oneMessage(reading: Reading): Promise<Message> {
  const { body, form, reader } = reading;
  if (!form.enveloped) return messageOf(await body.whole(), true, reading);
  const bytes = await body.whole(lookAtLength(reader.bytesMax));
  if (bytes.byteLength === 0) throw notOneMessage("no message");
  const end = bytes.byteLength < headBytes ? headBytes : headBytes + bytes.readUInt32BE(1);
  if (bytes.byteLength < end) throw brokenMessage();
  if (bytes.byteLength > end) throw notOneMessage("more than one message");
  return messageOf(bytes.subarray(headBytes), isCompressed(bytes), reading);
}

/** What a message says of its length is looked at as soon as it is there. */
function lookAtLength(bytesMax: number): (piece: Uint8Array) => void {
  const head = Buffer.alloc(headBytes);
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
  if (length > bytesMax) throw exhausted(`the message is larger than ${bytesMax} bytes`);
}

function isCompressed(envelope: Uint8Array): boolean {
  const flags = envelope[0] as number;
  if ((flags & ~compressedFlag) !== 0) throw invalidValue("", `a message of the request has unknown flags (${flags})`);
  return flags === compressedFlag;
}

async function messageOf(bytes: Uint8Array, compressed: boolean, reading: Reading): Promise<Message> {
  const { encoding, form, reader, reserve, pace } = reading;
  let plain = bytes;
  const named = encoding !== null && encoding !== "identity";
  if (compressed && form.enveloped && !named) throw invalidValue("", "a message is compressed, and no header says how");
  if (compressed && named && bytes.byteLength > 0) {
    const tooLarge = () => exhausted(`the message is larger than ${reader.bytesMax} bytes when decompressed`);
    plain = await unpack(bytes, encoding, { bytesMax: reader.bytesMax, tooLarge, received: reserve });
  }
  return reader.read(plain, form.binary, { reserve, pace });
}

/** The messages of a client stream, each read as it is asked for. @throws as `oneMessage` does. */
export async function* messages(reading: Reading): AsyncGenerator<Message, void, undefined> {
  const { body, reader } = reading;
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
        checkLength(length, reader.bytesMax);
        held = [joined];
        wanted = headBytes + length;
        if (bytes < wanted) break;
        held = [joined.subarray(wanted)];
        bytes -= wanted;
        const message = joined.subarray(headBytes, wanted);
        wanted = headBytes;
        yield await messageOf(message, isCompressed(joined), reading);
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

/** The message in the address of a GET of Connect's: its bytes, and how they are written. */
export function messageInAddress(url: string): { bytes: Buffer; form: Form; encoding: string | null } | undefined {
  const query = new URL(url).searchParams;
  const coding = query.get("encoding");
  if (coding !== "json" && coding !== "proto") return undefined;
  const bytes = Buffer.from(query.get("message") ?? "", query.get("base64") === "1" ? "base64url" : "utf8");
  const form = { enveloped: false, binary: coding === "proto", encodingHeader: "content-encoding" };
  return { bytes, form, encoding: query.get("compression") };
}

/**
 * The same request with an empty body in its form: its messages have been read, and Connect's handlers, which decode
 * whatever they are sent before it can be checked, only answer.
 */
export function withoutBody(call: UniversalServerRequest, method: DescMethod, form: Form): UniversalServerRequest {
  for (const name of ["content-encoding", "content-length", "grpc-encoding", "connect-content-encoding"]) {
    call.header.delete(name);
  }
  call.header.set("content-type", call.header.get("content-type") ?? `application/${form.binary ? "proto" : "json"}`);
  return { ...call, method: "POST", body: emptyBody(method, form) };
}

async function* emptyBody({ methodKind }: DescMethod, { enveloped, binary }: Form): AsyncGenerator<Uint8Array> {
  const message = Buffer.from(binary ? "" : "{}");
  if (!enveloped) yield message;
  else if (methodKind === "unary" || methodKind === "server_streaming")
    yield Buffer.concat([Buffer.from([0, 0, 0, 0, message.byteLength]), message]);
}
