import { create } from "@bufbuild/protobuf";
import { computed, untracked } from "@preact/signals";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { address, listOf } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { dimensionsText } from "../data/dimensions.ts";
import { periodOf, type ReadSeries, readSeries } from "../data/series.ts";
import { readClause } from "../events/query.ts";
import { endsOf } from "../ui/time-range.tsx";

const entities = clientOf(EntityService);

/** The API reads the series of one entity a call: how many entities are asked, and how many at the same time. */
const entitiesMax = 100;
const atOnce = 6;
const seriesMax = 200;

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
    return { entities: [{ id, name: found.entities?.entities[0]?.name ?? id }], total: 1 };
  }
  const clause = readClause(parameters.where.value) ?? (parameters.metric.value === "" ? undefined : all);
  if (clause === undefined) return undefined;
  const searchInput = { query: { clause }, pageInput: { limit: entitiesMax } };
  const page = await entities.searchEntities({ searchInput }, { signal });
  const found = page.entities?.entities ?? [];
  const counts = Map.groupBy(found, ({ name }) => name);
  return {
    entities: found.map(({ id: own, name, dimensions }) => ({
      id: own,
      name: counts.get(name)?.length === 1 ? name : `${name} (${dimensionsText(dimensions)})`,
    })),
    total: Number(page.pageInfo?.totalCount ?? found.length),
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
  readonly series: readonly EntitySeries[];
  /** Whether there are series that were not read. */
  readonly more: boolean;
  /** How many entities were asked, of those that match. */
  readonly asked: number;
  readonly total: number;
}

/** The series of entities, one entity after the other, until there are as many as a person can choose from. Reads signals. */
export async function readAll(matching: Matching | undefined, signal: AbortSignal): Promise<Read | undefined> {
  if (matching === undefined) return undefined;
  const { start, end } = endsHere();
  const period = parameters.period.value || periodOf(start, end);
  const metric = parameters.metric.value === "" ? [] : untracked(() => listOf("metric"));
  const how = {
    start,
    end,
    period,
    pageSize: seriesMax,
    aggregator: Aggregator[parameters.aggregator.value as keyof typeof Aggregator],
    ...(metric.length > 0 && { metricClause: create(ClauseSchema, { anyOf: { clauses: metric.map(beginningWith) } }) }),
  };
  // Where an entity was chosen, all are of it.
  const named = parameters.entity.value === "";
  const series: EntitySeries[] = [];
  let [asked, more] = [0, false];
  while (asked < matching.entities.length && series.length < seriesMax) {
    const next = matching.entities.slice(asked, asked + atOnce);
    const answers = await Promise.all(next.map(({ id }) => readSeries({ ...how, entityId: id }, signal)));
    for (const [at, answer] of answers.entries()) {
      if (series.length >= seriesMax) break;
      asked += 1;
      more ||= answer.more;
      series.push(
        ...answer.series.map((each) => {
          const entity = named ? (next[at]?.name ?? "") : "";
          return { ...each, entity, name: named ? `${entity} · ${each.name}` : each.name };
        }),
      );
    }
  }
  more ||= series.length > seriesMax || asked < matching.total;
  const kept = metric.length === 0 ? series : called(series, metric);
  return { start, end, period, series: kept.slice(0, seriesMax), more, asked, total: matching.total };
}
