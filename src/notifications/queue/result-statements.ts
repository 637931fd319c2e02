import type { Fragment } from "postgres";
import { textArray, uuidArray } from "../../db/batch.ts";
import type { Db, Sql } from "../../db/connect.ts";
import { transaction } from "../../db/transaction.ts";
import { announce } from "../../jobs/queue.ts";
import { type HeldEnd, shareAwaited } from "../deciding/recheck.ts";
import { shareSilences } from "../silences/silences.ts";
import type { Hold } from "../subject/notice.ts";
import { lostAttempt, newest } from "./attempts.ts";
import {
  type ClaimedDelivery,
  deliveriesKind,
  lockDestinationStates,
  storeDestinationStates,
} from "./delivery-queue.ts";
import { judged, type Sign } from "./destination-state.ts";
import { isBeyond, recordBeyond } from "./record-beyond.ts";
import type { Result } from "./result.ts";
import { endMembers, forgetMembers, type MemberEnd, summarySubjectOf } from "./summaries.ts";

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
 * names the destination. Returns whether it may have made something due, or free to be taken.
 */
export async function record(
  db: Sql,
  tenantId: string,
  results: readonly Result[],
  suspects: Suspects,
  nowMs: number,
): Promise<boolean> {
  const beyond = results.filter(isBeyond);
  if (beyond.length > 0) {
    await transaction(db, async (tx) => {
      const kept = await recordBeyond(tx, tenantId, beyond);
      if (kept.length > 0) await write(tx, tenantId, kept, nowMs);
    });
    const others = results.filter((result) => !isBeyond(result));
    if (others.length > 0) await record(db, tenantId, others, suspects, nowMs);
    return true;
  }
  const ended = results.filter(endsMembers);
  const signs = new Map<string, Sign[]>();
  const failing = new Set(results.flatMap(({ row, sign }) => (sign === "temporary" ? row.destinationName : [])));
  for (const { row, sign } of results) {
    const name = row.destinationName;
    if (sign === undefined || !(failing.has(name) || suspects.has(name))) continue;
    signs.set(name, [...(signs.get(name) ?? []), sign]);
  }
  const disabled = new Map(results.flatMap(({ row, disable }) => (disable ? [[row.destinationName, disable]] : [])));
  return await transaction(db, async (tx) => {
    const current = await heldAsNow(tx, tenantId, results, nowMs);
    const due = current.flatMap(({ dueMs }) => dueMs ?? []);
    if (disabled.size > 0) await disable(tx, tenantId, disabled);
    const followed = write(tx, tenantId, current, nowMs);
    for (const [destination, reason] of disabled) {
      const end = { destination, status: "FAILED", error: disabledError(reason) } as const;
      for (let count = portion; count === portion; ) {
        count = await endDeliveries(tx, tenantId, end, nowMs);
        await countFailed(tx, tenantId, new Array<string>(count).fill(destination), nowMs);
      }
    }
    if (ended.length > 0) due.push(nowMs); // the ends of summaries
    if (due.length > 0) await announce(tx, { tenantId, kind: deliveriesKind }, BigInt(Math.min(...due)));
    if (signs.size > 0) {
      const states = await lockDestinationStates(tx, tenantId, [...signs.keys()].sort());
      const now = new Map([...states].map(([name, state]) => [name, judged(state, signs.get(name) ?? [], nowMs)]));
      await storeDestinationStates(tx, tenantId, now);
    }
    const areSent = signs.size === 0 && ended.length === 0 && current.every(({ status }) => status === "SENT");
    return (await followed) || !areSent;
  });
}

const holdOf = ({ silenceId, dueMs }: Result): Hold | undefined =>
  silenceId === undefined || dueMs === undefined ? undefined : { silenceId, untilMs: dueMs };

const endOf = ({ row: { subject, destinationName }, awaited }: Result): HeldEnd | undefined =>
  awaited && { subject: subject.key, destinationName, awaited };

/** Returns results with what matches of rules and silences hold, as these are under the lock: what they no longer hold is due now. */
async function heldAsNow(
  tx: Db,
  tenantId: string,
  results: readonly Result[],
  nowMs: number,
): Promise<readonly Result[]> {
  const ends = results.flatMap((result) => endOf(result) ?? []);
  const holds = results.flatMap((result) => holdOf(result) ?? []);
  if (ends.length === 0 && holds.length === 0) return results;
  const isHeld = ends.length === 0 ? () => false : await shareAwaited(tx, tenantId, ends);
  const heldUntil = await shareSilences(tx, tenantId, holds, nowMs);
  return results.map((result) => {
    const [end, hold] = [endOf(result), holdOf(result)];
    const { ruleName, destinationName } = result.row;
    if (end !== undefined) return isHeld(end) ? result : { ...result, dueMs: nowMs };
    return hold === undefined ? result : { ...result, dueMs: heldUntil(hold, ruleName, destinationName) };
  });
}

