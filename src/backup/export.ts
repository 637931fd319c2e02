import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createZstdCompress } from "node:zlib";
import { connectOnce, type Db } from "../db/connect.ts";
import { appliedMigrations, checkMigrated } from "../db/migrate.ts";
import { sessionName } from "../db/session-name.ts";
import { StartError } from "../db/start-error.ts";
import { transaction } from "../db/transaction.ts";
import { abortOf, type CopyOptions, inOneLine, noLimits } from "./copying.ts";
import {
  type Copied,
  countLines,
  exportForm,
  formVersion,
  type Header,
  rowsEnd,
  type TableHead,
} from "./dump-format.ts";
import { openPart, type PartFile } from "./part-file.ts";
import { quotedName, tablesToCopy } from "./tables.ts";

/** The size from which pieces go to the compressor: rows are much smaller. */
const pieceBytes = 256 * 1024;

/** All rows as of one moment, in the form of docs/formats/export.md. Fills `copied`. */
async function* exported(
  tx: Db,
  version: string,
  copied: Copied,
  onProgress: CopyOptions["onProgress"],
): AsyncGenerator<Buffer> {
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
  const tables = await tablesToCopy(tx);
  for (const [i, table] of tables.entries()) {
    yield* put(line(table satisfies TableHead));
    const columns = table.columns.map(quotedName).join(", ");
    // Of partitions, too: COPY of a table as such leaves them out.
    const query = tx.unsafe(`copy (select ${columns} from ${quotedName(table.table)}) to stdout`);
    const rows = (await query.readable()) as Readable;
    rows.on("error", () => undefined); // of a connection that is closed when the rows are read no further
    const progress = { table: table.table, number: i + 1, of: tables.length };
    let count = 0;
    for await (const piece of rows.iterator({ destroyOnReturn: false })) {
      const lines = countLines(piece);
      count += lines;
      onProgress?.({ ...progress, rows: lines });
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

async function writePart(part: PartFile, source: AsyncIterable<Buffer>): Promise<void> {
  const compress = createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  await pipeline(source, compress, part.handle.createWriteStream({ flush: true }));
}

/**
 * Writes all rows of a database into a new file of mode 0600, as of one moment, while servers go on. It holds a snapshot and
 * the weakest locks, which only changes of the schema wait for.
 * @throws StartError when the database lacks a migration or fails, or the file cannot be written; the signal's reason when that aborts. No
 * file and no transaction is left then
 */
export async function exportTo(
  url: string,
  path: string,
  version: string,
  { signal, onProgress }: CopyOptions = {},
): Promise<Copied> {
  await checkMigrated(url);
  const part = await openPart(path);
  const { sql, close } = connectOnce(url, sessionName("export"));
  const copied: Copied = { rows: {}, takenAt: "" };
  // A reader that stops leaves rows on the wire that no statement could follow: the connection is closed then.
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const done = transaction(
    sql,
    async (tx) => {
      await tx`set transaction isolation level repeatable read, read only`;
      await noLimits(tx);
      const [row] = await tx<{ time: Date }[]>`select now() as time`;
      copied.takenAt = row?.time.toISOString() ?? "";
      const tables = (await tablesToCopy(tx)).map(({ table }) => quotedName(table));
      await tx.unsafe(`lock table ${tables.join(", ")} in access share mode`);
      await writePart(part, exported(tx, version, copied, onProgress)).catch((error) => {
        failed.reject(error);
        throw error;
      });
    },
    { attemptsMax: 1 },
  );
  done.catch(() => undefined);
  try {
    await Promise.race([done, failed.promise, abortOf(signal)]);
    await part.publish();
  } catch (error) {
    throw inOneLine(error, {
      ofFile: (reason) => new StartError(`cannot write ${path}: ${reason}`),
      ofDatabase: (reason) => new StartError(`the export failed (${reason}); no file was written`),
    });
  } finally {
    await close();
    await part.discard();
  }
  return copied;
}
