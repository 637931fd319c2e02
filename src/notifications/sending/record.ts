import { bigintArray, int4Array, jsonArray, textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { announce } from "../../jobs/queue.ts";
import { newest } from "./attempts.ts";
import { type DueDelivery, deliveriesKind, lockStates, storeStates } from "./due.ts";
import { judged, type Sign } from "./limits.ts";
import { isBeyond, recordBeyond } from "./record-beyond.ts";
import type { Result } from "./result.ts";

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
/** The same of d, which stands beside others. */
const factsOfDue = (
  db: Db,
) => db`d.id, d.created_ms, d.rule_id, d.rule_name, d.trigger_names, d.destination_name, d.subject,
  d.event_id, d.number, d.entity_id, d.metric_name, d.occasion, d.told`;

/**
 * Writes what became of deliveries, all or nothing, for those that are still the caller's: the done ones go to the history,
 * the others wait for their time. May be repeated. Breakers are told of what failed, and of what did not where `suspects`
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
    const states = await lockStates(tx, tenantId, [...signs.keys()].sort());
    const now = new Map([...states].map(([name, state]) => [name, judged(state, signs.get(name) ?? [], nowMs)]));
    await storeStates(tx, tenantId, now);
  });
}

async function disable(tx: Db, tenantId: string, reasons: ReadonlyMap<string, string>): Promise<void> {
  const names = [...reasons.keys()].sort();
  await tx`
    update destinations d set disabled_reason = gone.reason
    from unnest(${textArray(names)}::text[], ${textArray(names.map((name) => reasons.get(name) ?? ""))}::text[])
      as gone (name, reason)
    where d.tenant_id = ${tenantId} and d.name = gone.name`;
}

async function write(db: Db, tenantId: string, results: readonly Result[], nowMs: number): Promise<void> {
  const now = BigInt(nowMs);
  // By primary keys alone. One statement: what is not the caller's any more is left out of all of it.
  await db`
    with own as materialized (
      select * from unnest(
        ${uuidArray(results.map(({ row }) => row.id))}::uuid[],
        ${bigintArray(results.map(({ row }) => row.fence))}::bigint[],
        ${textArray(results.map(({ status }) => status))}::text[],
        ${textArray(results.map(({ error }) => error))}::text[],
        ${jsonArray(results.map(({ row, attempt }) => newest([...row.attempts, ...(attempt ? [attempt] : [])])))}::jsonb[],
        ${int4Array(results.map(({ row, attempt }) => row.tries + (attempt === undefined ? 0 : 1)))}::int4[],
        ${int4Array(results.map(({ row, slow }) => row.slowTries + (slow ? 1 : 0)))}::int4[],
        ${bigintArray(results.map(({ dueMs }) => BigInt(dueMs ?? 0)))}::bigint[],
        ${jsonArray(results.map(({ thread }) => thread?.state ?? null))}::jsonb[],
        ${int4Array(results.map(({ thread }) => (thread?.sent ? 1 : 0)))}::int4[]
      ) as own (id, fence, status, error, attempts, tries, slow_tries, due_ms, state, sent)
    ), gone as (
      delete from due_deliveries d using own
      where d.tenant_id = ${tenantId} and d.id = own.id and d.fence = own.fence and own.status <> 'PENDING'
      returning ${factsOfDue(db)}, own.attempts, own.status, own.error, own.state, own.sent
    ), waiting as (
      update due_deliveries d set lease_until_ms = 0, due_ms = own.due_ms, error = own.error, tries = own.tries,
        slow_tries = own.slow_tries, attempts = own.attempts
      from own
      where d.tenant_id = ${tenantId} and d.id = own.id and d.fence = own.fence and own.status = 'PENDING'
      returning d.destination_name, d.subject, own.state, own.sent
    ), kept as (
      insert into delivery_history (tenant_id, ${facts(db)}, attempts, status, error, ended_ms)
      select ${tenantId}::uuid, ${facts(db)}, attempts, status, error, ${now} from gone
    ), counted as (
      insert into delivery_counts as c (tenant_id, about, name, slot_ms, count)
      select ${tenantId}::uuid, about, name, ${now - (now % BigInt(slotMs))}, count(*)::int4
      from gone cross join lateral (
        values ('rule', rule_name), ('destination', destination_name)
        union all select 'trigger', t from unnest(trigger_names) as t
      ) as counts (about, name)
      where status = 'SENT' group by about, name order by about, name
      on conflict (tenant_id, about, name, slot_ms) do update set count = c.count + excluded.count
    )
    insert into delivery_threads as t (tenant_id, destination_name, subject, state, sent, updated_ms)
    select distinct on (destination_name, subject) ${tenantId}::uuid, destination_name, subject, state, sent = 1, ${now}
    from (
      select destination_name, subject, state, sent from gone where state is not null
      union all select destination_name, subject, state, sent from waiting where state is not null
    ) as told
    order by destination_name, subject
    on conflict (tenant_id, destination_name, subject) do update
      set state = excluded.state, sent = t.sent or excluded.sent, updated_ms = excluded.updated_ms`;
}

/** What becomes of deliveries that wait for a destination. */
export interface Ending {
  readonly destination: string;
  readonly status: "FAILED" | "CANCELLED";
  readonly error: string;
  /** Of those alone that have been due since before this, ms. */
  readonly dueBeforeMs?: number;
}

/** Ends deliveries of a destination, a portion of them; answers how many. What is being tried now is left to the next try. */
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
        and due_ms < ${BigInt(dueBeforeMs)}
      order by due_ms, id limit ${portion} for update skip locked
    ), gone as (
      delete from due_deliveries d using ending where d.tenant_id = ${tenantId} and d.id = ending.id
      returning ${factsOfDue(tx)}, d.attempts
    )
    insert into delivery_history (tenant_id, ${facts(tx)}, attempts, status, error, ended_ms)
    select ${tenantId}::uuid, ${facts(tx)}, attempts, ${status}, ${error}, ${now} from gone returning 1`;
  return gone.count;
}

/** Drops a delivery that is done and cannot be kept: the history of its day is gone. */
export async function forgetDelivery(db: Db, tenantId: string, { id, fence }: DueDelivery): Promise<void> {
  await db`delete from due_deliveries where tenant_id = ${tenantId} and id = ${id} and fence = ${fence}`;
}
