import type { ReadonlySignal } from "@preact/signals";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { answered, useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { memo } from "../ui/memo.ts";
import { narrow } from "../ui/narrow.ts";
import eventsLook from "./events.module.css";
import type { Counts } from "./facets.tsx";
import { Histogram, readFrequencies } from "./histogram.tsx";
import { acknowledgedClause, allOf, answerToQuery, choose, chosen, excluded, queryOf } from "./query.ts";
import { severities } from "./words.tsx";

const events = clientOf(EventQueryService);

/** Counts unacknowledged occurrences by severity. Reads signals. */
async function countUnacknowledged(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const query = queryOf("severity");
  const open = acknowledgedClause(false);
  const clause = query.clause === undefined ? open : allOf([query.clause, open]);
  const asked = { query: { ...query, clause }, fields: [{ field: "severity" }] };
  const { results } = await events.countEvents(asked, { signal });
  return new Map(results.severity?.values.map(({ value, count }) => [String(value?.kind.value), Number(count)]));
}

interface OverviewProps {
  readonly counts: Counts | undefined;
  readonly news: ReadonlySignal<number>;
}

/** Shows occurrences by severity and by time, and the number of their entities. */
export const Overview = memo(function Overview({ counts, news }: OverviewProps) {
  const answer = useAnswer(
    async (signal) => {
      news.value;
      // On a narrow page there is no room for bars.
      const reading = narrow.value ? undefined : readFrequencies(signal);
      const [frequencies, unacknowledged] = await Promise.all([reading, countUnacknowledged(signal)]);
      return { frequencies, unacknowledged };
    },
    undefined,
    "overview",
    answerToQuery,
  );
  const { frequencies, unacknowledged } = answered(answer.value) ?? {};
  const told = counts?.severity.some(({ count }) => count > 0) ?? false;
  if (!told) return null;
  return (
    <div class={eventsLook.overview}>
      <Totals counts={counts} unacknowledged={unacknowledged} />
      {frequencies && <Histogram frequencies={frequencies} />}
    </div>
  );
});

interface TotalsProps {
  readonly counts: Counts | undefined;
  readonly unacknowledged: ReadonlyMap<string, number> | undefined;
}

/** Shows the count of each severity; a press on one lists it alone. */
function Totals({ counts, unacknowledged }: TotalsProps) {
  const selected = chosen("severity");
  const countOf = new Map(counts?.severity.map(({ value, count }) => [value, count]));
  const ofAll = chosen("entityName").length + excluded("entityName").length === 0;
  const entityCount = ofAll ? (counts?.entityName.length ?? 0) : 0;
  return (
    <fieldset class={eventsLook.totals} aria-label="Totals">
      {severities.slice(0, 4).map(({ value, word, tone }) => {
        const count = countOf.get(String(value)) ?? 0;
        if (count === 0) return null;
        const only = selected.length === 1 && selected[0] === String(value);
        const left = unacknowledged === undefined ? count : (unacknowledged.get(String(value)) ?? 0);
        return (
          <button
            key={value}
            type="button"
            data-tone={tone}
            aria-pressed={only}
            onClick={() => choose("severity", only ? [] : [String(value)])}
          >
            <strong>{count.toLocaleString("en")}</strong> {word.toLowerCase()}
            {left < count && `, ${left.toLocaleString("en")} unacked`}
          </button>
        );
      })}
      {entityCount > 0 && (
        <p>
          <strong>{entityCount.toLocaleString("en")}</strong> {entityCount === 1 ? "entity" : "entities"}
        </p>
      )}
    </fieldset>
  );
}
