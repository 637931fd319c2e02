import type { Fragment } from "postgres";
import type { StaleDataSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { toSql } from "../../clause/to-sql.ts";
import { byteaArray, textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { entityResolver } from "../../entities/fields.ts";
import { matchingIds, splitIds } from "../../entities/portions.ts";
import { readEntities } from "../../entities/read.ts";
import { paced } from "../../event-loop.ts";
import { enqueue, type Job } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import { tenantNameOf } from "../../tenants/tenant.ts";
import { keyText, lockMatches, makePlaces, readMatches } from "../matches.ts";
import type { LoadedTrigger } from "../matching/trigger-index.ts";
import type { Deciding } from "../on-changes.ts";
import { newRoot } from "../rule-changes.ts";
import { type Sight, settle } from "../settle.ts";
import { staleSubject } from "../subjects.ts";

/** The jobs that look for data that stay away: one a tenant that watches any. */
const staleKind = "notifications.stale";
const jobId = "stale";
const lookMs = 1000;
/** What another server has seen is known after this time: twice the period in which servers write it. */
const heardMs = 2500;
/** No server has looked for so long. */
const absentMs = 10_000;
/** New entities are found so often, or less where that is dear. */
const enrolMs = 2000;
const enrolShare = 0.05;
const firedMax = 1000;
const portion = 10_000;

/** How far a tenant's job is. Times are ms since the epoch. */
interface Course {
  /** When it last looked. */
  aliveMs?: number;
  enrolMs?: number;
  /** By trigger: before this nothing of it can stay away for too long. */
  nextMs?: Record<string, number>;
}

const sourceOf = ({ type }: LoadedTrigger) => type.source.value as StaleDataSource;
const isStale = ({ type }: LoadedTrigger) => type.source.case === "staleData";

/** Leaves the job that watches a tenant's data, where a trigger waits for some. In the transaction that changes rules. */
export async function watchStaleData(tx: Db, tenantId: string): Promise<void> {
  const [watched] = await tx<{ nowMs: number }[]>`
    select floor(extract(epoch from statement_timestamp()) * 1000)::float8 as "nowMs" from triggers
    where tenant_id = ${tenantId} and (source = 'staleData' or exists (
      select from stale_watches w where w.tenant_id = ${tenantId}
    )) limit 1`;
  if (watched === undefined) return;
  await enqueue(tx, { tenantId, kind: staleKind }, [{ id: jobId, payload: {} }], watched.nowMs);
}

/** A trigger that looks at other data from now on waits for them from now on; what had stayed away is over. */
export async function beginAnew(tx: Db, tenantId: string, triggerName: string): Promise<void> {
  await tx`
    update stale_watches set last_ms = (extract(epoch from statement_timestamp()) * 1000)::bigint
    where tenant_id = ${tenantId} and trigger_name = ${triggerName}`;
}

/** Fires and clears what triggers of the source staleData wait for: in the transaction of the job, so once in effect. */
export function staleJob(deciding: Deciding): JobKind {
  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    const course = (jobs[0]?.payload ?? {}) as Course;
    const { triggers } = await deciding.memory.now(tx, tenantId);
    const stale = [...triggers.values()].filter(isStale);
    const dropped = await dropOthers(tx, tenantId, stale);
    if (stale.length === 0) {
      if (dropped.length > 0) await tell(tx, tenantId, dropped, deciding, nowMs);
      return [];
    }
    await makeUpForAbsence(tx, tenantId, course, nowMs);
    const enrolled = nowMs >= (course.enrolMs ?? 0);
    const nextMs: Record<string, number> = enrolled ? {} : { ...course.nextMs };
    const startedMs = performance.now();
    const left = enrolled ? await enrolAll(tx, tenantId, stale, nowMs) : [];
    const tookMs = performance.now() - startedMs;
    const changes: Change[] = [...dropped, ...left];
    for (const trigger of stale) changes.push(...(await changesOf(tx, tenantId, trigger, nextMs, nowMs)));
    if (changes.length > 0) await tell(tx, tenantId, changes, deciding, nowMs);
    const next: Course = {
      aliveMs: nowMs,
      enrolMs: enrolled ? nowMs + Math.max(enrolMs, Math.round(tookMs / enrolShare)) : (course.enrolMs ?? 0),
      nextMs,
    };
    return jobs.map(({ id }) => ({ id, dueMs: nowMs + lookMs, payload: next }));
  }
  return { name: staleKind, sizeMax: 1, share: 1, timed: true, run };
}

/** Time in which no server was there is no time in which data stayed away. */
async function makeUpForAbsence(tx: Db, tenantId: string, { aliveMs }: Course, nowMs: number): Promise<void> {
  if (aliveMs === undefined || nowMs - aliveMs <= absentMs) return;
  await tx`
    update stale_watches set last_ms = last_ms + ${BigInt(nowMs - aliveMs)}
    where tenant_id = ${tenantId} and not fired and last_ms <= ${BigInt(aliveMs)}`;
}

/** Data of an entity that stay away for a trigger, or do so no more. */
interface Change {
  triggerName: string;
  /** Undefined: it waits for no data any more. */
  trigger: LoadedTrigger | undefined;
  entityId: Buffer;
  lastMs: number;
  fired: boolean;
}

interface Left {
  triggerName: string;
  entityId: Buffer;
  lastMs: number;
  fired: boolean;
}

/** Ends the watches of triggers that wait for data no more, or that no rule uses. Skips from one trigger to the next by the key. */
async function dropOthers(tx: Db, tenantId: string, stale: readonly LoadedTrigger[]): Promise<Change[]> {
  const watched = await tx<{ name: string }[]>`
    with recursive watched (name) as (
      (select trigger_name from stale_watches where tenant_id = ${tenantId} order by trigger_name limit 1)
      union all
      select next.* from watched cross join lateral (
        select trigger_name from stale_watches
        where tenant_id = ${tenantId} and trigger_name > watched.name order by trigger_name limit 1) as next
    )
    select name from watched`;
  const kept = new Set(stale.map(({ name }) => name));
  const others = watched.map(({ name }) => name).filter((name) => !kept.has(name));
  if (others.length === 0) return [];
  const gone = await tx<Left[]>`
    delete from stale_watches where tenant_id = ${tenantId} and trigger_name = any(${textArray(others)}::text[])
    returning trigger_name as "triggerName", entity_id as "entityId", last_ms::float8 as "lastMs", fired`;
  return over(gone, undefined);
}

const over = (left: readonly Left[], trigger: LoadedTrigger | undefined): Change[] =>
  left.filter(({ fired }) => fired).map((row) => ({ ...row, trigger, fired: false }));

/** Takes in the entities that triggers mean by now; answers those that stayed away and are not meant any more. */
async function enrolAll(tx: Db, tenantId: string, stale: readonly LoadedTrigger[], nowMs: number): Promise<Change[]> {
  const resolver = entityResolver(tenantId, { tenantName: await tenantNameOf(tx, tenantId) });
  const changes: Change[] = [];
  for (const trigger of stale) {
    const clause = sourceOf(trigger).entityQuery?.clause;
    const matching = clause === undefined ? tx`true` : toSql(tx, clause, "clause", resolver);
    changes.push(...(await enrol(tx, tenantId, trigger, matching, nowMs)));
  }
  return changes;
}

/** Both lists come in the order of ids: what differs is found here, so that only that is written. */
async function enrol(tx: Db, tenantId: string, trigger: LoadedTrigger, matching: Fragment, nowMs: number) {
  const meant = await matchingIds(tx, tenantId, matching, portion);
  const watched = await tx<{ ids: Buffer }[]>`
    select string_agg(entity_id, ''::bytea order by entity_id) as ids from (
      select entity_id, (row_number() over (order by entity_id) - 1) / ${portion}::int4 as portion
      from stale_watches where tenant_id = ${tenantId} and trigger_name = ${trigger.name}
    ) as watched
    group by portion order by portion`;
  const { added, gone, same } = await differing(
    meant,
    watched.map(({ ids }) => ids),
  );
  const left: Left[] = [];
  for (let from = 0; from < gone.length; from += portion) {
    left.push(
      ...(await tx<Left[]>`
        delete from stale_watches
        where tenant_id = ${tenantId} and trigger_name = ${trigger.name}
          and entity_id = any(${byteaArray(gone.slice(from, from + portion))}::bytea[])
        returning trigger_name as "triggerName", entity_id as "entityId", last_ms::float8 as "lastMs", fired`),
    );
  }
  // The first time all are awaited since the trigger was made; what is added later, since then.
  const sinceMs = BigInt(same > 0 ? nowMs : trigger.createdMs);
  for (let from = 0; from < added.length; from += portion) {
    await tx`
      insert into stale_watches (tenant_id, trigger_name, entity_id, last_ms, fired)
      select ${tenantId}::uuid, ${trigger.name}, id, ${sinceMs}, false
      from unnest(${byteaArray(added.slice(from, from + portion))}::bytea[]) as meant (id)
      on conflict do nothing`;
  }
  return over(left, trigger);
}

/** What of two lists of ids in their order, each in portions, only the first has, and what only the second; how many both have. */
async function differing(meant: readonly Buffer[], watched: readonly Buffer[]) {
  const pace = paced(() => {});
  const [wanted, known] = [meant.flatMap(splitIds), watched.flatMap(splitIds)];
  const added: Buffer[] = [];
  const gone: Buffer[] = [];
  let at = 0;
  for (const id of wanted) {
    while (at < known.length && Buffer.compare(known[at] as Buffer, id) < 0) gone.push(known[at++] as Buffer);
    if (at < known.length && id.equals(known[at] as Buffer)) at += 1;
    else added.push(id);
    if ((at + added.length) % 1000 === 0) await pace();
  }
  gone.push(...known.slice(at));
  return { added, gone, same: known.length - gone.length };
}

async function changesOf(
  tx: Db,
  tenantId: string,
  trigger: LoadedTrigger,
  nextMs: Record<string, number>,
  nowMs: number,
): Promise<Change[]> {
  const { name } = trigger;
  const waitMs = Number(sourceOf(trigger).durationSec) * 1000 + heardMs;
  const bound = BigInt(nowMs - waitMs);
  const back = await tx<{ entityId: Buffer; lastMs: number }[]>`
    update stale_watches set fired = false
    where tenant_id = ${tenantId} and trigger_name = ${name} and fired and last_ms > ${bound}
    returning entity_id as "entityId", last_ms::float8 as "lastMs"`;
  const changes: Change[] = back.map((row) => ({ ...row, triggerName: name, trigger, fired: false }));
  if (nowMs < (nextMs[name] ?? 0)) return changes;
  // In the order of the key; then by the key.
  const due = await tx<{ id: Buffer }[]>`
    select entity_id as id from stale_watches
    where tenant_id = ${tenantId} and trigger_name = ${name} and not fired and last_ms <= ${bound}
    order by entity_id limit ${firedMax} for no key update`;
  const away =
    due.length === 0
      ? []
      : await tx<{ entityId: Buffer; lastMs: number }[]>`
          update stale_watches set fired = true
          where tenant_id = ${tenantId} and trigger_name = ${name}
            and entity_id = any(${byteaArray(due.map(({ id }) => id))}::bytea[])
          returning entity_id as "entityId", last_ms::float8 as "lastMs"`;
  const [least] = await tx<{ ms: number | null }[]>`
    select min(last_ms)::float8 as ms from stale_watches
    where tenant_id = ${tenantId} and trigger_name = ${name} and not fired`;
  nextMs[name] = least?.ms == null ? Number.MAX_SAFE_INTEGER : least.ms + waitMs;
  return [...changes, ...away.map((row) => ({ ...row, triggerName: name, trigger, fired: true }))];
}

/** What rules make of changes. */
async function tell(tx: Db, tenantId: string, changes: readonly Change[], deciding: Deciding, nowMs: number) {
  const { users } = await deciding.memory.now(tx, tenantId);
  const ids = new Map(changes.map(({ entityId }) => [keyText(entityId), entityId]));
  const entities = await readEntities(tx, tenantId, [...ids.values()]);
  const inWindows = new Set(entities.flatMap((row) => (row.window_production_state === null ? [] : [keyText(row.id)])));
  const sights = changes.flatMap(({ trigger, triggerName, entityId, lastMs, fired }): Sight[] => {
    const source = trigger && sourceOf(trigger);
    const subject = staleSubject(triggerName, entityId, source?.metricName ?? "");
    const inMaintenance = inWindows.has(keyText(entityId));
    const seen = { subject, matches: fired, again: false, now: undefined, inMaintenance };
    const root = newRoot();
    const bound = source && { threshold: Number(source.durationSec), thresholdType: "duration" };
    const triggerNames = fired ? [triggerName] : [];
    return (users.get(triggerName) ?? []).map((rule) => ({
      ...seen,
      rule,
      triggerNames,
      told: { timeMs: lastMs, root, ...bound },
    }));
  });
  const keys = new Map(sights.map(({ subject: { key } }) => [keyText(key), key]));
  await makePlaces(
    tx,
    tenantId,
    sights.filter(({ matches }) => matches),
  );
  await lockMatches(tx, tenantId, [...keys.values()]);
  const noted = await readMatches(tx, tenantId, [...keys.values()]);
  await settle(tx, tenantId, sights, noted, nowMs, deciding.wake);
}
