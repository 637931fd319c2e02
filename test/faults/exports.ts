import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { zstdDecompressSync } from "node:zlib";
import { connectOnce } from "../../src/db/connect.ts";
import { program } from "../support/program.ts";
import { runCommand } from "./commands.ts";
import type { Play } from "./scenes.ts";
import { ownPostgres } from "./stage.ts";

const [tenants, clientsEach, changesEach] = [100, 1000, 1500];
const [exports, imports] = [20, 3];

/** Keeps every processor busy until it is disposed. */
function busy(): Disposable {
  const spin = "for (;;);";
  const workers = Array.from({ length: availableParallelism() }, () => new Worker(spin, { eval: true }));
  return { [Symbol.dispose]: () => workers.forEach((worker) => void worker.terminate()) };
}

const run = async (url: string, ...args: string[]) => runCommand(await program(), url, args);

/** All rows of an export: without its first and last line, which hold its moment. */
function rowsOf(file: string): string {
  const text = zstdDecompressSync(readFileSync(file));
  rmSync(file);
  const rows = text.subarray(text.indexOf("\n") + 1, text.lastIndexOf("\n", text.length - 2));
  return createHash("sha256").update(rows).digest("hex");
}

/** Twenty exports and three imports of 250,100 rows while every processor is busy: all are whole and equal. @throws when one is not */
export async function playExports({ say }: Play): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const { dataDir, url, adminUrl } = await ownPostgres(stack);
  const { sql, close } = connectOnce(url, "exports");
  stack.defer(close);
  await sql`insert into tenants select gen_random_uuid(), 'tenant ' || n, 0 from generate_series(1, ${tenants}::int4) n`;
  await sql`
    insert into api_clients select t.id, 'c' || n, 'client ' || n, 'USER', 'manager', 0
    from tenants t, generate_series(1, ${clientsEach}::int4) n`;
  // Which cannot be compressed: the writer is slower than PostgreSQL.
  await sql`
    insert into feed select t.id, n, 0, sha512((t.id || n::text)::bytea) || sha512((n || t.id::text)::bytea)
    from tenants t, generate_series(1, ${changesEach}::int4) n`;
  using _load = busy();
  const found = new Set<string>();
  const file = join(dataDir, "export");
  for (let i = 1; i <= exports; i += 1) {
    await run(url, "export", file);
    found.add(rowsOf(file));
  }
  say(`${exports} exports are whole and equal`);
  await run(url, "export", file);
  for (let i = 1; i <= imports; i += 1) {
    const name = `imported_${i}`;
    const admin = connectOnce(adminUrl, "exports");
    await admin.sql.unsafe(`create database ${name} owner belfry`);
    await admin.close();
    const imported = url.replace(/\/belfry$/, `/${name}`);
    await run(imported, "import", file);
    const again = join(dataDir, "again");
    await run(imported, "export", again);
    found.add(rowsOf(again));
  }
  if (found.size !== 1) throw new Error(`the exports differ: ${[...found].join(", ")}`);
  say(`${imports} imports are whole and equal`);
  return 1;
}
