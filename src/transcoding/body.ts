import { isUtf8 } from "node:buffer";
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { clientLeft, type Request, silence } from "../wire/pieces.ts";
import { invalidValue, refusal } from "../wire/status.ts";
import { unpack } from "../wire/unpack.ts";

/** Bounds of a body. */
export interface BodyLimits {
  /** The largest body, or message of a stream, before and after decompression. */
  bytesMax: number;
  /** Longest silence, ms. */
  idleMs: number;
  /** Told of bytes that come in; what it throws ends the reading. */
  received(bytes: number): void;
}

type Decompress = (bytes: Buffer, options: ZlibOptions, done: (error: Error | null, bytes: Buffer) => void) => void;

const decompressors: Record<string, Decompress> = {
  gzip: gunzip,
  "x-gzip": gunzip,
  br: brotliDecompress,
  // The name means zlib's format; some send the bare stream, which cannot begin like that one.
  deflate: (bytes, options, done) => (((bytes[0] ?? 0) & 15) === 8 ? inflate : inflateRaw)(bytes, options, done),
};

const jsonType = /^application\/(?:[\w.!#$&^+-]+\+)?json[ \t]*(?:;(.*))?$/i;
const ndjsonType = /^application\/x-ndjson[ \t]*(?:;(.*))?$/i;
const charset = /^charset[ \t]*=[ \t]*(?:utf-?8|"utf-?8")$/i;

/** Throws 415 unless the content type is JSON (or absent) in UTF-8, and the encoding one that is known. */
export function checkContentType({ headers }: Request, streamed = false): void {
  const type = headers["content-type"];
  if (type !== undefined && type !== "application/json") {
    const known = jsonType.exec(type.trim()) ?? (streamed ? ndjsonType.exec(type.trim()) : null);
    if (known === null) {
      throw unsupportedType(`the content type must be application/json, not ${JSON.stringify(type.slice(0, 100))}`);
    }
    for (const part of (known[1] ?? "").split(";")) {
      const parameter = part.trim();
      if (/^charset[ \t]*=/i.test(parameter) && !charset.test(parameter))
        throw unsupportedType("the charset must be utf-8");
    }
  }
  checkEncoding(headers["content-encoding"]);
}

/** Throws 415 unless the content encoding is one that is known, or none. */
export function checkEncoding(encoding: string | undefined): void {
  if (encoding === undefined || encodingName(encoding) === "identity") return;
  if (!Object.hasOwn(decompressors, encodingName(encoding))) {
    throw unsupportedType(
      `the content encoding must be gzip, br or deflate, not ${JSON.stringify(encoding.slice(0, 100))}`,
    );
  }
}

function encodingName(encoding: string): string {
  const name = encoding.trim().toLowerCase();
  return name === "" ? "identity" : name;
}

function unsupportedType(message: string): ConnectError {
  return refusal(Code.InvalidArgument, 415, message);
}

function tooLarge(bytesMax: number): ConnectError {
  return refusal(Code.ResourceExhausted, 413, `the body may have at most ${bytesMax} bytes`);
}

/** Reads the whole body, decompressed. Throws code 4 after a silence, 413 when its declared, read or decompressed size is above `bytesMax`. */
export async function readBody(request: Request, limits: BodyLimits): Promise<Buffer> {
  const { headers } = request;
  const { bytesMax } = limits;
  const declared = headers["content-length"];
  if (declared !== undefined && Number(declared) > bytesMax) throw tooLarge(bytesMax);
  const bytes = await collect(request, limits);
  const encoding = headers["content-encoding"];
  if (encoding === undefined || bytes.length === 0) return bytes;
  const decompress = decompressors[encodingName(encoding)];
  return decompress === undefined ? bytes : decompressed(bytes, decompress, bytesMax);
}

/** Whether the head of a request says that no body follows. */
export function headEndsRequest(request: Request): boolean {
  const { headers } = request;
  const declared = headers["content-length"];
  if (declared !== undefined) return Number(declared) === 0;
  if (headers["transfer-encoding"] !== undefined) return false;
  return request.httpVersionMajor < 2 || request.complete || request.readableEnded;
}

/** Throws code 3 when a request that takes no body has one, or may have; one that turns out empty is fine. */
export async function refuseBody(request: Request, limits: BodyLimits): Promise<void> {
  if (request.headers["content-length"] !== undefined || !(await isEmpty(request, limits))) {
    throw invalidValue("", "this request takes no body");
  }
}

async function isEmpty(request: Request, limits: BodyLimits): Promise<boolean> {
  try {
    await collect(request, { ...limits, bytesMax: 0 });
    return true;
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.ResourceExhausted) return false;
    throw error;
  }
}

function collect(request: Request, { bytesMax, idleMs, received }: BodyLimits): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let first: Buffer | undefined;
    let chunks: Buffer[] | undefined;
    let size = 0;
    const onData = (chunk: Buffer) => {
      idle.refresh();
      size += chunk.length;
      if (size > bytesMax) return fail(tooLarge(bytesMax));
      try {
        received(chunk.length);
      } catch (error) {
        return fail(error);
      }
      if (first === undefined) first = chunk;
      else if (chunks === undefined) chunks = [first, chunk];
      else chunks.push(chunk);
    };
    const onEnd = () => {
      // A stream that is reset ends, too.
      if (request.aborted) return onClose();
      stop();
      resolve(chunks === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(chunks, size));
    };
    const onClose = () => fail(clientLeft);
    const idle = setTimeout(() => fail(silence(idleMs)), idleMs).unref();
    const fail = (error: unknown) => {
      stop();
      reject(error);
    };
    const stop = () => {
      clearTimeout(idle);
      request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
      request.on("error", ignore);
    };
    // Over HTTP/2 a stream that was reset before somebody read it has ended and closed, and says neither again.
    if (request.readableEnded) return onEnd();
    if (request.destroyed) return onClose();
    request.on("data", onData).on("end", onEnd).on("close", onClose).on("error", onClose);
  });
}

