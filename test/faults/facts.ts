import { copyFileSync, mkdtempSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Db } from "../../src/db/connect.ts";
import { dataDirectoryOf } from "../../src/embedded/data-directory.ts";

/** A folder for what is worth reading after something went wrong. Not on the disk that is filled. */
export const factsDir = () => mkdtempSync(join(tmpdir(), "belfry-facts-"));

/** Writes down how things stand; what cannot be had is left out. */
export async function writeFacts(dir: string, db: Db, dataDir: string, finding: string): Promise<void> {
  const questions: Record<string, () => Promise<unknown>> = {
    jobs: async () =>
      await db`select tenant_id, kind, id, due_ms, lease_until_ms, fence, failures from jobs order by due_ms limit 100`,
    dueWork: async () => await db`select * from due_work limit 100`,
    dueDeliveries: async () =>
      await db`
      select tenant_id, id, rule_name, occasion, due_ms, lease_until_ms, fence, tries, error from due_deliveries limit 100`,
    leases: async () => await db`select * from leases`,
    windows: async () =>
      await db`select tenant_id, id, run_state from maintenance_windows where run_state <> 2 limit 100`,
    activity: async () =>
      await db`
      select pid, application_name, state, wait_event_type, wait_event, xact_start, query_start, left(query, 300) as query
      from pg_stat_activity where state <> 'idle'`,
    sizes: async () =>
      await db`
      select relname, pg_total_relation_size(oid)::float8 as bytes from pg_class
      where relkind = 'r' order by 2 desc limit 20`,
  };
  const found: Record<string, unknown> = { finding, nowMs: Date.now() };
  for (const [name, ask] of Object.entries(questions)) {
    found[name] = await within(5000, () => name, ask()).catch((error) => (error as Error).message);
  }
  const text = JSON.stringify(found, (_, value) => (typeof value === "bigint" ? Number(value) : value), 1);
  writeFileSync(join(dir, "facts.json"), text);
  try {
    copyFileSync(dataDirectoryOf(dataDir).logFile, join(dir, "postgres.log"));
  } catch {
    // There is none.
  }
}

/** How full the disk of a directory is. */
export function diskOf(dir: string): string {
  const { blocks, bfree, bsize } = statfsSync(dir);
  const mb = (count: number) => ((count * bsize) / 1024 / 1024).toFixed(0);
  return `${mb(blocks - bfree)} of ${mb(blocks)} MB of disk`;
}

/** @throws when it takes too long, with what it is. */
export async function within<T>(ms: number, what: () => string, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  const timer = new AbortController();
  const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`${what()} takes more than ${ms} ms`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
  }
}
