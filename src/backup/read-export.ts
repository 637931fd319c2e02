import { createHash } from "node:crypto";
import { damaged, rowsEnd } from "./dump-format.ts";

const newline = 10;
const carriageReturn = 13;
const rowsEndAfterRow = Buffer.concat([Buffer.of(newline), rowsEnd]);
const lineBytesMax = 16 * 1024 * 1024;

/** Reads an export piece by piece, in bounded memory. */
export interface Reader {
  /** The next line; undefined at the end of the file. @throws StartError when it is cut off or endless */
  line(): Promise<string | undefined>;
  /** The rows up to their end, in pieces that need not end where a row does. @throws StartError when they are cut off */
  rows(): AsyncGenerator<Buffer>;
  /** SHA-256 of all that was read by `line` and `rows`, but for the last line. */
  sha256BeforeLine(): string;
}

/** How many bytes at the beginning hold rows for sure: what may be the beginning of their end waits for more. */
function certain(buffer: Buffer): number {
  const last = buffer.lastIndexOf(newline);
  return buffer.length - last > rowsEnd.length ? buffer.length : last + 1;
}

/** Reads the bytes of an export, decompressed. */
export function readExport(source: AsyncIterable<Buffer>): Reader {
  const pieces = source[Symbol.asyncIterator]();
  let buffer: Buffer = Buffer.alloc(0);
  const hash = createHash("sha256");
  let before = "";

  async function next(): Promise<Buffer | undefined> {
    const { done, value } = await pieces.next().catch((error) => {
      throw damaged(`it cannot be read on (${error.message})`);
    });
    return done ? undefined : value;
  }

  async function more(): Promise<void> {
    const piece = await next();
    if (piece === undefined) throw damaged("it is cut off");
    buffer = Buffer.concat([buffer, piece]);
  }

  function take(length: number): Buffer {
    const taken = buffer.subarray(0, length);
    buffer = buffer.subarray(length);
    hash.update(taken);
    return taken;
  }

  async function line(): Promise<string | undefined> {
    const parts = [buffer];
    let length = buffer.length;
    for (let last: Buffer | undefined = buffer; !last.includes(newline); length += last.length) {
      if (length > lineBytesMax) throw damaged("a line has no end");
      last = await next();
      if (last === undefined && length > 0) throw damaged("it is cut off");
      if (last === undefined) return undefined;
      parts.push(last);
    }
    buffer = Buffer.concat(parts);
    before = hash.copy().digest("hex");
    const end = buffer.indexOf(newline);
    return take(end + 1).toString("utf8", 0, end);
  }

  async function* rows(): AsyncGenerator<Buffer> {
    for (let atLineStart = true; ; ) {
      if (atLineStart) {
        while (buffer.length < rowsEnd.length) await more();
        if (buffer.indexOf(rowsEnd) === 0) return void take(rowsEnd.length);
      }
      const end = buffer.indexOf(rowsEndAfterRow);
      const length = end >= 0 ? end + 1 : certain(buffer);
      if (length > 0) {
        const piece = take(length);
        // COPY writes none, and would take what follows one for the end of all rows.
        if (piece.includes(carriageReturn)) throw damaged("its rows hold what no export does");
        atLineStart = piece.at(-1) === newline;
        yield piece;
      }
      if (end < 0) await more();
    }
  }

  return { line, rows, sha256BeforeLine: () => before };
}
