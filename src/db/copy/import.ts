import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createZstdDecompress } from "node:zlib";
import { checkServer, connectOnce, type Db } from "../connect.ts";
import { knownMigrations, migrate } from "../migrate.ts";
import { StartError } from "../start-error.ts";
import { transaction } from "../transaction.ts";
import type { Copied } from "./export.ts";
import {
  type Closing,
  countLines,
  damaged,
  exportForm,
  formVersion,
  type Header,
  type Reader,
  readExport,
  type TableHead,
} from "./form.ts";
import { quoted, tablesToCopy } from "./tables.ts";

function parse<T>(text: string | undefined, what: string): T {
  if (text === undefined) throw damaged(`${what} is missing`);
  try {
    const value = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {}
  throw damaged(`${what} cannot be read`);
}

/** @throws StartError when this version cannot import it */
async function readHeader(file: Reader, version: string): Promise<Header> {
  const header = parse<Header>(await file.line(), "its first line");
  if (header.form !== exportForm) throw damaged("its first line is that of another form");
  if (header.formVersion !== formVersion) {
    throw new StartError(
      `the file has version ${header.formVersion} of the form of exports, and Belfry ${version} reads version ${formVersion}: import it with Belfry ${header.version}; nothing was imported`,
    );
  }
  const known = knownMigrations();
  const begun = header.migrations.every(
    ({ name, digest }, i) => name === known[i]?.name && digest === known[i]?.digest,
  );
  if (!begun) {
    throw new StartError(
      `the file has the schema of Belfry ${header.version}, which Belfry ${version} does not know: import it with Belfry ${header.version} or a newer one; nothing was imported`,
    );
  }
  return header;
}

/** @throws StartError when a table has rows, or the schema is newer than that of so many migrations */
async function checkEmpty(db: Db, migrations: number): Promise<void> {
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
    const [row] = await db.unsafe<{ filled: boolean }[]>(`select exists (select from ${quoted(table)}) as filled`);
    if (row?.filled) {
      throw new StartError(
        `the database is not empty: its table ${table} has rows; import into a new one that no server has used; nothing was imported`,
      );
    }
  }
}

/** Copies the rows of one table; answers how many. */
async function copyIn(tx: Db, { table, columns, partitions = [] }: TableHead, file: Reader): Promise<number> {
  for (const { name, fromMs, toMs } of partitions) {
    await tx.unsafe(
      `create table if not exists ${quoted(name)} partition of ${quoted(table)} for values from (${Number(fromMs)}) to (${Number(toMs)})`,
    );
  }
  const query = tx.unsafe(`copy ${quoted(table)} (${columns.map(quoted).join(", ")}) from stdin`);
  const into = await query.writable();
  let count = 0;
  async function* counted() {
    for await (const piece of file.rows()) {
      count += countLines(piece);
      yield piece;
    }
  }
  await pipeline(counted(), into);
  return count;
}

/** Copies every table; answers how many rows each has. @throws StartError when the file is not whole */
async function copyAll(tx: Db, file: Reader, migrations: number, filled: (tx: Db, table: string) => Promise<void>) {
  const known = new Map((await tablesToCopy(tx)).map((each) => [each.table, each]));
  if (known.size > 0)
    await tx.unsafe(`lock table ${[...known.keys()].map(quoted).join(", ")} in access exclusive mode`);
  await checkEmpty(tx, migrations);
  const rows: Record<string, number> = {};
  for (;;) {
    const next = parse<TableHead | Closing>(await file.line(), "its end");
    if (!("table" in next)) {
      const sound =
        next.sha256 === file.sha256BeforeLine() &&
        JSON.stringify(next.rows) === JSON.stringify(rows) &&
        (await file.line()) === undefined;
      if (!sound) throw damaged("its rows are not those of which its last line tells");
      return rows;
    }
    const { table, columns } = next;
    const own = known.get(table);
    if (own === undefined || rows[table] !== undefined || `${columns}` !== `${own.columns}`) {
      throw damaged(`it has a table ${table} that the schema has not`);
    }
    rows[table] = await copyIn(tx, next, file);
    await filled(tx, table);
  }
}

/**
 * Fills an empty database from a file of `exportTo`, in one transaction; makes the file's schema first, and applies newer migrations afterwards. `filled` is called after the rows
 * of each table and may refuse them.
 * @throws StartError when the file is not whole or of another schema, or the database is not empty: it stays empty then
 */
export async function importFrom(
  url: string,
  path: string,
  version: string,
  filled: (tx: Db, table: string) => Promise<void>,
): Promise<Copied> {
  const opened = await open(path).catch((error) => {
    throw new StartError(`cannot read ${path}: ${error.message}`);
  });
  const decompress = createZstdDecompress();
  const reading = pipeline(createReadStream("", { fd: opened }), decompress);
  reading.catch(() => undefined); // what reads from it fails, too
  const { sql, close } = connectOnce(url, "belfry import");
  try {
    const file = readExport(decompress);
    const { takenAt, migrations } = await readHeader(file, version);
    const count = migrations.length;
    await checkServer(sql);
    await checkEmpty(sql, count);
    await migrate(url, { count });
    const copied = await transaction(
      sql,
      async (tx) => {
        for (const limit of ["statement_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"]) {
          await tx.unsafe(`set local ${limit} = 0`);
        }
        const rows = await copyAll(tx, file, count, filled);
        // So that the first searches are planned for what is there.
        await tx`analyze`;
        return { rows, takenAt };
      },
      { attemptsMax: 1 },
    );
    await migrate(url);
    return copied;
  } finally {
    decompress.destroy();
    await close();
  }
}
