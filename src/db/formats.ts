import { failedPrecondition } from "../errors.ts";
import { every } from "../every.ts";
import type { Log } from "../log.ts";
import type { Db } from "./connect.ts";
import { formatsNumber, isOfBefore } from "./session-name.ts";

/** Knows whether servers of the version before, which cannot read all that this one stores, may still use the database. */
export interface Formats {
  /**
   * Tells whether none may any more: then new forms of what is stored anyway are written, and stored rows are brought into them. Read from
   * memory; another process knows it ten seconds later, so each reads the old forms, too.
   */
  begun(): boolean;
  /**
   * Makes sure of it before something is stored that only a new feature stores; call it after the request is checked, before its transaction.
   * `feature` begins a sentence: "sealed addresses of webhooks". @throws code 9 while a server of before was there less than a minute ago
   */
  begin(feature: string): Promise<void>;
  stop(): Promise<void>;
}

/** The first version that reads what this one stores. */
const firstVersion = "0.4.0";
/**
 * A migration of that version, which those before do not know. Its row in `migrations` holds the state: they start while its
 * `oldest_server` allows it; until then its `applied_at` is when one of them was there last.
 */
const migration = "0026_closed-by";

const minuteMs = 60_000;
const dayMs = 86_400_000;

/** Begins to store what servers of before cannot read: none of them may start from now on. Returns whether it was new. May be repeated. */
export async function beginFormats(db: Db): Promise<boolean> {
  const raised = await db`
    update migrations set oldest_server = ${firstVersion} where name = ${migration} and oldest_server <> ${firstVersion}`;
  return raised.count > 0;
}

/** Tells whether the last leader was a server of the version before, or there was none: one may have run while none of this version did. */
async function isTakenOver(db: Db): Promise<boolean> {
  const [last] = await db<{ holder: string }[]>`select holder from leases where name = 'jobs.report'`;
  return last === undefined || Number(/^\d+ /.exec(last.holder)?.[0] ?? 0) < formatsNumber;
}

/** Begins to look, again and again, whether servers of before use the database. */
export async function startFormats(db: Db, log: Pick<Log, "info">, lookMs = 10_000): Promise<Formats> {
  let begun = false;

  /** Returns how long none has been seen, ms, as far as a process of this version has looked. */
  async function quietMs(isThere = false): Promise<number> {
    const [state] = await db<{ begun: boolean; quietMs: number }[]>`
      select oldest_server = ${firstVersion} as begun, (extract(epoch from now() - applied_at) * 1000)::float8 as "quietMs"
      from migrations where name = ${migration}`;
    begun ||= state?.begun ?? false;
    if (begun) return Number.POSITIVE_INFINITY;
    const sessions = await db<{ name: string }[]>`
      select distinct application_name as name from pg_stat_activity
      where datname = current_database() and application_name like 'belfry%'`;
    if (!isThere && !sessions.some(({ name }) => isOfBefore(name))) return state?.quietMs ?? 0;
    await db`update migrations set applied_at = now() where name = ${migration} and oldest_server <> ${firstVersion}`;
    return 0;
  }

  async function beginAfter(ms: number, quiet: number): Promise<boolean> {
    if (!begun && quiet >= ms) {
      if (await beginFormats(db)) log.info({ oldest: firstVersion }, "older servers can no longer use the database");
      begun = true;
    }
    return begun;
  }

  await beginAfter(dayMs, await quietMs(await isTakenOver(db)));
  const rounds = every(lookMs, async () => {
    if (!begun) await beginAfter(dayMs, await quietMs());
  });
  return {
    begun: () => begun,
    async begin(feature) {
      if (begun || (await beginAfter(minuteMs, await quietMs()))) return;
      throw failedPrecondition(
        `${feature} cannot be read by a server before ${firstVersion}, and one has used this database within the last minute; when all are stopped, wait for a minute and send again`,
      );
    },
    stop: () => rounds.stop(),
  };
}
