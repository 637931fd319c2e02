import type { MetricThresholdSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Db } from "../../../db/connect.ts";
import type { EntityRow } from "../../../entities/messages.ts";
import { readEntities } from "../../../entities/read.ts";
import { type Pace, paced } from "../../../event-loop.ts";
import { newRoot } from "../../../events/facts.ts";
import { readPoints } from "../../../metrics/read.ts";
import type { StoredPoints } from "../../../metrics/store.ts";
import { lockMatches, makePlaces, readMatches, type StoredMatches } from "../../rules/match-store.ts";
import { metricData } from "../../rules/sources/source.ts";
import { aheadMs, boundsOf, crossed } from "../../rules/sources/threshold-bounds.ts";
import type { LoadedRule, LoadedTrigger, TenantRules } from "../../rules/tenant-rules.ts";
import { inMaintenance } from "../../silences/mutes.ts";
import { keyText, type Subject, seriesSubject } from "../../subject/subject.ts";
import type { Sight } from "../batch.ts";
import { decide } from "../decide.ts";
import { renamed } from "../decide-all.ts";
import { passFrom } from "../stages.ts";
import { lookAtSeries } from "./look-at-series.ts";
import type { DataSource, SourceOptions } from "./source.ts";

/** A series of a batch that triggers watch, with its points in the order of their arrival. */
interface Watched {
  readonly subject: Subject;
  readonly number: number;
  readonly triggers: readonly LoadedTrigger[];
  readonly points: { timeMs: number; value: number }[];
  /** Values from `low` to `high` are good for all of the triggers. */
  readonly low: number;
  readonly high: number;
}

/** A pace is asked for after this many points, or this many comparisons of them. */
const pointsBetween = 10_000;

/** Values of a metric that leave their bounds. */
export const metricThresholds: DataSource<MetricThresholdSource> = {
  currentStates: lookAtSeries,

  start: ({ wake }) => ({
    onPoints: (tx, tenantId, rules, points, nowMs) => holdPoints(tx, tenantId, rules, { points, nowMs, wake }),
  }),
};

/**
 * Holds points against the triggers that watch their metrics, in the transaction that stores them. A point that is older
 * than another of its series decides nothing.
 */
async function holdPoints(
  tx: Db,
  tenantId: string,
  rules: TenantRules,
  { points, nowMs, wake }: { points: StoredPoints; nowMs: number } & Pick<SourceOptions, "wake">,
): Promise<void> {
  if (rules.byData("metricThreshold").size === 0) return;
  const pace = paced(undefined, tenantId);
  const watched = await watchedOf(rules, points, pace);
  if (watched.length === 0) return;
  const keys = watched.map(({ subject }) => subject.key);
  const noted = await readMatches(tx, tenantId, keys);
  const lively = watched.filter((each) => mayDecide(each, noted));
  if (lively.length === 0) return;
  const entities = await entitiesOf(tx, tenantId, lively);
  const decided = new Map<string, Pick<Sight, "subject" | "rule">>();
  for await (const sight of sights(rules, lively, entities, noted, pace)) {
    if (!changes(sight, noted, nowMs)) continue;
    const { subject, rule } = sight;
    decided.set(`${keyText(subject.key)}${rule.id}`, { subject, rule });
  }
  if (decided.size === 0) return;
  // The rows are the lock: of two transactions one sees what the other has decided.
  await makePlaces(tx, tenantId, [...decided.values()]);
  const concerned = new Set([...decided.values()].map(({ subject }) => subject));
  const some = lively.filter(({ subject }) => concerned.has(subject));
  const someKeys = some.map(({ subject }) => subject.key);
  await lockMatches(tx, tenantId, someKeys);
  const [now, news] = await Promise.all([readMatches(tx, tenantId, someKeys), withoutLate(tx, tenantId, some, nowMs)]);
  const seen = sights(rules, news, entities, now, pace);
  await passFrom("decide", { tx, tenantId, nowMs, wake, noted: now, sights: seen, silences: rules.silences });
}

async function watchedOf(
  rules: TenantRules,
  { seriesOf, series, times, values }: StoredPoints,
  pace: Pace,
): Promise<Watched[]> {
  const watching = rules.byData("metricThreshold");
  const byNumber = new Map<number, Watched>();
  for (const { number, entityId, metric, labels } of seriesOf((name) => watching.has(metricData(name))).values()) {
    const triggers = watching.get(metricData(metric)) ?? [];
    const bounds = boundsOf(triggers);
    byNumber.set(number, { subject: seriesSubject(entityId, metric, labels), number, triggers, points: [], ...bounds });
    if (byNumber.size % 100 === 0) await pace();
  }
  if (byNumber.size === 0) return [];
  for (let i = 0; i < series.length; i++) {
    if (i % pointsBetween === pointsBetween - 1) await pace();
    const watched = byNumber.get(series[i] as number);
    watched?.points.push({ timeMs: times[i] as number, value: values[i] as number });
  }
  return [...byNumber.values()].filter(({ points }) => points.length > 0);
}

/** A value crosses a bound, or a rule matches the series by now. */
function mayDecide({ subject, points, low, high }: Watched, noted: StoredMatches): boolean {
  if ([...(noted.get(keyText(subject.key))?.values() ?? [])].some(({ standing }) => standing)) return true;
  return points.some(({ value }) => isBeyond({ low, high }, value));
}

