import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { readConfig } from "../../src/config/settings.ts";
import { connect, type Sql } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { removeDatabase } from "./leftovers.ts";
import { move, type Place } from "./machine.ts";
import { progress } from "./progress.ts";

/** However the bench ends: by itself, by an error that no one catches, or by a signal. Only kill -9 leaves it to `bench/main.ts`. */
function removeAtExit(dir: string): void {
  process.once("exit", () => removeDatabase(dir));
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
}

/** A fresh database that waits for its disk as the product's does, with one tenant. */
export interface Database extends AsyncDisposable {
  sql: Sql;
  version: string;
  /** Of its first process. */
  pid: number | undefined;
  /** The environment of a server on it. */
  env: Record<string, string>;
  /** The header of a manager's key. */
  key: Record<string, string>;
}

const log = { info() {}, warn: console.warn, error: console.error };

/** A fresh PostgreSQL that waits for its disk as the product's does, without a schema. */
export interface Postgres extends AsyncDisposable {
  url: string;
  dir: string;
  /** Of its first process. */
  pid: number | undefined;
}

export async function startPostgres(place: Place = "database"): Promise<Postgres> {
  await using starting = new AsyncDisposableStack();
  const dir = mkdtempSync(join(tmpdir(), "belfry-bench-"));
  removeAtExit(dir);
  chmodSync(dir, 0o711); // the database's own account must enter it
  starting.defer(() => rmSync(dir, { recursive: true, force: true }));
  const { url, pid } = starting.use(await startEmbedded({ dataDir: dir, log }));
  progress("PostgreSQL has started");
  move(pid, place);
  const running = starting.move();
  return { url, dir, pid, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

export async function startDatabase(place: Place = "database"): Promise<Database> {
  await using starting = new AsyncDisposableStack();
  const { url, dir, pid } = starting.use(await startPostgres(place));
  await migrate(url);
  const env = {
    DATABASE_URL: url,
    BELFRY_DATA_DIR: dir,
    BELFRY_HOST: "127.0.0.1",
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
  };
  const pool = connect(url, readConfig(env));
  starting.defer(() => pool.close());
  const { sql } = pool;
  const key = await tenantKey(sql, "bench");
  const [row] = await sql<{ version: string }[]>`select split_part(version(), ' ', 2) as version`;
  const running = starting.move();
  return {
    sql,
    version: row?.version ?? "",
    pid,
    env,
    key,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Makes a tenant; returns the header of a manager's key of it. */
export async function tenantKey(sql: Sql, name: string): Promise<Record<string, string>> {
  const tenant = await createTenant(sql, name);
  const client = await createClient(sql, tenant.id, { name: "bench", type: "USER", role: "manager" });
  const { text } = await createKey(sql, tenant.id, client.id, { description: "bench", expiresMs: null });
  return { "service-api-key": text };
}
