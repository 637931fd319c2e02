import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";

/** Decompresses to at most so many bytes; fails when there are more. */
type Decompress<T> = (bytesMax: number) => Promise<T>;

const easyBytesMin = 256 * 1024;
const easyFactor = 10;

/** So many at once; further ones wait, and fail when too many do. */
function lane(width: number, waitingMax: number) {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (running < width) running += 1;
    else {
      if (waiting.length >= waitingMax) throw tooMany();
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
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

/** What the end of a gzip file says of its length, as far as a number of 32 bits can; 0 for anything else. */
function saidBytes(packed: Uint8Array): number {
  if (packed.byteLength < 18 || packed[0] !== 0x1f || packed[1] !== 0x8b) return 0;
  return new DataView(packed.buffer, packed.byteOffset + packed.byteLength - 4).getUint32(0, true);
}

/**
 * Decompresses a body without letting bombs fill the memory. What says itself that it is too large is not begun. What grows to
 * ten times its size or less is done a few at a time; what turns out to grow more is begun again one at a time.
 * @param tooLarge the failure for want of room; `outgrew` tells that another one is that, too.
 */
export async function unpack<T>(
  packed: Uint8Array,
  bytesMax: number,
  decompress: Decompress<T>,
  tooLarge: () => Error,
  outgrew: (error: unknown) => boolean,
): Promise<T> {
  if (saidBytes(packed) > bytesMax) throw tooLarge();
  const easyMax = Math.min(bytesMax, Math.max(easyBytesMin, packed.byteLength * easyFactor));
  try {
    return await easy(() => decompress(easyMax));
  } catch (error) {
    if (easyMax === bytesMax || !outgrew(error)) throw error;
    return await hard(() => decompress(bytesMax));
  }
}