async function entitiesOf(tx: Db, tenantId: string, watched: readonly Watched[]) {
  const ids = new Map(watched.map(({ subject: { entityId } }) => [keyText(entityId), entityId]));
  const rows = await readEntities(tx, tenantId, [...ids.values()]);
  return new Map(rows.map((row) => [keyText(row.id), row]));
}

/** What rules see of points, each later than those before it. */
async function* sights(
  rules: TenantRules,
  watched: readonly Watched[],
  entities: ReadonlyMap<string, EntityRow>,
  noted: StoredMatches,
  pace: Pace,
): AsyncGenerator<Sight> {
  const shared = new Map<readonly LoadedTrigger[], readonly RuleBounds[]>();
  for (const { subject, triggers, points, low, high } of watched) {
    const entity = entities.get(keyText(subject.entityId));
    const meant: LoadedTrigger[] = [];
    for (const trigger of triggers) {
      const { means, meansLabels } = trigger;
      if (means !== undefined || meansLabels !== undefined) await pace();
      if (meansLabels?.(subject.metricLabels) === false) continue;
      if (means === undefined || (entity !== undefined && (await means(entity, pace)))) meant.push(trigger);
    }
    const alike = meant.length === triggers.length ? shared.get(triggers) : undefined;
    const own = alike ?? ruleBounds(rules, meant);
    if (meant.length === triggers.length) shared.set(triggers, own);
    const muted = inMaintenance(entity);
    let lastMs = -Infinity;
    for (const { timeMs, value } of points) {
      await pace();
      if (timeMs < lastMs) continue;
      lastMs = timeMs;
      const root = newRoot();
      const good = value >= low && value <= high;
      for (const [rule, ofRule] of rulesThatCare(rules, subject, value, good ? [] : own, noted)) {
        await pace();
        const matches = ofRule.length > 0;
        const crossing = () => ofRule.filter((trigger) => crossed(trigger, value) !== undefined);
        yield {
          rule,
          subject,
          matches,
          again: true,
          inMaintenance: muted,
          now: undefined,
          triggerNames: () => crossing().map(({ name }) => name),
          told() {
            const [first] = crossing();
            return { timeMs, value, root, ...(first && crossed(first, value)) };
          },
        };
      }
    }
  }
}

/** A rule's triggers of a series in its order, and the values from `low` to `high` that are good for all of them. */
interface RuleBounds {
  readonly rule: LoadedRule;
  readonly triggers: readonly LoadedTrigger[];
  readonly low: number;
  readonly high: number;
}

/** The rules that use some of these triggers. */
function ruleBounds(rules: TenantRules, meant: readonly LoadedTrigger[]): RuleBounds[] {
  const byName = new Map(meant.map((trigger) => [trigger.name, trigger]));
  const users = new Set(meant.flatMap(({ name }) => rules.users.get(name) ?? []));
  return [...users].map((rule) => {
    const triggers = rule.triggerNames.flatMap((name) => byName.get(name) ?? []);
    return { rule, triggers, ...boundsOf(triggers) };
  });
}

const isBeyond = ({ low, high }: { low: number; high: number }, value: number) => value < low || value > high;

/** The rules of which a value crosses a bound, and those that match the series by now, with their triggers of it. */
function rulesThatCare(
  rules: TenantRules,
  { key }: Subject,
  value: number,
  own: readonly RuleBounds[],
  noted: StoredMatches,
) {
  const found = new Map<LoadedRule, readonly LoadedTrigger[]>();
  for (const each of own) if (isBeyond(each, value)) found.set(each.rule, each.triggers);
  for (const { ruleId, standing } of noted.get(keyText(key))?.values() ?? []) {
    const rule = standing ? rules.byId.get(ruleId) : undefined;
    if (rule !== undefined && !found.has(rule)) found.set(rule, []);
  }
  return found;
}

/** Whether anything follows from a sight, as far as is known without a lock. */
function changes(sight: Sight, noted: StoredMatches, nowMs: number): boolean {
  const match = noted.get(keyText(sight.subject.key))?.get(sight.rule.id);
  return decide(sight.rule, match, sight, nowMs) !== undefined || renamed(match, sight) !== undefined;
}

/** The points that are newer than all that were stored before them. */
async function withoutLate(tx: Db, tenantId: string, watched: readonly Watched[], nowMs: number): Promise<Watched[]> {
  const firstMs = Math.min(...watched.flatMap(({ points }) => points.map(({ timeMs }) => timeMs)));
  const numbers = watched.map(({ number }) => number);
  const span = { firstMs, lastMs: nowMs + aheadMs };
  const turns = { signal: new AbortController().signal, pace: paced(() => {}, tenantId) };
  const stored = await readPoints(tx, tenantId, numbers, span, turns);
  return watched.map((each) => {
    const sent = new Set(each.points.map(({ timeMs }) => timeMs));
    let lastMs = -Infinity;
    for (const timeMs of stored.get(each.number)?.times ?? []) if (!sent.has(timeMs)) lastMs = Math.max(lastMs, timeMs);
    return { ...each, points: each.points.filter(({ timeMs }) => timeMs > lastMs) };
  });
}
