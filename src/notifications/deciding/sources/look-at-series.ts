import { byteaArray, textArray } from "../../../db/batch.ts";
import type { Db } from "../../../db/connect.ts";
import { planWithoutValues } from "../../../db/plans.ts";
import { type Pace, paced } from "../../../event-loop.ts";
import { labelsOrder } from "../../../metrics/labels.ts";
import { readPoints } from "../../../metrics/read.ts";
import type { StoredMatch } from "../../rules/match-store.ts";
import { metricData } from "../../rules/sources/source.ts";
import { aheadMs, crossed } from "../../rules/sources/threshold-bounds.ts";
import type { LoadedRule, LoadedTrigger } from "../../rules/tenant-rules.ts";
import { keyText, seriesSubject } from "../../subject/subject.ts";
import { type CurrentState, pairText, type ReadCurrentStates, type StateOptions } from "../current-state.ts";

/** Points that are older are not looked for: what is noted of the match counts. */
const backMs = 86_400_000;
/** Series whose points are held at once. */
const portion = 50;

type Points = readonly { readonly timeMs: number; readonly value: number }[];

/**
 * How rules see series whose matches stand, by `pairText`: with their newest value. Where rules were changed, a series that has been
 * within its bounds since its match was noted matches no more.
 */
export const lookAtSeries: ReadCurrentStates = async (tx, tenantId, matches, looking) => {
  const own = matches.filter(isSeries);
  const looks = new Map<string, CurrentState>();
  const pace = paced(undefined, tenantId);
  for (let from = 0; from < own.length; from += portion) {
    const some = own.slice(from, from + portion);
    const points = await pointsOf(tx, tenantId, some, looking.nowMs);
    for (const match of some) {
      const meant = await meaning(match, looking, pace);
      looks.set(pairText(match), lookAt(match, points.get(keyText(match.subject.key)) ?? [], meant, looking));
    }
  }
  return looks;
};

const isSeries = ({ subject: { key, entityId, metricName, metricLabels } }: StoredMatch) =>
  metricName !== undefined && seriesSubject(entityId, metricName, metricLabels).key.equals(key);

/** Finds the triggers of a match's rule that mean its series. */
async function meaning({ subject, ruleId }: StoredMatch, { rules, entities }: StateOptions, pace: Pace) {
  const rule = rules.byId.get(ruleId) as LoadedRule;
  const entity = entities.get(keyText(subject.entityId));
  const found: LoadedTrigger[] = [];
  for (const trigger of rules.byData("metricThreshold").get(metricData(subject.metricName ?? "")) ?? []) {
    const { name, means, meansLabels } = trigger;
    if (!rule.triggerNames.includes(name) || meansLabels?.(subject.metricLabels) === false) continue;
    if (means === undefined || (entity !== undefined && (await means(entity, pace)))) found.push(trigger);
  }
  return found;
}

function lookAt(
  match: StoredMatch,
  points: Points,
  own: readonly LoadedTrigger[],
  { rules, judges }: StateOptions,
): CurrentState {
  const { value, valueMs, triggerNames } = match;
  const rule = rules.byId.get(match.ruleId) as LoadedRule;
  const noted = value === undefined || valueMs === undefined ? [] : [{ value, timeMs: valueMs }];
  const newest = points.at(-1) ?? noted[0];
  const crossing = own.filter((trigger) => newest !== undefined && crossed(trigger, newest.value));
  const [first] = crossing;
  const held = (points.length > 0 ? points : noted).every((point) => own.some((each) => crossed(each, point.value)));
  const inOrder = rule.triggerNames.filter((name) => crossing.some((each) => each.name === name));
  return {
    triggerNames: judges ? (held ? inOrder : []) : triggerNames,
    now: undefined,
    told: { ...newest, ...(first && newest && crossed(first, newest.value)) },
  };
}

/** The points of series since the newest one that is noted of them, by their subjects' keys. */
async function pointsOf(
  tx: Db,
  tenantId: string,
  matches: readonly StoredMatch[],
  nowMs: number,
): Promise<Map<string, Points>> {
  const numbers = await numbersOf(tx, tenantId, matches);
  if (numbers.size === 0) return new Map();
  const span = { firstMs: nowMs - backMs, lastMs: nowMs + aheadMs };
  const turns = { signal: new AbortController().signal, pace: paced(() => {}, tenantId) };
  const stored = await readPoints(tx, tenantId, [...numbers.values()], span, turns);
  return new Map(
    matches.map(({ subject, valueMs = 0 }): [string, Points] => {
      const key = keyText(subject.key);
      const { times, values } = stored.get(numbers.get(key) ?? 0) ?? { times: [], values: [] };
      const all = Array.from(times, (timeMs, i) => ({ timeMs, value: values[i] as number }));
      return [key, all.filter(({ timeMs }) => timeMs >= Math.max(valueMs, span.firstMs))];
    }),
  );
}

/** By series_identity. */
async function numbersOf(tx: Db, tenantId: string, matches: readonly StoredMatch[]): Promise<Map<string, number>> {
  const order = matches.map(({ subject }) => labelsOrder(subject.metricLabels));
  planWithoutValues(tx);
  const rows = await tx<{ key: Buffer; number: number }[]>`
    select asked.key, s.number::float8 as number
    from unnest(
      ${byteaArray(matches.map(({ subject }) => subject.key))}::bytea[],
      ${byteaArray(matches.map(({ subject }) => subject.entityId))}::bytea[],
      ${textArray(matches.map(({ subject }) => subject.metricName ?? ""))}::text[],
      ${textArray(order.map(({ begin }) => begin))}::text[],
      ${byteaArray(order.map(({ hash }) => hash))}::bytea[]
    ) as asked (key, entity_id, metric, labels_begin, labels_hash)
    cross join lateral (
      select number from series
      where tenant_id = ${tenantId} and entity_id >= asked.entity_id and entity_id <= asked.entity_id
        and metric >= asked.metric and metric <= asked.metric
        and labels_begin >= asked.labels_begin and labels_begin <= asked.labels_begin
        and labels_hash >= asked.labels_hash and labels_hash <= asked.labels_hash
      order by entity_id, metric, labels_begin, labels_hash offset 0
    ) as s`;
  return new Map(rows.map(({ key, number }) => [keyText(key), number]));
}
