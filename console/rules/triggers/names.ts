import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { MetricDictionaryService } from "#gen/belfry/dictionary/v1/metric_entry_service_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { useAnswer } from "../../data/answer.ts";
import { clientOf } from "../../data/calls.ts";
import { readSeries } from "../../data/series.ts";
import { useSettled } from "../../data/settled.ts";
import { timeRangeOf } from "../../ui/time-range.tsx";

const entities = clientOf(EntityService);

const all = create(ClauseSchema, { filter: { field: "id", operation: Operation.OP_EXISTS } });

/** The entities that a query of a trigger finds, the first ones, and how many there are. Without a clause: all. */
export async function findEntities(clauseText: string, limit: number, signal: AbortSignal) {
  const clause = clauseText === "" ? all : fromJsonString(ClauseSchema, clauseText);
  const page = await entities.searchEntities({ searchInput: { query: { clause }, pageInput: { limit } } }, { signal });
  const found = page.entities?.entities ?? [];
  return { entities: found, total: Number(page.pageInfo?.totalCount ?? found.length) };
}

/** A clause as text, empty without one. */
export const clauseText = (clause: Clause | undefined) =>
  clause === undefined ? "" : toJsonString(ClauseSchema, clause);

const askedEntities = 5;

/** Names of metrics to choose from: those of the dictionary, and those that the first of the entities have sent in the last week. */
export function useMetricNames(clause: Clause | undefined): readonly string[] {
  const text = useSettled(clauseText(clause));
  const sent = useAnswer(async (signal) => {
    const found = await findEntities(text, askedEntities, signal);
    const end = Date.now();
    const how = { start: end - 604_800_000, end, aggregator: Aggregator.COUNT, period: "7d", pageSize: 200 };
    const answers = await Promise.all(found.entities.map(({ id }) => readSeries({ ...how, entityId: id }, signal)));
    return answers.flatMap(({ series }) => series.map(({ metric }) => metric));
  }, text);
  const dictionary = useAnswer(async (signal) => {
    const { metrics } = await clientOf(MetricDictionaryService).listMetricEntries({ pageSize: 1000 }, { signal });
    return metrics.map(({ name }) => name);
  });
  // A failure only leaves names out, which can be typed.
  return [...new Set([...(sent.value.value ?? []), ...(dictionary.value.value ?? [])])].sort();
}

/** Names of events of the last week, the most frequent ones. */
export function useEventNames(): readonly string[] {
  const answer = useAnswer(async (signal) => {
    const timeRange = timeRangeOf("7d");
    const query = timeRange === undefined ? {} : { timeRange };
    const { results } = await clientOf(EventQueryService).countEvents(
      { query, fields: [{ field: "name" }] },
      { signal },
    );
    return (results.name?.values ?? []).map(({ value }) => String(value?.kind.value ?? ""));
  });
  return answer.value.value?.slice(0, 500) ?? [];
}
