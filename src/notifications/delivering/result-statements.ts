import { textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { announce } from "../../jobs/queue.ts";
import { newest } from "./attempts.ts";
import type { Result } from "./classify-response.ts";
import { type DueDelivery, deliveriesKind, lockDestinationStates, storeDestinationStates } from "./delivery-queue.ts";
import { judged, type Sign } from "./limits.ts";
import { isBeyond, recordBeyond } from "./record-beyond.ts";

/** How long a count of the last 24 hours may be behind: their slots begin at multiples of this. */
const slotMs = 10 * 60_000;
/** How many deliveries end at once. */
const portion = 1000;
/** What is said of deliveries whose destination was disabled. */
export const disabledError = (reason: string) => `the destination is disabled: ${reason}`;
/** Receivers that were found alive need no note, unless something else is noted of them. */
export type Suspects = ReadonlySet<string>;

/** What a delivery is about, as columns of both tables. */
const facts = (
  db: Db,
) => db`id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject, event_id, number,
  entity_id, metric_name, occasion, told`;
/**
 * Writes what became of deliveries, all or nothing, for those that are still the caller's: the done ones go to the history,
 * the others wait for their time. May be repeated. Breakers are notified of what failed, and of what did not where `suspects`
 * names the destination.
 */
export async function record(
  db: Sql,
  tenantId: string,
  results: readonly Result[],
  suspects: Suspects,
  nowMs: number,
): Promise<void> {
  const beyond = results.filter(isBeyond);
  if (beyond.length > 0) {
    await transaction(db, async (tx) => {
      const kept = await recordBeyond(tx, tenantId, beyond);
      if (kept.length > 0) await write(tx, tenantId, kept, nowMs);
    });
    const others = results.filter((result) => !isBeyond(result));
    if (others.length > 0) await record(db, tenantId, others, suspects, nowMs);
    return;
  }
  const due = results.flatMap(({ dueMs }) => dueMs ?? []);
  const signs = new Map<string, Sign[]>();
  const failing = new Set(results.flatMap(({ row, sign }) => (sign === "temporary" ? row.destinationName : [])));
  for (const { row, sign } of results) {
    const name = row.destinationName;
    if (sign === undefined || !(failing.has(name) || suspects.has(name))) continue;
    signs.set(name, [...(signs.get(name) ?? []), sign]);
  }
  const disabled = new Map(results.flatMap(({ row, disable }) => (disable ? [[row.destinationName, disable]] : [])));
  if (due.length === 0 && signs.size === 0 && disabled.size === 0) return await write(db, tenantId, results, nowMs);
  await transaction(db, async (tx) => {
    if (disabled.size > 0) await disable(tx, tenantId, disabled);
    await write(tx, tenantId, results, nowMs);
    for (const [destination, reason] of disabled) {
      const end = { destination, status: "FAILED", error: disabledError(reason) } as const;
      while ((await endDeliveries(tx, tenantId, end, nowMs)) === portion);
    }
    if (due.length > 0) await announce(tx, { tenantId, kind: deliveriesKind }, BigInt(Math.min(...due)));
    if (signs.size === 0) return;
    const states = await lockDestinationStates(tx, tenantId, [...signs.keys()].sort());
    const now = new Map([...states].map(([name, state]) => [name, judged(state, signs.get(name) ?? [], nowMs)]));
    await storeDestinationStates(tx, tenantId, now);
  });
}

async function disable(tx: Db, tenantId: string, reasons: ReadonlyMap<string, string>): Promise<void> {
  await tx`
    update destinations set disabled_reason = ${JSON.stringify(Object.fromEntries(reasons))}::jsonb ->> name
    where tenant_id = ${tenantId} and name = any(${textArray([...reasons.keys()])}::text[])`;
}

async function write(db: Db, tenantId: string, results: readonly Result[], nowMs: number): Promise<void> {
  const now = BigInt(nowMs);
  const ofId = ({ row, attempt, ...rest }: Result) => ({
    fence: String(row.fence),
    status: rest.status,
    error: rest.error,
    attempts: newest([...row.attempts, ...(attempt ? [attempt] : [])]),
    tries: row.tries + (attempt === undefined ? 0 : 1),
    slow: row.slowTries + (rest.slow ? 1 : 0),
    due: rest.dueMs ?? 0,
    state: rest.thread?.state ?? null,
    sent: rest.thread?.sent ?? false,
  });
  const idsOf = (some: readonly Result[]) => uuidArray(some.map(({ row }) => row.id));
  const [waiting, done] = [true, false].map((is) => results.filter(({ status }) => (status === "PENDING") === is));
  // By primary keys alone: what is written is in one object, by ids. One statement: what is not the caller's any more is
  // left out of all of it.
  const own = db`(select ${JSON.stringify(Object.fromEntries(results.map((each) => [each.row.id, ofId(each)])))}::jsonb as of_id)`;
  const held = (some: readonly Result[] = []) => db`tenant_id = ${tenantId} and id = any(${idsOf(some)}::uuid[])
    and fence = (of_id -> id::text ->> 'fence')::bigint`;
  await db`
    with gone as (
      delete from due_deliveries using ${own} as written where ${held(done)}
      returning ${facts(db)}, of_id -> id::text as own
    ), waiting as (
      update due_deliveries set lease_until_ms = 0, due_ms = (of_id -> id::text ->> 'due')::bigint,
        error = of_id -> id::text ->> 'error', tries = (of_id -> id::text ->> 'tries')::int4,
        slow_tries = (of_id -> id::text ->> 'slow')::int4, attempts = of_id -> id::text -> 'attempts'
      from ${own} as written where ${held(waiting)}
      returning destination_name, subject, of_id -> id::text as own
    ), kept as (
      insert into delivery_history (tenant_id, ${facts(db)}, attempts, status, error, ended_ms)
      select ${tenantId}::uuid, ${facts(db)}, own -> 'attempts', own ->> 'status', own ->> 'error', ${now} from gone
    ), counted as (
      insert into delivery_counts as c (tenant_id, about, name, slot_ms, count)
      select ${tenantId}::uuid, about, name, ${now - (now % BigInt(slotMs))}, count(*)::int4
      from gone cross join lateral (
        values ('rule', rule_name), ('destination', destination_name)
        union all select 'trigger', t from unnest(trigger_names) as t
      ) as counts (about, name)
      where own ->> 'status' = 'SENT' group by about, name order by about, name
      on conflict (tenant_id, about, name, slot_ms) do update set count = c.count + excluded.count
    )
    insert into delivery_threads as t (tenant_id, destination_name, subject, state, sent, updated_ms)
    select distinct on (destination_name, subject) ${tenantId}::uuid, destination_name, subject, own -> 'state',
      (own ->> 'sent')::boolean, ${now}
    from (
      select destination_name, subject, own from gone union all select destination_name, subject, own from waiting
    ) as told
    where own ->> 'state' is not null
    order by destination_name, subject
    on conflict (tenant_id, destination_name, subject) do update
      set state = excluded.state, sent = excluded.state <> '{}' and (t.sent or excluded.sent), updated_ms = excluded.updated_ms`;
}

/** What becomes of deliveries that wait for a destination. */
export interface Ending {
  readonly destination: string;
  readonly status: "FAILED" | "CANCELLED";
  readonly error: string;
  /** Of those alone that have been due since before this, ms. */
  readonly dueBeforeMs?: number;
}

/** Ends deliveries of a destination, a portion of them; returns how many. What is being tried now is left to the next try. */
export async function endDeliveries(
  tx: Db,
  tenantId: string,
  { destination, status, error, dueBeforeMs = Number.MAX_SAFE_INTEGER }: Ending,
  nowMs: number,
): Promise<number> {
  const now = BigInt(nowMs);
  const gone = await tx`
    with ending as materialized (
      select id from due_deliveries
      where tenant_id = ${tenantId} and destination_name = ${destination} and lease_until_ms <= ${now}
        and due_ms < ${BigInt(dueBeforeMs)} and tries >= 0
      order by due_ms, id limit ${portion} for update skip locked
    ), gone as (
      delete from due_deliveries where tenant_id = ${tenantId} and id = any(array(select id from ending))
      returning ${facts(tx)}, attempts
    )
    insert into delivery_history (tenant_id, ${facts(tx)}, attempts, status, error, ended_ms)
    select ${tenantId}::uuid, ${facts(tx)}, attempts, ${status}, ${error}, ${now} from gone returning 1`;
  return gone.count;
}

/** Drops a delivery that is done and cannot be kept: the history of its day is gone. */
export async function forgetDelivery(db: Db, tenantId: string, { id, fence }: DueDelivery): Promise<void> {
  await db`delete from due_deliveries where tenant_id = ${tenantId} and id = ${id} and fence = ${fence}`;
}
