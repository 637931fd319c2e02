import type { Query } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { labelClauses, searchClauses } from "../../clause/search-clause.ts";
import { triggerClauses } from "../../clause/trigger-clause.ts";
import { clauseWords } from "../../clause/words.ts";
import { durationText } from "../../ui/time.tsx";

type Source = NonNullable<TriggerType["source"]["case"]>;

/** How sources are called. */
export const sourceWords: Readonly<Record<Source, string>> = {
  event: "Events",
  metricThreshold: "Values of a metric",
  staleData: "Missing data",
};

/** What a trigger looks at, and when it matches, in words. */
export function typeWords(type: TriggerType | undefined): string {
  const source = type?.source;
  switch (source?.case) {
    case "event": {
      const { clause, matchers = [] } = source.value.query ?? {};
      if (matchers.length > 0) return matchers.join(" and ");
      return clause === undefined ? "" : clauseWords(triggerClauses, clause);
    }
    case "metricThreshold": {
      const { metricName, min, max, entityQuery, metricClause } = source.value;
      const bounds = [...(max === undefined ? [] : [`above ${max}`]), ...(min === undefined ? [] : [`below ${min}`])];
      const labels = metricClause === undefined ? "" : `, where ${clauseWords(labelClauses, metricClause)}`;
      return `${metricName} ${bounds.join(" or ")}${labels}${ofEntities(entityQuery)}`;
    }
    case "staleData": {
      const { metricName, eventName, entityQuery, durationSec } = source.value;
      const watched = [
        ...(metricName === "" ? [] : [`value of ${metricName}`]),
        ...(eventName === "" ? [] : [`event “${eventName}”`]),
      ];
      return `no ${watched.join(" and no ")} for ${durationText(Number(durationSec) * 1000)}${ofEntities(entityQuery)}`;
    }
    default:
      return "";
  }
}

const ofEntities = (query: Query | undefined) =>
  query?.clause === undefined ? "" : `, of entities whose ${clauseWords(searchClauses, query.clause)}`;