async function disable(tx: Db, tenantId: string, reasons: ReadonlyMap<string, string>): Promise<void> {
  await tx`
    update destinations set disabled_reason = ${JSON.stringify(Object.fromEntries(reasons))}::jsonb ->> name
    where tenant_id = ${tenantId} and name = any(${textArray([...reasons.keys()])}::text[])`;
}

/**
 * Sends the statements, in the caller's transaction. The first two lock the rows that are still the caller's; their fences cannot
 * change after that, so the later statements find the same rows. Each takes the tenant from its rows, so that Citus runs it on their node.
 * Returns whether anything waits for what is done: more of its subject at its destination.
 */
async function write(tx: Db, tenantId: string, results: readonly Result[], nowMs: number): Promise<boolean> {
  const now = BigInt(nowMs);
  const waiting = results.filter(({ status }) => status === "PENDING");
  const done = results.filter(({ status }) => status !== "PENDING");
  const sent = done.filter(({ status }) => status === "SENT");
  const failed = done.filter(({ status }) => status === "FAILED");
  const ofThreads = results.filter(({ thread }) => thread !== undefined);
  const ended = results.filter(endsMembers);
  const unsent = results.flatMap(({ unsent }) => unsent ?? []);
  const own = (some: readonly Result[], valuesOf?: (result: Result) => object) => ownRows(tx, tenantId, some, valuesOf);
  const statements = [
    waiting.length > 0 && keepWaiting(tx, own(waiting, waitingValues)),
    done.length > 0 && addToHistory(tx, own(done, doneValues), now),
    sent.length > 0 && countSent(tx, own(sent), now),
    failed.length > 0 &&
      countFailed(
        tx,
        tenantId,
        failed.map(({ row }) => row.destinationName),
        nowMs,
      ),
    ofThreads.length > 0 && keepThreads(tx, own(ofThreads, threadValues), now),
    ...(ended.length > 0 ? endMembers(tx, tenantId, ended, nowMs) : []),
    unsent.length > 0 && forgetMembers(tx, tenantId, unsent),
  ];
  // Sent, and not waited for: the transaction fails with the first that fails.
  for (const statement of statements) if (statement) statement.catch(() => undefined);
  if (done.length === 0) return false;
  const removed = removeDone(tx, tenantId, done, own(done));
  removed.catch(() => undefined);
  return (await removed)[0]?.followed ?? false;
}

const endsMembers = (result: Result): result is Result & MemberEnd =>
  result.status !== "PENDING" && result.over !== undefined && result.over.length > 0;

/** `byId`: one JSON object, values by the ids of deliveries. `held`: the condition for rows whose fence is still the one in it. */
interface OwnRows {
  byId: Fragment;
  held: Fragment;
}

/** Rows are found by their primary key alone. */
function ownRows(
  tx: Db,
  tenantId: string,
  results: readonly Result[],
  valuesOf: (result: Result) => object = () => ({}),
): OwnRows {
  const values = results.map((each) => [each.row.id, { fence: String(each.row.fence), ...valuesOf(each) }]);
  return {
    byId: tx`(select ${JSON.stringify(Object.fromEntries(values))}::jsonb as by_id) as written`,
    held: tx`tenant_id = ${tenantId} and id = any(${uuidArray(results.map(({ row }) => row.id))}::uuid[])
      and fence = (by_id -> id::text ->> 'fence')::bigint`,
  };
}

const attemptsOf = ({ row, attempt }: Result) => newest([...row.attempts, ...(attempt ? [attempt] : [])]);

const waitingValues = (result: Result) => ({
  attempts: attemptsOf(result),
  error: result.error,
  tries: result.row.tries + (result.attempt === undefined ? 0 : 1),
  slow: result.row.slowTries + (result.slow ? 1 : 0),
  due: result.dueMs ?? 0,
  silence: result.silenceId ?? null,
});

const keepWaiting = (tx: Db, { byId, held }: OwnRows) => tx`
  update due_deliveries set lease_until_ms = 0, due_ms = (by_id -> id::text ->> 'due')::bigint,
    error = by_id -> id::text ->> 'error', tries = (by_id -> id::text ->> 'tries')::int4,
    slow_tries = (by_id -> id::text ->> 'slow')::int4, attempts = by_id -> id::text -> 'attempts',
    silence_id = (by_id -> id::text ->> 'silence')::uuid
  from ${byId} where ${held}`;

const doneValues = (result: Result) => ({
  attempts: attemptsOf(result),
  status: result.status,
  error: result.error,
});

const addToHistory = (tx: Db, { byId, held }: OwnRows, now: bigint) => tx`
  insert into delivery_history (tenant_id, ${facts(tx)}, attempts, status, error, ended_ms)
  select tenant_id, ${facts(tx)}, by_id -> id::text -> 'attempts', by_id -> id::text ->> 'status',
    by_id -> id::text ->> 'error', ${now}
  from ${byId} cross join lateral (select * from due_deliveries where ${held} order by id for update) as done`;

