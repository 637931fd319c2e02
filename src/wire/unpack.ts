import {
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  gunzip,
  inflate,
  inflateRaw,
  type ZlibOptions,
} from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { invalidValue } from "./status.ts";

/** How an encoding is undone: at once, and in portions. */
interface Decompressor {
  once(packed: Uint8Array, options: ZlibOptions, done: (error: Error | null, bytes: Buffer) => void): void;
  stream(options: ZlibOptions): ReturnType<typeof createGunzip>;
}

const gzip: Decompressor = { once: gunzip, stream: createGunzip };
const zlib: Decompressor = { once: inflate, stream: createInflate };
const rawDeflate: Decompressor = { once: inflateRaw, stream: createInflateRaw };
const brotli: Decompressor = { once: brotliDecompress, stream: createBrotliDecompress };

const decompressors: Record<string, (packed: Uint8Array) => Decompressor> = {
  gzip: () => gzip,
  "x-gzip": () => gzip,
  br: () => brotli,
  // The name means zlib's format; some send the bare stream, which cannot begin like that one.
  deflate: (packed) => (((packed[0] ?? 0) & 15) === 8 ? zlib : rawDeflate),
};

const decompressorOf = (encoding: string, packed: Uint8Array) =>
  (decompressors[encoding] as (packed: Uint8Array) => Decompressor)(packed);

/** Whether bodies of this encoding can be decompressed. */
export function canUnpack(encoding: string): boolean {
  return Object.hasOwn(decompressors, encoding);
}

/** Bounds of a body while it is decompressed. */
export interface UnpackLimits {
  bytesMax: number;
  /** What it fails with beyond `bytesMax`. */
  tooLarge(): Error;
  /** Notified of bytes as they come out; what it throws ends the work. */
  received?: ((bytes: number) => void) | undefined;
}

const portionBytes = 256 * 1024;
const easyFactor = 10;

/** This many at once; further ones wait, and fail when too many do. Returns how to leave. */
function lane(width: number, waitingMax: number) {
  const waiting: (() => void)[] = [];
  let running = 0;
  function leave() {
    const next = waiting.shift();
    if (next === undefined) running -= 1;
    else next();
  }
  return async (): Promise<() => void> => {
    if (running < width) running += 1;
    else {
      if (waiting.length >= waitingMax) throw tooMany();
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    return leave;
  };
}

// As wide as Node's threads are many: more at once would only hold more memory.
const easy = lane(4, 2000);
const hard = lane(1, 100);

const tooMany = () =>
  new ConnectError(
    "too many compressed bodies come at once; send the request again",
    Code.ResourceExhausted,
    { "retry-after": "1" },
    [{ desc: RetryInfoSchema, value: create(RetryInfoSchema, { retryDelay: durationFromMs(1000) }) }],
  );

// No gzip grows more: 258 bytes take two bits at least.
const growthMax = 1032;

/**
 * What the end of a gzip file says of its length, as far as a number of 32 bits can; 0 for anything else, and for more than
 * any gzip of this size can hold: then it is damaged, or cut off.
 */
function saidBytes(packed: Uint8Array): number {
  if (packed.byteLength < 18 || packed[0] !== 0x1f || packed[1] !== 0x8b) return 0;
  const said = new DataView(packed.buffer, packed.byteOffset + packed.byteLength - 4).getUint32(0, true);
  return said > packed.byteLength * growthMax ? 0 : said;
}

/**
 * Decompresses a body in portions, each of which is counted before the next one is made. What says itself that it is too
 * large is not begun. What grows to ten times its size or less is done a few at a time; what grows more goes on one at a time.
 * @throws code 3 for what is not of this encoding, code 8 when too many wait, and as `limits` says.
 */
export async function unpack(packed: Uint8Array, encoding: string, limits: UnpackLimits): Promise<Buffer> {
  const { bytesMax, tooLarge, received } = limits;
  if (saidBytes(packed) > bytesMax) throw tooLarge();
  const easyMax = Math.max(portionBytes, packed.byteLength * easyFactor);
  let leave = await easy();
  let isEasy = true;
  const portions: Buffer[] = [];
  let bytes = 0;
  try {
    const decompressor = decompressorOf(encoding, packed);
    const small = packed.byteLength > portionBytes ? undefined : await onePortion(packed, decompressor);
    if (small !== undefined) {
      if (small.byteLength > bytesMax) throw tooLarge();
      received?.(small.byteLength);
      return small;
    }
    const stream = decompressor.stream({ chunkSize: portionBytes });
    stream.end(packed);
    for await (const portion of stream as AsyncIterable<Buffer>) {
      bytes += portion.byteLength;
      if (bytes > bytesMax) throw tooLarge();
      received?.(portion.byteLength);
      portions.push(portion);
      if (!isEasy || bytes < easyMax) continue;
      isEasy = false;
      leave();
      leave = () => {};
      leave = await hard();
    }
  } catch (error) {
    throw isBroken(error) ? notWhatItSays() : error;
  } finally {
    leave();
  }
  return portions.length === 1 ? (portions[0] as Buffer) : Buffer.concat(portions, bytes);
}

const notWhatItSays = () => invalidValue("", "the body is not what its content encoding says");

/** The bytes when one portion holds them all: most bodies are small, and this takes half the time of a stream. */
function onePortion(packed: Uint8Array, { once }: Decompressor): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    once(packed, { maxOutputLength: portionBytes }, (error, plain) => {
      if (error === null) resolve(plain);
      else if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") resolve(undefined);
      else reject(error);
    });
  });
}

/** What zlib finds wrong: Z_DATA_ERROR, Z_BUF_ERROR and their like, and brotli's. */
function isBroken(error: unknown): boolean {
  return error instanceof Error && "errno" in error && "code" in error;
}
