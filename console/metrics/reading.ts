import { create } from "@bufbuild/protobuf";
import { computed, untracked } from "@preact/signals";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { address, listOf } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { dimensionsText } from "../data/dimensions.ts";
import { clauseOfSeries, periodOf, type ReadSeries, readSeries } from "../data/series.ts";
import { readClause } from "../events/query.ts";
import { endsOf } from "../ui/time-range.tsx";

const entities = clientOf(EntityService);

/** The API reads the series of one entity a call: how many entities are asked, and how many at the same time. */
const entitiesMax = 300;
const atOnce = 6;
const seriesMax = 200;
/** Most entities whose values are read at once; the series of more are compared first. */
const readAtOnceMax = 100;
/** Series that are compared, of an entity (a page of the API) and of all. */
const ofEntityMax = 1000;
const comparedMax = 20_000;
/** Most series of an entity that a clause names; of more all are read. */
const namedMax = 50;

const parameterOf = (name: string, otherwise = "") => computed(() => address.value.parameters.get(name) || otherwise);

/** The parameters of the address that decide what is read, each a signal: others change without a call. */
export const parameters = {
  entity: parameterOf("entity"),
  where: parameterOf("where"),
  metric: parameterOf("metric"),
  range: parameterOf("range", "1h"),
  aggregator: parameterOf("aggregator", "MEAN"),
  period: parameterOf("period"),
  /** What there is a plot for, of each metric: as `divisions` has it. */
  by: parameterOf("by"),
  /** The name of the refresh interval, as `choices` of refresh.tsx has it; empty: none. */
  refresh: parameterOf("refresh"),
};

/** The range of the address, in ms. Reads signals. */
export const endsHere = () => endsOf(parameters.range.value) ?? { start: Date.now() - 3_600_000, end: Date.now() };

/** A series with the name of its entity, which is empty where all are of the one that was chosen. */
export interface EntitySeries extends ReadSeries {
  readonly entity: string;
}

interface Matching {
  /** Those whose series can be read, each by a name that no other one of them has. */
  readonly entities: readonly { readonly id: string; readonly name: string }[];
  readonly total: number;
  /** The hint to its clause; empty: none. */
  readonly hint?: string;
}

const all = create(ClauseSchema, { filter: { field: "id", operation: Operation.OP_EXISTS } });

/**
 * The entities of the address: the one that it names, else those that meet its clause, or with a metric alone all. Undefined: it
 * says nothing of them. @throws as readClause
 */
export async function readEntities(signal: AbortSignal): Promise<Matching | undefined> {
  const id = parameters.entity.value;
  if (id !== "") {
    const clause = create(ClauseSchema, { withIds: { ids: [id] } });
    const found = await entities.searchEntities({ searchInput: { query: { clause } } }, { signal });
    // The series of a deleted entity can still be read.
    return { entities: [{ id, name: found.entities?.entities[0]?.displayName ?? id }], total: 1 };
  }
  const clause = readClause(parameters.where.value) ?? (parameters.metric.value === "" ? undefined : all);
  if (clause === undefined) return undefined;
  const searchInput = { query: { clause }, pageInput: { limit: entitiesMax } };
  const page = await entities.searchEntities({ searchInput }, { signal });
  const found = page.entities?.entities ?? [];
  const counts = Map.groupBy(found, ({ displayName }) => displayName);
  return {
    entities: found.map(({ id: own, displayName, dimensions }) => ({
      id: own,
      name: counts.get(displayName)?.length === 1 ? displayName : `${displayName} (${dimensionsText(dimensions)})`,
    })),
    total: Number(page.pageInfo?.totalCount ?? found.length),
    hint: page.hint,
  };
}

const lastCharacter = String.fromCodePoint(0x10ffff);

/** Metrics whose names begin so. */
function beginningWith(text: string) {
  const name = (operation: Operation, value: string) =>
    create(ClauseSchema, { filter: { field: "name", operation, value: { kind: { case: "stringValue", value } } } });
  return create(ClauseSchema, {
    allOf: { clauses: [name(Operation.OP_GREATER_OR_EQ, text), name(Operation.OP_LESS, text + lastCharacter)] },
  });
}

/** The series of the metrics that are called like one of the names; of a name that no metric has, of those that begin so. */
function called(series: readonly EntitySeries[], names: readonly string[]): EntitySeries[] {
  const exact = new Set(names.filter((name) => series.some(({ metric }) => metric === name)));
  return series.filter(({ metric }) =>
    names.some((name) => (exact.has(name) ? metric === name : metric.startsWith(name))),
  );
}

/** Series of entities, and how they were read. */
export interface Read {
  readonly start: number;
  readonly end: number;
  readonly period: string;
  /** The series; of more than can be read, those with the greatest values of each metric. */
  readonly series: readonly EntitySeries[];
  /** The number of series that were found. */
  readonly found: number;
  /** True if there may be series that were not found. */
  readonly more: boolean;
  /** How many entities were asked, of those that match. */
  readonly asked: number;
  readonly total: number;
}