const countSent = (tx: Db, { byId, held }: OwnRows, now: bigint) => tx`
  insert into delivery_counts as c (tenant_id, about, name, slot_ms, count)
  select tenant_id, about, name, ${now - (now % BigInt(slotMs))}, count(*)::int4
  from ${byId} cross join due_deliveries cross join lateral (
    values ('rule', rule_name), ('destination', destination_name)
    union all select 'trigger', t from unnest(trigger_names) as t where t <> ''
  ) as counts (about, name)
  where ${held} group by tenant_id, about, name order by tenant_id, about, name
  on conflict (tenant_id, about, name, slot_ms) do update set count = c.count + excluded.count`;

/** Counts what failed, by its destination; `destinations` names one for each failure. */
export const countFailed = (tx: Db, tenantId: string, destinations: readonly string[], nowMs: number) => tx`
  insert into delivery_counts as c (tenant_id, about, name, slot_ms, count)
  select d.tenant_id, 'failed', d.name, ${BigInt(nowMs - (nowMs % slotMs))}, failed.count
  from destinations d join (
    select name, count(*)::int4 as count from unnest(${textArray(destinations)}::text[]) as failed (name) group by name
  ) as failed on failed.name = d.name
  where d.tenant_id = ${tenantId} and d.name = any(${textArray([...new Set(destinations)])}::text[])
  order by d.name
  on conflict (tenant_id, about, name, slot_ms) do update set count = c.count + excluded.count`;

const threadValues = ({ thread }: Result) => ({ ...thread });

const keepThreads = (tx: Db, { byId, held }: OwnRows, now: bigint) => tx`
  insert into delivery_threads as t (tenant_id, destination_name, subject, state, sent, updated_ms)
  select distinct on (tenant_id, destination_name, about) tenant_id, destination_name, about,
    by_id -> id::text -> 'state', (by_id -> id::text ->> 'sent')::boolean, ${now}
  from ${byId} cross join due_deliveries cross join lateral (
    select case when by_id -> id::text ->> 'summary' is null then subject
      else ${summarySubjectOf(tx, tx`(by_id -> id::text ->> 'summary')::uuid`)} end as about
  ) as thread
  where ${held} order by tenant_id, destination_name, about
  on conflict (tenant_id, destination_name, subject) do update
    set state = excluded.state, sent = excluded.state <> '{}' and (t.sent or excluded.sent), updated_ms = excluded.updated_ms`;

/** What follows a delivery is found by due_deliveries_by_age. What is stored meanwhile has whoever stores it look by himself. */
const removeDone = (tx: Db, tenantId: string, done: readonly Result[], { byId, held }: OwnRows) => tx<
  { followed: boolean }[]
>`
  with removed as (
    delete from due_deliveries using ${byId} where ${held} returning destination_name, subject
  )
  select exists (
    select from removed cross join lateral (
      select from due_deliveries l
      where l.tenant_id = ${tenantId} and l.destination_name = removed.destination_name and l.subject = removed.subject
        and l.created_ms >= 0 and l.id <> all(${uuidArray(done.map(({ row }) => row.id))}::uuid[])
      limit 1) as next
  ) as followed`;

/** What becomes of deliveries that wait for a destination. */
export interface Ending {
  readonly destination: string;
  readonly status: "FAILED" | "CANCELLED";
  readonly error: string;
  /** Of those alone that have been due since before this, ms. */
  readonly dueBeforeMs?: number;
}

/**
 * Ends deliveries of a destination, a portion of them, in the caller's transaction; returns how many. What is being tried now is left
 * to the next try.
 */
export async function endDeliveries(
  tx: Db,
  tenantId: string,
  { destination, status, error, dueBeforeMs = Number.MAX_SAFE_INTEGER }: Ending,
  nowMs: number,
): Promise<number> {
  const now = BigInt(nowMs);
  const ending = await tx<{ id: string }[]>`
    select id from due_deliveries
    where tenant_id = ${tenantId} and destination_name = ${destination} and lease_until_ms <= ${now}
      and due_ms < ${BigInt(dueBeforeMs)} and tries >= 0
    order by due_ms, id limit ${portion} for update skip locked`;
  if (ending.length === 0) return 0;
  const ids = uuidArray(ending.map(({ id }) => id));
  const lost = JSON.stringify(lostAttempt(nowMs));
  await Promise.all([
    tx`
      insert into delivery_history (tenant_id, ${facts(tx)}, attempts, status, error, ended_ms)
      select tenant_id, ${facts(tx)}, case when lease_until_ms > 0 then attempts || ${lost}::jsonb else attempts end,
        ${status}, ${error}, ${now}
      from due_deliveries where tenant_id = ${tenantId} and id = any(${ids}::uuid[])`,
    tx`delete from due_deliveries where tenant_id = ${tenantId} and id = any(${ids}::uuid[])`,
  ]);
  return ending.length;
}

/** Drops a delivery that is done and cannot be kept: the history of its day is gone. */
export async function forgetDelivery(db: Db, tenantId: string, { id, fence }: ClaimedDelivery): Promise<void> {
  await db`delete from due_deliveries where tenant_id = ${tenantId} and id = ${id} and fence = ${fence}`;
}
