import type { Fragment } from "postgres";
import { textArray } from "../db/batch.ts";
import type { Db, Pool } from "../db/connect.ts";
import { ofAllTenants } from "../db/worker-nodes.ts";
import type { Lane } from "./queue.ts";

/** How many tenants with work of one kind one look finds. */
const lanesMax = 10_000;

type DueLane = Lane & { dueMs: number };

/**
 * The lanes with work that is due by then, the first due first, with the time that stands there: of each kind enough that
 * every tenant gets its turn.
 */
export async function dueLanes(
  { system, workers }: Pick<Pool, "system" | "workers">,
  kinds: readonly string[],
  untilMs: number,
): Promise<DueLane[]> {
  const due = (db: Db, from: Fragment) => db<DueLane[]>`
    select tenant_id as "tenantId", kind, due_ms::float8 as "dueMs"
    from unnest(${textArray(kinds)}::text[]) as wanted (name) cross join lateral (
      select tenant_id, kind, due_ms from ${from}
      where kind = wanted.name and due_ms <= ${BigInt(untilMs)} and due_ms >= 0
      order by due_ms, tenant_id limit ${lanesMax}
    ) as due
    order by due_ms`;
  const found = await ofAllTenants(workers, system, "due_work", due);
  return [...found].sort((a, b) => a.dueMs - b.dueMs);
}

/** How much work of a kind there is, over all tenants. */
export interface Backlog {
  kind: string;
  /** Jobs that are due and not done. */
  due: number;
  /** Jobs whose time is still to come. */
  later: number;
  /** Those among them that have failed. */
  failing: number;
  /** How long the oldest that is due, or has failed, has waited, ms. */
  oldestMs: number;
}

/** Depth and age of the queue, kind by kind. Reads every job: once a minute, not once a call. */
export async function backlogs(
  { background, workers }: Pick<Pool, "background" | "workers">,
  nowMs: number,
): Promise<Backlog[]> {
  const now = BigInt(nowMs);
  const read = (db: Db, from: Fragment) => db<Backlog[]>`
    select kind, (count(*) filter (where due_ms <= ${now}))::float8 as due,
      (count(*) filter (where due_ms > ${now}))::float8 as later,
      (count(*) filter (where failures > 0))::float8 as failing,
      coalesce(${now} - min(case when failures > 0 then created_ms else greatest(created_ms, due_ms) end)
        filter (where due_ms <= ${now} or failures > 0), 0)::float8 as "oldestMs"
    from ${from} group by kind order by kind`;
  const found = await ofAllTenants(workers, background, "jobs", read);
  const byKind = Map.groupBy(found, ({ kind }) => kind);
  return [...byKind].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, parts]) => sumOf(kind, parts));
}

function sumOf(kind: string, parts: readonly Backlog[]): Backlog {
  const sum = { kind, due: 0, later: 0, failing: 0, oldestMs: 0 };
  for (const part of parts) {
    sum.due += part.due;
    sum.later += part.later;
    sum.failing += part.failing;
    sum.oldestMs = Math.max(sum.oldestMs, part.oldestMs);
  }
  return sum;
}
