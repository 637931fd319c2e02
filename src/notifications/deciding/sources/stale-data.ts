import type { StaleDataSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { byteaArray } from "../../../db/batch.ts";
import type { Db } from "../../../db/connect.ts";
import { afterCommit } from "../../../db/transaction.ts";
import { readEntities } from "../../../entities/read.ts";
import { newRoot } from "../../../events/facts.ts";
import { enqueue, type Job, payloadOf } from "../../../jobs/queue.ts";
import type { JobKind } from "../../../jobs/worker.ts";
import { lockMatches, makePlaces, readMatches } from "../../rules/match-store.ts";
import { eventData, metricData } from "../../rules/sources/source.ts";
import type { LoadedTrigger } from "../../rules/tenant-rules.ts";
import { inMaintenance } from "../../silences/mutes.ts";
import type { RulePart } from "../../silences/rules-version.ts";
import { keyText, staleSubject } from "../../subject/subject.ts";
import type { Sight } from "../batch.ts";
import { passFrom } from "../stages.ts";
import { lastTimes } from "./last-times.ts";
import { lookAtWatches } from "./look-at-watches.ts";
import type { DataSource, RunningSource, SourceOptions, Troubles } from "./source.ts";
import { apart } from "./stale-trouble.ts";
import { dropOthers, enrolAll, type StaleChange } from "./stale-watches.ts";

/** The jobs that look for data that stay away: one a tenant that watches any. */
const staleKind = "notifications.stale";
const jobId = "stale";
const lookMs = 1000;
/** What another server has seen is known after this time: twice the period in which servers write it. */
const heardMs = 2500;
/** No server has looked for this long. */
const absentMs = 10_000;
/** New entities are found so often, or less where that is dear. */
const enrolMs = 2000;
const enrolShare = 0.05;
const firedMax = 1000;

/** How far a tenant's job is. Times are ms since the epoch. */
interface Course {
  /** When it last looked. */
  aliveMs?: number;
  enrolMs?: number;
  /** By trigger: before this nothing of it can stay away for too long. */
  nextMs?: Record<string, number>;
  /** How far its rules have been shown, since rules changed, what stays away: the last entity, hex, by trigger; null: all of it. */
  shown?: Record<string, string | null>;
  troubles?: Troubles;
}

/** Copies what is by triggers' names, so that one called `constructor` or `__proto__` has nothing but its own. */
const ofNames = <T>(stored: Readonly<Record<string, T>> = {}): Record<string, T> =>
  Object.assign(Object.create(null), stored);

/** Data that stay away. */
export const staleData: DataSource<StaleDataSource> = {
  currentStates: lookAtWatches,
  onRulesChange: watchStaleData,

  /** It waits for other data from now on. */
  async onChange(tx, tenantId, name, before, after) {
    if (before.metricName === after.metricName && before.eventName === after.eventName) return;
    await beginAnew(tx, tenantId, name);
  },

  troubles: staleTroubles,
  start: startWatching,
};

/** Notes when data come that triggers wait for, and looks for those that stay away. */
function startWatching(options: SourceOptions): RunningSource {
  const last = lastTimes(options.sql, options.nowMs);

  return {
    kinds: [staleJob(options)],
    async onPoints(tx, tenantId, rules, points, nowMs) {
      const waiting = rules.byData("staleData");
      if (waiting.size === 0) return;
      afterCommit(tx, () => {
        const series = points.seriesOf((metric) => waiting.has(metricData(metric)));
        for (const { metric, entityId } of series.values())
          last.note(tenantId, rules, metricData(metric), entityId, nowMs);
      });
    },
    onEvents(tenantId, rules, events, nowMs) {
      if (rules.byData("staleData").size === 0) return;
      for (const { name, entityId } of events) last.note(tenantId, rules, eventData(name), entityId, nowMs);
    },
    flush: last.flush,
    stop: last.stop,
  };
}

/** Why the last look could not look for the data of a tenant's triggers, by their names. */
async function staleTroubles(db: Db, tenantId: string): Promise<Troubles> {
  const course = (await payloadOf(db, { tenantId, kind: staleKind }, jobId)) as Course | undefined;
  return course?.troubles ?? {};
}

const sourceOf = ({ type }: LoadedTrigger) => type.source.value as StaleDataSource;
const isStale = ({ type }: LoadedTrigger) => type.source.case === "staleData";

/**
 * Leaves the job that watches a tenant's data, where it watches some, or a trigger that waits for data has changed, or a rule of one. In the
 * transaction of the change.
 */
async function watchStaleData(tx: Db, tenantId: string, { kind, name }: RulePart): Promise<void> {
  const names =
    kind === "rule"
      ? tx`select trigger_name from rule_triggers where tenant_id = ${tenantId} and rule_name = ${name}`
      : tx`select ${name}::text as trigger_name`;
  const [watched] = await tx<{ nowMs: number }[]>`
    select floor(extract(epoch from statement_timestamp()) * 1000)::float8 as "nowMs" from tenant_state s
    where s.tenant_id = ${tenantId} and (
      exists (select from stale_watches w where w.tenant_id = ${tenantId} limit 1) or exists (
        select from (${names} offset 0) as changed cross join lateral (
          select source from triggers where tenant_id = ${tenantId} and name = changed.trigger_name limit 1) as t
        where t.source = 'staleData'))`;
  if (watched === undefined) return;
  await enqueue(tx, { tenantId, kind: staleKind }, [{ id: jobId, payload: {} }], watched.nowMs);
}

/** A trigger that looks at other data from now on waits for them from now on; what had stayed away is over. */
async function beginAnew(tx: Db, tenantId: string, triggerName: string): Promise<void> {
  await tx`
    update stale_watches set last_ms = (extract(epoch from statement_timestamp()) * 1000)::bigint
    where tenant_id = ${tenantId} and trigger_name = ${triggerName}`;
}

/** Fires and clears what triggers of the source staleData wait for: in the transaction of the job, so once in effect. */
function staleJob(deciding: SourceOptions): JobKind {
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
    const nextMs = ofNames(enrolled ? {} : course.nextMs);
    const troubles = ofNames(enrolled ? {} : course.troubles);
    const startedMs = performance.now();
    const left = enrolled ? await enrolAll(tx, tenantId, stale, troubles, nowMs) : [];
    const tookMs = performance.now() - startedMs;
    const shown = ofNames(course.shown);
    const changes: StaleChange[] = [...dropped, ...left];
    for (const trigger of stale) {
      const look = async () => [
        ...(await changesOf(tx, tenantId, trigger, nextMs, nowMs)),
        ...(await firedBefore(tx, tenantId, trigger, shown)),
      ];
      changes.push(...(await apart(tx, trigger.name, troubles, look)));
    }
    if (changes.length > 0) await tell(tx, tenantId, changes, deciding, nowMs);
    const next: Course = {
      aliveMs: nowMs,
      enrolMs: enrolled ? nowMs + Math.max(enrolMs, Math.round(tookMs / enrolShare)) : (course.enrolMs ?? 0),
      nextMs,
      shown,
      troubles,
    };
    return jobs.map(({ id }) => ({ id, dueMs: nowMs + lookMs, payload: next }));
  }
  return { name: staleKind, sizeMax: 1, timed: true, run };
}

