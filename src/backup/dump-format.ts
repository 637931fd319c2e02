import { StartError } from "../db/start-error.ts";

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

/** What an export or an import has copied. */
export interface Copied {
  rows: Record<string, number>;
  /** The moment that the rows show, ISO 8601. */
  takenAt: string;
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
const newline = 10;

/** What an export that cannot be read is refused with. */
export const damaged = (what: string) =>
  new StartError(`the file is not a whole export of Belfry: ${what}; nothing was imported`);

/** How many lines, each of which ends with its newline. */
export function countLines(piece: Buffer): number {
  let count = 0;
  for (let at = piece.indexOf(newline); at >= 0; at = piece.indexOf(newline, at + 1)) count += 1;
  return count;
}
