import { createHash } from "node:crypto";
import { StartError } from "../start-error.ts";

/** The form of an export (docs/formats/export.md): lines of JSON, and between them rows as PostgreSQL's COPY writes them. */
export const exportForm = "belfry export";
export const formVersion = 1;

/** The first line. */
export interface Header {
  form: typeof exportForm;
  formVersion: number;
  /** The version of the server that wrote it. */
  version: string;
  /** The schema, by the names and digests of its migrations in order. */
  migrations: { name: string; digest: string }[];
  /** The moment that the rows show, ISO 8601. */
  takenAt: string;
}

/** A part of a table that is partitioned by a time in ms. */
export interface Partition {
  name: string;
  fromMs: number;
  /** Exclusive. */
  toMs: number;
}

/** The line before the rows of a table. */
export interface TableHead {
  table: string;
  columns: string[];
  partitions?: Partition[];
}

/** The last line. */
export interface Closing {
  /** How many rows each table has. */
  rows: Record<string, number>;
  /** SHA-256 of all bytes before this line, hexadecimal. */
  sha256: string;
}

/** The line after the rows of a table, which no row can be: COPY writes a backslash as two. */
export const rowsEnd = Buffer.from("\\.\n");
const rowsEndAfterRow = Buffer.from("\n\\.\n");
const newline = 10;
const lineBytesMax = 16 * 1024 * 1024;

/** What an export that cannot be read is refused with. */
export const damaged = (what: string) =>
  new StartError(`the file is not a whole export of Belfry: ${what}; nothing was imported`);

/** How many lines, each of which ends with its newline. */
export function countLines(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) count += 1;
  return count;
}

/** Reads an export piece by piece, in bounded memory. */
export interface Reader {
  /** The next line; undefined at the end of the file. @throws StartError when it is cut off or endless */
  line(): Promise<string | undefined>;
  /** The rows up to their end, in pieces of whole rows. @throws StartError when they are cut off */
  rows(): AsyncGenerator<Buffer>;
  /** SHA-256 of all that was read by `line` and `rows`, but for the last line. */
  sha256BeforeLine(): string;
}

/** Reads the bytes of an export, decompressed. */
export function readExport(source: AsyncIterable<Buffer>): Reader {
  const pieces = source[Symbol.asyncIterator]();
  let buffer: Buffer = Buffer.alloc(0);
  const hash = createHash("sha256");
  let before = "";

  async function more(): Promise<boolean> {
    const { done, value } = await pieces.next().catch((error) => {
      throw damaged(`it cannot be read on (${error.message})`);
    });
    if (done) return false;
    buffer = buffer.length === 0 ? value : Buffer.concat([buffer, value]);
    return true;
  }

  function take(length: number): Buffer {
    const taken = buffer.subarray(0, length);
    buffer = buffer.subarray(length);
    hash.update(taken);
    return taken;
  }

  async function line(): Promise<string | undefined> {
    for (;;) {
      const end = buffer.indexOf(newline);
      if (end >= 0) {
        before = hash.copy().digest("hex");
        return take(end + 1).toString("utf8", 0, end);
      }
      if (buffer.length > lineBytesMax) throw damaged("a line has no end");
      if (await more()) continue;
      if (buffer.length > 0) throw damaged("it is cut off");
      return undefined;
    }
  }

  async function* rows(): AsyncGenerator<Buffer> {
    // `buffer` begins where a line does.
    for (;;) {
      if (buffer.indexOf(rowsEnd) === 0) {
        take(rowsEnd.length);
        return;
      }
      const last = buffer.indexOf(rowsEndAfterRow);
      const whole = (last >= 0 ? last : buffer.lastIndexOf(newline)) + 1;
      if (whole > 0) yield take(whole);
      if (last >= 0) continue;
      if (!(await more())) throw damaged("it is cut off");
    }
  }

  return { line, rows, sha256BeforeLine: () => before };
}