/** Time in which no server was there is no time in which data stayed away. */
async function makeUpForAbsence(tx: Db, tenantId: string, { aliveMs }: Course, nowMs: number): Promise<void> {
  if (aliveMs === undefined || nowMs - aliveMs <= absentMs) return;
  await tx`
    update stale_watches set last_ms = last_ms + ${BigInt(nowMs - aliveMs)}
    where tenant_id = ${tenantId} and not fired and last_ms <= ${BigInt(aliveMs)}`;
}

async function changesOf(
  tx: Db,
  tenantId: string,
  trigger: LoadedTrigger,
  nextMs: Record<string, number>,
  nowMs: number,
): Promise<StaleChange[]> {
  const { name } = trigger;
  const waitMs = Number(sourceOf(trigger).durationSec) * 1000 + heardMs;
  const bound = BigInt(nowMs - waitMs);
  const back = await tx<{ entityId: Buffer; lastMs: number }[]>`
    update stale_watches set fired = false
    where tenant_id = ${tenantId} and trigger_name = ${name} and fired and last_ms > ${bound}
    returning entity_id as "entityId", last_ms::float8 as "lastMs"`;
  const changes: StaleChange[] = back.map((row) => ({ ...row, triggerName: name, trigger, fired: false }));
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

/** Reads what has stayed away since before rules changed, since a rule may be new to the trigger. In the order of stale_watches_fired. */
async function firedBefore(
  tx: Db,
  tenantId: string,
  trigger: LoadedTrigger,
  shown: Record<string, string | null>,
): Promise<StaleChange[]> {
  const { name } = trigger;
  const after = shown[name];
  if (after === null) return [];
  const rows = await tx<{ entityId: Buffer; lastMs: number }[]>`
    select entity_id as "entityId", last_ms::float8 as "lastMs" from stale_watches
    where tenant_id = ${tenantId} and trigger_name = ${name} and fired and entity_id > ${Buffer.from(after ?? "", "hex")}
    order by entity_id limit ${firedMax}`;
  shown[name] = rows.length < firedMax ? null : (rows.at(-1)?.entityId.toString("hex") ?? null);
  return rows.map((row) => ({ ...row, triggerName: name, trigger, fired: true }));
}

/** What rules make of changes. */
async function tell(tx: Db, tenantId: string, changes: readonly StaleChange[], deciding: SourceOptions, nowMs: number) {
  const { users, silences } = await deciding.memory.now(tx, tenantId);
  const ids = new Map(changes.map(({ entityId }) => [keyText(entityId), entityId]));
  const entities = await readEntities(tx, tenantId, [...ids.values()]);
  const inWindows = new Set(entities.flatMap((row) => (inMaintenance(row) ? [keyText(row.id)] : [])));
  const sights = changes.flatMap(({ trigger, triggerName, entityId, lastMs, fired }): Sight[] => {
    const source = trigger && sourceOf(trigger);
    const subject = staleSubject(triggerName, entityId, source?.metricName ?? "");
    const muted = inWindows.has(keyText(entityId));
    const seen = { subject, matches: fired, again: false, now: undefined, inMaintenance: muted };
    const root = newRoot();
    const bound = source && { threshold: Number(source.durationSec), thresholdType: "duration" };
    const triggerNames = fired ? [triggerName] : [];
    return (users.get(triggerName) ?? []).map((rule) => ({
      ...seen,
      rule,
      triggerNames: () => triggerNames,
      told: () => ({ timeMs: lastMs, root, ...bound }),
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
  await passFrom("decide", { tx, tenantId, nowMs, wake: deciding.wake, noted, sights, silences });
}