interface AskedEntity {
  readonly id: string;
  /** Empty where an entity was chosen: all series are of it. */
  readonly name: string;
  readonly metricClause?: Clause;
}

type How = Omit<Parameters<typeof readSeries>[0], "entityId">;

/** Reads the series of entities, some entities after the others, until there are enough. */
async function readEach(of: readonly AskedEntity[], how: How, enough: number, signal: AbortSignal) {
  const series: EntitySeries[] = [];
  let [asked, more] = [0, false];
  while (asked < of.length && series.length < enough) {
    const next = of.slice(asked, asked + atOnce);
    const answers = await Promise.all(
      next.map(({ id, metricClause = how.metricClause }) =>
        readSeries({ ...how, entityId: id, ...(metricClause && { metricClause }) }, signal),
      ),
    );
    asked += next.length;
    for (const [at, answer] of answers.entries()) {
      more ||= answer.more;
      const entity = next[at]?.name ?? "";
      series.push(
        ...answer.series.map((each) => ({ ...each, entity, name: entity ? `${entity} · ${each.name}` : each.name })),
      );
    }
  }
  return { series, asked, more };
}

/** Aggregators that tell most of a series by one value of a whole range; of any other the highest value does. */
const byThemselves: readonly Aggregator[] = [
  Aggregator.COUNT,
  Aggregator.DELTA,
  Aggregator.MIN,
  Aggregator.RATE,
  Aggregator.STDDEV,
  Aggregator.SUM,
];

/** Takes as many series as can be read: of each metric the greatest ones, so that none is left out by its name. */
function greatest(series: readonly EntitySeries[]): EntitySeries[] {
  const valueOf = ({ values }: EntitySeries) => values.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const metrics = [...Map.groupBy(series, ({ metric }) => metric).values()];
  return metrics
    .flatMap((own) =>
      own
        .map((each) => ({ each, value: valueOf(each) }))
        .sort((a, b) => b.value - a.value)
        .map(({ each }, rank) => ({ each, rank })),
    )
    .sort((a, b) => a.rank - b.rank)
    .slice(0, seriesMax)
    .map(({ each }) => each);
}

/** Reads the series of entities; of more than a person can choose from, those with the greatest values. Reads signals. */
export async function readAll(matching: Matching | undefined, signal: AbortSignal): Promise<Read | undefined> {
  if (matching === undefined) return undefined;
  const { start, end } = endsHere();
  const period = parameters.period.value || periodOf(start, end);
  const names = parameters.metric.value === "" ? [] : untracked(() => listOf("metric"));
  const aggregator = Aggregator[parameters.aggregator.value as keyof typeof Aggregator];
  const how: How = {
    start,
    end,
    period,
    pageSize: seriesMax,
    aggregator,
    ...(names.length > 0 && { metricClause: create(ClauseSchema, { anyOf: { clauses: names.map(beginningWith) } }) }),
  };
  const wanted = (series: readonly EntitySeries[]) => (names.length === 0 ? series : called(series, names));
  const named = parameters.entity.value === "";
  const entities = matching.entities.map(({ id, name }) => ({ id, name: named ? name : "" }));
  const { total } = matching;
  if (total <= readAtOnceMax) {
    const { series, asked, more } = await readEach(entities, how, seriesMax + 1, signal);
    const kept = wanted(series);
    if (!more && asked === total && kept.length <= seriesMax)
      return { start, end, period, series: kept, found: kept.length, more: false, asked, total };
  }
  const compared = await readEach(
    entities,
    {
      ...how,
      aggregator: byThemselves.includes(aggregator) ? aggregator : Aggregator.MAX,
      period: `${Math.ceil((end - start) / 1000)}s`,
      pageSize: ofEntityMax,
    },
    comparedMax,
    signal,
  );
  const found = wanted(compared.series).filter(({ values }) => values.length > 0);
  const chosen = greatest(found);
  const byEntity = Map.groupBy(chosen, ({ entity }) => entity);
  const asked = entities.flatMap(({ id, name }) => {
    const own = byEntity.get(name) ?? [];
    if (own.length === 0) return [];
    if (own.length > namedMax) return [{ id, name }];
    return [{ id, name, metricClause: create(ClauseSchema, { anyOf: { clauses: own.map(clauseOfSeries) } }) }];
  });
  const keys = new Set(chosen.map(({ key }) => key));
  const { series } = await readEach(asked, { ...how, pageSize: ofEntityMax }, Number.POSITIVE_INFINITY, signal);
  return {
    start,
    end,
    period,
    series: series.filter(({ key }) => keys.has(key)),
    found: found.length,
    more: compared.more || compared.asked < total,
    asked: compared.asked,
    total,
  };
}