function ignore(): void {}

function decompressed(bytes: Buffer, decompress: Decompress, bytesMax: number): Promise<Buffer> {
  const upTo = (maxOutputLength: number) =>
    new Promise<Buffer>((resolve, reject) => {
      decompress(bytes, { maxOutputLength }, (error, plain) => {
        if (error === null) resolve(plain);
        else if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") reject(tooLarge(bytesMax));
        else reject(invalidValue("", "the body is not what its content encoding says"));
      });
    });
  return unpack(bytes, bytesMax, upTo, () => tooLarge(bytesMax), outgrew);
}

const outgrew = (error: unknown) => error instanceof ConnectError && error.code === Code.ResourceExhausted;

/** The text of a body. Throws code 3 for a byte order mark and for what is not UTF-8. */
export function bodyText(bytes: Buffer): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw invalidValue("", "the body begins with a byte order mark", " (byte 0)");
  }
  if (!isUtf8(bytes)) throw invalidValue("", "the body is not UTF-8", ` (byte ${firstInvalid(bytes)})`);
  return bytes.toString("utf8");
}

const pieceBytes = 4096;

/** Where the first bytes stand that are no UTF-8. */
function firstInvalid(bytes: Buffer): number {
  let at = 0;
  for (let to = pieceBytes; to < bytes.length; to += pieceBytes) {
    // A piece ends before the first byte of a character.
    let end = to;
    while (end > at && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
    if (end <= at || !isUtf8(bytes.subarray(at, end))) break;
    at = end;
  }
  for (; at < bytes.length; at += charBytes(bytes[at] ?? 0)) {
    if (!isUtf8(bytes.subarray(at, at + charBytes(bytes[at] ?? 0)))) return at;
  }
  return at;
}

function charBytes(lead: number): number {
  return lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}
