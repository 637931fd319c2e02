import { randomBytes } from "node:crypto";
import { bigintArray, int4Array, textArray, uuidArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { home } from "../../db/home-row.ts";
import { commitsLate } from "../../db/late-commit.ts";
import { transaction } from "../../db/transaction.ts";
import type { KindName } from "../kinds/retry.ts";
import type { WaitingDelivery } from "../subject/delivery.ts";
import { type SubjectColumns, toSubject } from "../subject/subject.ts";
import { type Attempt, hasLost, lostAttempt } from "./attempts.ts";
import type { DestinationState } from "./destination-state.ts";

/** What waits behind another delivery of its subject is looked at again after this, ms. */
const behindMs = 1000;

/** The kind of these rows in due_work. */
export const deliveriesKind = "deliveries";

/** A delivery that is the caller's to try. */
export interface ClaimedDelivery extends WaitingDelivery {
  readonly attempts: readonly Attempt[];
  readonly error: string;
  /** Names its claim. */
  readonly fence: bigint;
  readonly slowTries: number;
  /** When it was asked for again; null when it never was. */
  readonly retriedMs: number | null;
  /** True if the result of an attempt was never recorded: the receiver may have it. */
  readonly lost: boolean;
}

/** Names the thread of a subject at a destination. */
export const threadKey = (destinationName: string, subject: Buffer) => `${subject.toString("hex")} ${destinationName}`;

/** Names what of a rule a summary stands for at a destination. */
export const memberKey = ({
  ruleId,
  destinationName,
  subject,
}: Pick<WaitingDelivery, "ruleId" | "destinationName" | "subject">) =>
  `${threadKey(destinationName, subject.key)} ${ruleId}`;

/** A destination that has something due; `kind` is null when it is gone. */
export interface DueDestination {
  name: string;
  /** When the first of it was due, ms. */
  dueMs: number;
  kind: KindName | null;
  maxPerMinute: number | null;
  disabledReason: string | null;
  /** Null: nothing was ever noted of it. */
  state: DestinationState | null;
}

/** The columns of a DestinationState, from s, as JSON; null without a row. */
const stateJson = (db: Db) => db`
  case when s.tenant_id is null then null else jsonb_build_object('failures', s.failures, 'opened', s.opened,
    'openUntilMs', s.open_until_ms, 'probeUntilMs', s.probe_until_ms, 'allowedMs', s.allowed_ms,
    'minuteMs', s.minute_ms, 'minuteCount', s.minute_count, 'summaryMs', s.summary_ms) end`;

/** The destinations of a tenant that have something due, claimed or not. Skips from one to the next in due_deliveries_by_due. */
export async function dueDestinations(db: Db, tenantId: string, nowMs: number): Promise<DueDestination[]> {
  return await db<DueDestination[]>`
    with recursive first (name, due_ms) as (
      (select destination_name, due_ms from due_deliveries where tenant_id = ${tenantId} and tries >= 0
        order by destination_name, due_ms limit 1)
      union all
      select next.* from first cross join lateral (
        select d.destination_name, d.due_ms from due_deliveries d
        where d.tenant_id = ${tenantId} and d.destination_name > first.name and d.tries >= 0
        order by d.destination_name, d.due_ms limit 1) as next
    )
    select first.name, first.due_ms::float8 as "dueMs", d.kind, d.max_per_minute as "maxPerMinute", d.disabled_reason as "disabledReason",
      ${stateJson(db)} as state
    from first
      left join lateral (
        select * from destinations where tenant_id = ${tenantId} and name = first.name offset 0) as d on true
      left join lateral (
        select * from destination_states where tenant_id = ${tenantId} and destination_name = first.name offset 0) as s on true
    where first.due_ms <= ${BigInt(nowMs)}`;
}

/** The states of these destinations, made where there are none, locked until the transaction ends. */
export async function lockDestinationStates(
  tx: Db,
  tenantId: string,
  names: readonly string[],
): Promise<Map<string, DestinationState>> {
  const [, rows] = await Promise.all([
    tx`
      insert into destination_states (tenant_id, destination_name, failures, opened, open_until_ms, probe_until_ms,
        allowed_ms, minute_ms, minute_count, summary_ms)
      select d.tenant_id, d.name, 0, 0, 0, 0, 0, 0, 0, 0 from destinations d
      where d.tenant_id = ${tenantId} and d.name = any(${textArray(names)}::text[])
      order by d.name on conflict (tenant_id, destination_name) do nothing`,
    tx<{ name: string; state: DestinationState }[]>`
      select s.destination_name as name, ${stateJson(tx)} as state from destination_states s
      where s.tenant_id = ${tenantId} and s.destination_name = any(${textArray(names)}::text[])
      order by s.destination_name for no key update`,
  ]);
  return new Map(rows.map(({ name, state }) => [name, state]));
}

/** Stores states that the transaction has locked. */
export async function storeDestinationStates(
  tx: Db,
  tenantId: string,
  states: ReadonlyMap<string, DestinationState>,
): Promise<void> {
  if (states.size === 0) return;
  const all = [...states.values()];
  const times = (of: (state: DestinationState) => number) => bigintArray(all.map((state) => BigInt(of(state))));
  // By the key alone: they are there, and locked, so that none is made.
  await tx`
    insert into destination_states (tenant_id, destination_name, failures, opened, open_until_ms, probe_until_ms,
      allowed_ms, minute_ms, minute_count, summary_ms)
    select home.tenant_id, now.* from ${home(tx, tenantId)}, unnest(
      ${textArray([...states.keys()])}::text[],
      ${int4Array(all.map(({ failures }) => failures))}::int4[],
      ${int4Array(all.map(({ opened }) => opened))}::int4[],
      ${times(({ openUntilMs }) => openUntilMs)}::bigint[],
      ${times(({ probeUntilMs }) => probeUntilMs)}::bigint[],
      ${times(({ allowedMs }) => allowedMs)}::bigint[],
      ${times((state) => state.minuteMs)}::bigint[],
      ${int4Array(all.map(({ minuteCount }) => minuteCount))}::int4[],
      ${times(({ summaryMs }) => summaryMs)}::bigint[]
    ) as now (name, failures, opened, open_until_ms, probe_until_ms, allowed_ms, minute_ms, minute_count, summary_ms)
    on conflict (tenant_id, destination_name) do update set failures = excluded.failures, opened = excluded.opened,
      open_until_ms = excluded.open_until_ms, probe_until_ms = excluded.probe_until_ms,
      allowed_ms = excluded.allowed_ms, minute_ms = excluded.minute_ms, minute_count = excluded.minute_count,
      summary_ms = excluded.summary_ms`;
}

/** How many to take of a destination; `all`: several of one subject as well, because they go as one. */
export interface Quota {
  name: string;
  max: number;
  all: boolean;
}

/**
 * Takes what is due, the first due first. Of one destination and subject only what is due or was tried comes before a later
 * one: what still waits for its delay, or is held by a silence, holds up nothing. They are the caller's until `leaseMs` from now; what a
 * crash of the database loses of that is taken again.
 */
export async function claimDeliveries(
  db: Db,
  tenantId: string,
  quotas: readonly Quota[],
  { nowMs, leaseMs }: { nowMs: number; leaseMs: number },
): Promise<ClaimedDelivery[]> {
  const now = BigInt(nowMs);
  // Drawn, not counted: a claim that a crash of the database has lost would leave its number to the next one, and what either records would
  // remove the row of the other. Of 11,305 notifications in an hour of faults one was in no list afterwards.
  const fence = randomBytes(8).readBigUInt64BE() >> 1n;
  // By due_deliveries_by_due, due_deliveries_by_age for the earlier ones, then the key: each condition names its index. What is
  // taken meanwhile is seen under the lock.
  const rows = await db<(Omit<ClaimedDelivery, "fence" | "subject"> & SubjectColumns)[]>`
    with near as materialized (
      select head.id
      from unnest(
        ${textArray(quotas.map(({ name }) => name))}::text[],
        ${int4Array(quotas.map(({ max }) => max))}::int4[],
        ${int4Array(quotas.map(({ all }) => (all ? 1 : 0)))}::int4[]
      ) as quota (name, count, whole) cross join lateral (
        select d.id from due_deliveries d
        where d.tenant_id = ${tenantId} and d.destination_name = quota.name and d.due_ms <= ${now} and d.tries >= 0
          and d.lease_until_ms <= ${now}
          and not exists (
            select from due_deliveries e
            where e.tenant_id = ${tenantId} and e.destination_name = d.destination_name and e.subject = d.subject
              and e.created_ms >= 0 and (e.created_ms, e.id) < (d.created_ms, d.id) and (e.due_ms <= ${now} or (e.tries > 0 and e.silence_id is null))
              and (quota.whole = 0 or e.due_ms > ${now} or e.lease_until_ms > ${now}))
        order by d.due_ms, d.id limit quota.count) as head
    ), taken as materialized (
      select * from due_deliveries
      where tenant_id = ${tenantId} and id = any(array(select id from near)) and lease_until_ms <= ${now}
        and due_ms <= ${now}
      for update skip locked
    ), claimed as (
      update due_deliveries set fence = ${fence}, lease_until_ms = ${now + BigInt(leaseMs)}
      where tenant_id = ${tenantId} and id = any(array(select id from taken)) and ${commitsLate(db)}
    )
    select id, created_ms::float8 as "createdMs", rule_id as "ruleId", rule_name as "ruleName",
      trigger_names as "triggerNames", destination_name as "destinationName", subject, event_id, number, entity_id, metric_name,
      told -> 'labels' as metric_labels, occasion, told, attempts, error,
      due_ms::float8 as "dueMs", tries, slow_tries as "slowTries",
      retried_ms::float8 as "retriedMs", silence_id as "silenceId", lease_until_ms > 0 as lost
    from taken`;
  const claimed = rows.map(({ event_id, number, entity_id, metric_name, metric_labels, ...row }): ClaimedDelivery => {
    const attempts = row.lost ? [...row.attempts, lostAttempt(nowMs)] : row.attempts;
    const subject = toSubject({ subject: row.subject, event_id, number, entity_id, metric_name, metric_labels });
    return { ...row, subject, fence, attempts, lost: hasLost(attempts) };
  });
  return claimed.sort((a, b) => a.dueMs - b.dueMs || (a.id < b.id ? -1 : 1));
}

/**
 * Keeps deliveries for `leaseMs` more; returns the ids of those that are still the caller's. What was given back meanwhile is
 * nobody's: a lease would keep it from the next look.
 */
export async function renewLeases(
  db: Db,
  tenantId: string,
  held: readonly Pick<ClaimedDelivery, "id" | "fence">[],
  { nowMs, leaseMs }: { nowMs: number; leaseMs: number },
): Promise<Set<string>> {
  const fences = JSON.stringify(Object.fromEntries(held.map(({ id, fence }) => [id, String(fence)])));
  const rows = await db<{ id: string }[]>`
    update due_deliveries set lease_until_ms = ${BigInt(nowMs + leaseMs)}
    where tenant_id = ${tenantId} and id = any(${uuidArray(held.map(({ id }) => id))}::uuid[])
      and fence = (${fences}::jsonb ->> id::text)::bigint and lease_until_ms > 0
    returning id`;
  return new Set(rows.map(({ id }) => id));
}

/** Whether something is due at a destination that is not claimed. */
export async function somethingDue(db: Db, tenantId: string, destination: string, nowMs: number): Promise<boolean> {
  const now = BigInt(nowMs);
  const [row] = await db<{ due: boolean }[]>`
    select exists (
      select from due_deliveries
      where tenant_id = ${tenantId} and destination_name = ${destination} and due_ms <= ${now} and tries >= 0
        and lease_until_ms <= ${now}) as due`;
  return row?.due ?? false;
}

/**
 * Moves on the time at which a tenant has deliveries, after a claim that found none: to the first that comes due, soon where one waits for
 * another, the end of the first lease, or when a destination may be tried again. A tenant without deliveries goes. Does nothing while
 * another transaction adds some: what is added must be found. Returns the time, ms; undefined when there is none, or it is not known.
 */
export async function settleDeliveries(db: Db, tenantId: string, nowMs: number): Promise<number | undefined> {
  const now = BigInt(nowMs);
  return await transaction(db, async (tx) => {
    const locked = await tx`
      select from due_work where tenant_id = ${tenantId} and kind = ${deliveriesKind} for update skip locked`;
    if (locked.count === 0) return undefined;
    // For each destination: when its first comes due, or is free again, and it may be tried.
    const [row] = await tx<[{ due: bigint | null }]>`
      with recursive first (name) as (
        (select destination_name from due_deliveries where tenant_id = ${tenantId} and tries >= 0
          order by destination_name, due_ms limit 1)
        union all
        select next.* from first cross join lateral (
          select d.destination_name from due_deliveries d
          where d.tenant_id = ${tenantId} and d.destination_name > first.name and d.tries >= 0
          order by d.destination_name, d.due_ms limit 1) as next
      )
      select min(greatest(next.due_ms, s.open_until_ms, s.probe_until_ms,
        case when d.max_per_minute > 0 then s.summary_ms end, s.allowed_ms)) as due
      from first
        left join lateral (
          select * from destinations where tenant_id = ${tenantId} and name = first.name offset 0) as d on true
        left join lateral (
          select * from destination_states where tenant_id = ${tenantId} and destination_name = first.name offset 0
        ) as s on true
        cross join lateral (
          select least(
            (select min(l.due_ms) from due_deliveries l
              where l.tenant_id = ${tenantId} and l.destination_name = first.name
                and l.due_ms > ${now} and l.tries >= 0),
            case when exists (
              select from due_deliveries l
              where l.tenant_id = ${tenantId} and l.destination_name = first.name
                and l.due_ms <= ${now} and l.tries >= 0 and l.lease_until_ms <= ${now} and not exists (
                  select from due_deliveries e
                  where e.tenant_id = ${tenantId} and e.destination_name = l.destination_name and e.subject = l.subject
                    and e.created_ms >= 0 and (e.created_ms, e.id) < (l.created_ms, l.id)
                    and (e.due_ms <= ${now} or (e.tries > 0 and e.silence_id is null))))
            then ${now}
            -- What waits behind another's try: whoever records that may not have seen it.
            when exists (
              select from due_deliveries l
              where l.tenant_id = ${tenantId} and l.destination_name = first.name
                and l.due_ms <= ${now} and l.tries >= 0 and l.lease_until_ms <= ${now})
            then ${now + BigInt(behindMs)} else (
              select min(l.lease_until_ms) from due_deliveries l
              where l.tenant_id = ${tenantId} and l.destination_name = first.name
                and l.due_ms <= ${now} and l.tries >= 0 and l.lease_until_ms > ${now}) end
          ) as due_ms) as next`;
    if (row.due === null) {
      await tx`delete from due_work where tenant_id = ${tenantId} and kind = ${deliveriesKind}`;
      return undefined;
    }
    if (row.due > now)
      await tx`update due_work set due_ms = ${row.due} where tenant_id = ${tenantId} and kind = ${deliveriesKind}`;
    return Number(row.due);
  });
}
