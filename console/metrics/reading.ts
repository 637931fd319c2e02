import { create } from "@bufbuild/protobuf";
import { computed, untracked } from "@preact/signals";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { address, listOf } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { dimensionsText } from "../data/dimensions.ts";
import { type PlotSeries, periodOf, readSeries } from "../data/series.ts";
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
};

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

const oneOf = (names: readonly string[]) =>
  create(ClauseSchema, {
    anyOf: {
      clauses: names.map((value) =>
        create(ClauseSchema, {
          filter: { field: "name", operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value } } },
        }),
      ),
    },
  });

/** Series of entities, and how they were read. */
export interface Read {
  readonly start: number;
  readonly end: number;
  readonly period: string;
  readonly series: readonly PlotSeries[];
  /** Whether there are series that were not read. */
  readonly more: boolean;
  /** How many entities were asked, of those that match. */
  readonly asked: number;
  readonly total: number;
}

/** The series of entities, one entity after the other, until there are as many as a person can choose from. Reads signals. */
export async function readAll(matching: Matching | undefined, signal: AbortSignal): Promise<Read | undefined> {
  if (matching === undefined) return undefined;
  const { start, end } = endsOf(parameters.range.value) ?? { start: Date.now() - 3_600_000, end: Date.now() };
  const period = parameters.period.value || periodOf(start, end);
  const metric = parameters.metric.value === "" ? [] : untracked(() => listOf("metric"));
  const how = {
    start,
    end,
    period,
    pageSize: seriesMax,
    aggregator: Aggregator[parameters.aggregator.value as keyof typeof Aggregator],
    ...(metric.length > 0 && { metricClause: oneOf(metric) }),
  };
  // Where an entity was chosen, all are of it.
  const named = parameters.entity.value === "";
  const series: PlotSeries[] = [];
  let [asked, more] = [0, false];
  while (asked < matching.entities.length && series.length < seriesMax) {
    const next = matching.entities.slice(asked, asked + atOnce);
    const answers = await Promise.all(next.map(({ id }) => readSeries({ ...how, entityId: id }, signal)));
    for (const [at, answer] of answers.entries()) {
      if (series.length >= seriesMax) break;
      asked += 1;
      more ||= answer.more;
      series.push(
        ...answer.series.map((each) => (named ? { ...each, name: `${next[at]?.name} · ${each.name}` } : each)),
      );
    }
  }
  more ||= series.length > seriesMax || asked < matching.total;
  return { start, end, period, series: series.slice(0, seriesMax), more, asked, total: matching.total };
}
