import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Pace } from "../../event-loop.ts";
import { addBytes, type CountLimits, reserveCounted } from "../../wire/message-limits.ts";
import { invalidValue } from "../../wire/status.ts";
import { byteOffset, pathAt } from "./path.ts";
import { finishScan, isJsonError, next, type Scan, scanOf } from "./scan.ts";

/** What the reading of a request needs of its call. */
export interface ReadingCall {
  /** Notified of the memory that the request becomes, bytes. @throws code 8 when there is no room */
  reserve(bytes: number): void;
  readonly pace: Pace;
}

export interface ParseOptions {
  /** What the text is: a message, or the value of a field. */
  readonly root: DescMessage | DescField;
  readonly limits: CountLimits;
  readonly ignoreUnknown: boolean;
  /** Messages of errors quote no values. */
  readonly discreet: boolean;
  /** Characters of a text within which errors have a path, which is looked for at once; behind them their byte has to do. Absent: all. */
  readonly pathCharactersMax?: number;
}

/** Reads one value; `inPortions` does the same and stops now and then, for long texts. */
export interface TextReader<T> {
  whole(s: Scan): T;
  inPortions?: ((s: Scan) => Generator<undefined, T>) | undefined;
}

const longText = 64 * 1024;

/**
 * Reads a JSON text whole; what is made of it is counted, and memory reserved for it, on the way.
 * @throws code 3 with the path and the place of what is wrong, code 8 for what is too large.
 */
export async function parseText<T>(
  text: string,
  bytes: Buffer,
  reader: TextReader<T>,
  { root, limits, ignoreUnknown, discreet, pathCharactersMax = Number.POSITIVE_INFINITY }: ParseOptions,
  call: ReadingCall,
): Promise<T> {
  const s = scanOf(text, { bytes, ignoreUnknown, discreet, limits, reserve: call.reserve });
  try {
    addBytes(s.tally, text.length);
    next(s);
    const { inPortions } = reader;
    const value =
      inPortions === undefined || text.length < longText ? reader.whole(s) : await atPace(inPortions(s), call.pace);
    finishScan(s);
    reserveCounted(s.tally);
    return value;
  } catch (error) {
    if (!isJsonError(error)) throw error;
    const { offset } = error;
    const path = offset < pathCharactersMax ? pathAt(text.slice(0, pathCharactersMax), offset, root) : "";
    throw invalidValue(path, error.message, ` (byte ${byteOffset(text, offset)})`);
  }
}

async function atPace<T>(portions: Generator<undefined, T>, pace: Pace): Promise<T> {
  for (;;) {
    const { done, value } = portions.next();
    if (done) return value;
    const wait = pace();
    if (wait !== undefined) await wait;
  }
}
