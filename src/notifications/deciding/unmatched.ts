import type { Db } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import { setAside } from "../../events/consumers/set-aside.ts";
import { decodeFacts, type Fact } from "../../events/facts.ts";
import type { Again, Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import type { Log } from "../../log.ts";
import { type Deciding, rulesName } from "./deciding.ts";
import { takeFacts } from "./take-facts.ts";

/*
 * Servers of 0.2 store changes that they have not matched in their storing transaction in rows of their own, each with a job. As long as one
 * of them may run, these rows come before what the feed has of the same tenant.
 */

const matchKind = "notifications.match";
/** Another server has the oldest row, or there is more of it: the job runs again after this time. */
const busyMs = 100;
/** A row that has failed this often is set aside. */
const triesMax = 3;

interface Row {
  position: bigint;
  id: string;
  createdMs: number;
  /** How many of its changes have been matched. */
  done: number;
  changes: string;
}

/** When the oldest change of a tenant that a server of 0.2 has left was stored; Infinity: there is none. */
export async function unmatchedSinceMs(db: Db, tenantId: string): Promise<number> {
  const [oldest] = await db<{ ms: number }[]>`
    select created_ms::float8 as ms from unmatched_changes where tenant_id = ${tenantId} order by position, id limit 1`;
  return oldest?.ms ?? Infinity;
}

/** Matches such rows, the oldest first, one a run, on one server at a time. */
export function unmatchedJob(deciding: Deciding, log?: Pick<Log, "error">): JobKind {
  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number): Promise<readonly Again[]> {
    const again = (dueMs: number) => jobs.map(({ id, payload }) => ({ id, payload, dueMs }));
    // By the primary key.
    const [row] = await tx<Row[]>`
      select position, id, created_ms::float8 as "createdMs", done, changes from unmatched_changes
      where tenant_id = ${tenantId} and (position, id) = (
        select position, id from unmatched_changes where tenant_id = ${tenantId} order by position, id limit 1
      ) for no key update skip locked`;
    if (row === undefined) return (await unmatchedSinceMs(tx, tenantId)) === Infinity ? [] : again(nowMs + busyMs);
    const facts = await factsOf(tenantId, row);
    const times = { storedMs: row.createdMs, nowMs };
    const { position, id } = row;
    if (jobs.some(({ failures }) => failures >= triesMax)) await leave(tx, tenantId, facts, times);
    else {
      const rules = await deciding.memory.now(tx, tenantId);
      const taken = await takeFacts(deciding, tx, tenantId, rules, facts, times);
      if (taken < facts.length) {
        await tx`
          update unmatched_changes set done = done + ${taken}::int4
          where tenant_id = ${tenantId} and position = ${position} and id = ${id}`;
        return again(nowMs);
      }
    }
    await tx`delete from unmatched_changes where tenant_id = ${tenantId} and position = ${position} and id = ${id}`;
    return again(nowMs);
  }

  async function factsOf(tenantId: string, { id, changes, done }: Row): Promise<Fact[]> {
    try {
      return (await decodeFacts(changes, undefined, paced(undefined, tenantId))).slice(done);
    } catch (error) {
      log?.error({ tenant: tenantId, row: id, cause: (error as Error).message }, "unmatched changes cannot be read");
      return [];
    }
  }

  async function leave(tx: Db, tenantId: string, facts: readonly Fact[], times: { storedMs: number; nowMs: number }) {
    for (const fact of facts) await setAside(tx, tenantId, rulesName, { fact, cause: "", ...times, oldForm: true });
  }

  return { name: matchKind, sizeMax: 1, run };
}
