import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { connectOnce, type Db } from "../connect.ts";
import { appliedMigrations, checkMigrated } from "../migrate.ts";
import { StartError } from "../start-error.ts";
import { transaction } from "../transaction.ts";
import { countLines, exportForm, formVersion, type Header, rowsEnd, type TableHead } from "./form.ts";
import { quoted, tablesToCopy } from "./tables.ts";

/** What an export or an import has copied. */
export interface Copied {
  rows: Record<string, number>;
  /** The moment that the rows show, ISO 8601. */
  takenAt: string;
}

/** The size from which pieces go to the compressor: rows are much smaller. */
const pieceBytes = 256 * 1024;

/** All rows as of one moment, in the form of docs/formats/export.md. Fills `copied`. */
async function* exported(tx: Db, version: string, copied: Copied): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  function* put(piece: Buffer, last = false) {
    waiting.push(piece);
    waitingBytes += piece.length;
    if (waitingBytes < pieceBytes && !last) return;
    const whole = Buffer.concat(waiting);
    [waiting, waitingBytes] = [[], 0];
    if (!last) hash.update(whole);
    yield whole;
  }
  const line = (value: object) => Buffer.from(`${JSON.stringify(value)}\n`);

  const migrations = await appliedMigrations(tx);
  yield* put(line({ form: exportForm, formVersion, version, migrations, takenAt: copied.takenAt } satisfies Header));
  for (const table of await tablesToCopy(tx)) {
    yield* put(line(table satisfies TableHead));
    const columns = table.columns.map(quoted).join(", ");
    // Of partitions, too: COPY of a table as such leaves them out.
    const query = tx.unsafe(`copy (select ${columns} from ${quoted(table.table)}) to stdout`);
    const rows = (await query.readable()) as Readable;
    rows.on("error", () => undefined); // of a connection that is closed when the rows are read no further
    let count = 0;
    for await (const piece of rows.iterator({ destroyOnReturn: false })) {
      count += countLines(piece);
      yield* put(piece);
    }
    yield* put(rowsEnd);
    copied.rows[table.table] = count;
  }
  const rest = Buffer.concat(waiting);
  waiting = [];
  hash.update(rest);
  yield* put(rest, true);
  yield* put(line({ rows: copied.rows, sha256: hash.digest("hex") }), true);
}

/** A file that is there under its name only once it is whole, and on the disk. */
async function writeFile(path: string, source: AsyncIterable<Buffer>): Promise<void> {
  const part = `${path}.part`;
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  try {
    await pipeline(source, compress, createWriteStream(part, { mode: 0o600, flush: true }));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

const reason = (error: unknown) => (error as Error).message;

/** Makes the place of the file, so that one that is there is not written over. */
async function claim(path: string): Promise<void> {
  const part = await open(`${path}.part`, "wx", 0o600).catch((error) => {
    if (error.code === "EEXIST")
      throw new StartError(`${path}.part is there: another export writes it, or was cut off; remove it then`);
    throw new StartError(`cannot write ${path}: ${reason(error)}`);
  });
  await part.close();
  try {
    await (await open(path, "r")).close();
  } catch {
    return;
  }
  await rm(`${path}.part`);
  throw new StartError(`${path} is there; an export does not write over it`);
}

/**
 * Writes all rows of a database into a new file of mode 0600, as of one moment, while servers go on. It holds a snapshot and
 * the weakest locks, which only changes of the schema wait for.
 * @throws StartError when the database lacks a migration or the file cannot be written; no file is left then
 */
export async function exportTo(url: string, path: string, version: string): Promise<Copied> {
  await checkMigrated(url);
  await claim(path);
  const { sql, close } = connectOnce(url, "belfry export");
  const copied: Copied = { rows: {}, takenAt: "" };
  // A reader that stops leaves rows on the wire that no statement could follow: the connection is closed then.
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const done = transaction(
    sql,
    async (tx) => {
      await tx`set transaction isolation level repeatable read, read only`;
      for (const limit of ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"]) {
        await tx.unsafe(`set local ${limit} = 0`);
      }
      const [row] = await tx<{ time: Date }[]>`select now() as time`;
      copied.takenAt = row?.time.toISOString() ?? "";
      const tables = (await tablesToCopy(tx)).map(({ table }) => quoted(table));
      await tx.unsafe(`lock table ${tables.join(", ")} in access share mode`);
      await writeFile(path, exported(tx, version, copied)).catch((error) => {
        failed.reject(error);
        throw error;
      });
    },
    { attemptsMax: 1 },
  );
  done.catch(() => undefined);
  try {
    await Promise.race([done, failed.promise]);
  } catch (error) {
    await rm(`${path}.part`, { force: true });
    const { syscall } = error as NodeJS.ErrnoException;
    throw syscall === undefined ? error : new StartError(`cannot write ${path}: ${reason(error)}`);
  } finally {
    await close();
  }
  return copied;
}
