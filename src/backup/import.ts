import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { checkServer, connectOnce, type Db, type Sql } from "../db/connect.ts";
import { isDistributed } from "../db/distribution.ts";
import { makeHomes } from "../db/home-row.ts";
import { checkMatched, knownMigrations, migrate } from "../db/migrate.ts";
import { sessionName } from "../db/session-name.ts";
import { StartError } from "../db/start-error.ts";
import { transaction } from "../db/transaction.ts";
import { readHead, readHeader } from "./check-export.ts";
import { type CopyOptions, inOneLine, noLimits } from "./copying.ts";
import { type Copied, countLines, damaged, type TableHead } from "./dump-format.ts";
import { type Reader, readExport } from "./read-export.ts";
import { quotedName, tablesToCopy } from "./tables.ts";

/** @throws StartError when it is distributed, when a table has rows, or the schema is newer than that of this many migrations */
async function checkEmpty(db: Db, migrations: number): Promise<void> {
  if (await isDistributed(db)) {
    throw new StartError(
      "the database is distributed: import into a new one that is not, then call belfry distribute; nothing was imported",
    );
  }
  const [found] = await db<{ begun: boolean }[]>`select to_regclass('migrations') is not null as begun`;
  if (found?.begun) {
    const [applied] = await db<{ count: number }[]>`select count(*)::int4 as count from migrations`;
    if ((applied?.count ?? 0) > migrations) {
      throw new StartError(
        "the database has a newer schema than the file: import into one without any; nothing was imported",
      );
    }
  }
  for (const { table } of await tablesToCopy(db)) {
    const [row] = await db.unsafe<{ filled: boolean }[]>(`select exists (select from ${quotedName(table)}) as filled`);
    if (row?.filled) {
      throw new StartError(
        `the database is not empty: its table ${table} has rows; import into a new one that no server has used; nothing was imported`,
      );
    }
  }
}

/** Copies the rows of one table; returns how many. `onRows` gets the number of rows in each piece. */
async function copyIn(tx: Db, head: TableHead, file: Reader, onRows: (rows: number) => void): Promise<number> {
  const { table, columns, partitions = [] } = head;
  for (const { name, fromMs, toMs } of partitions) {
    await tx.unsafe(
      `create table if not exists ${quotedName(name)} partition of ${quotedName(table)} for values from (${Number(fromMs)}) to (${Number(toMs)})`,
    );
  }
  const query = tx.unsafe(`copy ${quotedName(table)} (${columns.map(quotedName).join(", ")}) from stdin`);
  const into = await query.writable();
  let count = 0;
  async function* counted() {
    for await (const piece of file.rows()) {
      const rows = countLines(piece);
      count += rows;
      onRows(rows);
      yield piece;
    }
  }
  await pipeline(counted(), into);
  return count;
}

interface Import extends CopyOptions {
  file: Reader;
  migrations: number;
  filled: (tx: Db, table: string) => Promise<void>;
}

/** Copies every table; returns how many rows each has. @throws StartError when the file is not whole */
async function copyAll(tx: Db, { file, migrations, filled, onProgress }: Import) {
  const known = new Map((await tablesToCopy(tx)).map((each) => [each.table, each]));
  if (known.size > 0)
    await tx.unsafe(`lock table ${[...known.keys()].map(quotedName).join(", ")} in access exclusive mode`);
  await checkEmpty(tx, migrations);
  const rows: Record<string, number> = {};
  for (let number = 1; ; number += 1) {
    const next = readHead(await file.line(), known);
    if (!("table" in next)) {
      const sound =
        next.sha256 === file.sha256BeforeLine() &&
        JSON.stringify(next.rows) === JSON.stringify(rows) &&
        (await file.line()) === undefined;
      if (!sound) throw damaged("its rows are not those of which its last line tells");
      const missing = [...known.keys()].find((table) => rows[table] === undefined);
      if (missing !== undefined) throw damaged(`its table ${missing} is missing`);
      return rows;
    }
    const { table } = next;
    if (rows[table] !== undefined) throw damaged(`it has the table ${table} twice`);
    const progress = { table, number };
    rows[table] = await copyIn(tx, next, file, (copied) => onProgress?.({ ...progress, rows: copied }));
    await filled(tx, table);
  }
}

/** All rows of the file, in one transaction. */
async function fill(sql: Sql, work: Import): Promise<Record<string, number>> {
  return await transaction(
    sql,
    async (tx) => {
      await noLimits(tx);
      const rows = await copyAll(tx, work);
      await makeHomes(tx); // without its row all that a tenant sends would be refused, or lost
      // So that the first searches are planned for what is there.
      await tx`analyze`;
      return rows;
    },
    { attemptsMax: 1 },
  );
}

/**
 * Fills an empty database from a file of `exportTo`, in one transaction; makes the file's schema first, and applies newer migrations afterwards. `filled` is called after the rows
 * of each table and may refuse them.
 * @throws StartError when the file is not whole or of another schema, or the database fails or is not empty; the signal's reason when that
 * aborts: the database stays as it was then
 */
export async function importFrom(
  url: string,
  path: string,
  version: string,
  filled: (tx: Db, table: string) => Promise<void>,
  { signal, onProgress }: CopyOptions = {},
): Promise<Copied> {
  const opened = await open(path).catch((error) => {
    throw new StartError(`cannot read ${path}: ${error.message}`);
  });
  const decompress = createZstdDecompress();
  const reading = pipeline(createReadStream("", { fd: opened }), decompress);
  reading.catch(() => undefined); // what reads from it fails, too
  const { sql, close } = connectOnce(url, sessionName("import"));
  const abort = () => {
    decompress.destroy();
    void close();
  };
  signal?.addEventListener("abort", abort, { once: true });
  let copied: Copied;
  try {
    const file = readExport(decompress);
    const { takenAt, migrations } = readHeader(await file.line(), version, knownMigrations());
    const count = migrations.length;
    await checkServer(sql);
    await transaction(sql, async (tx) => {
      await noLimits(tx);
      await checkEmpty(tx, count);
    });
    await migrate(url, { count });
    const readable = async (tx: Db, table: string) => {
      if (table === "unmatched_changes") await checkMatched(tx);
      await filled(tx, table);
    };
    copied = { rows: await fill(sql, { file, migrations: count, filled: readable, onProgress }), takenAt };
  } catch (error) {
    throw signal?.aborted ? signal.reason : failure(error, path);
  } finally {
    signal?.removeEventListener("abort", abort);
    decompress.destroy();
    await close();
  }
  await migrate(url, { unused: true });
  return copied;
}

const failure = (error: unknown, path: string) =>
  inOneLine(error, {
    ofFile: (reason) => new StartError(`cannot read ${path}: ${reason}; nothing was imported`),
    ofDatabase: (reason) => new StartError(`the import failed (${reason}); nothing was imported`),
  });
