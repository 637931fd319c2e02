import { create } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Event, Occurrence } from "#gen/belfry/events/v1/event_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { oneOrNull } from "../data/one-or-null.ts";
import { clauseOfSeries, periodOf, readSeries } from "../data/series.ts";
import { may } from "../data/session.ts";
import { nothing, readHappened } from "../metrics/happened.ts";
import { LastValue } from "../ui/last-value.tsx";
import { Plot } from "../ui/plot.tsx";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";
import { tellingFirst } from "./telling-metrics.ts";

const triggers = clientOf(TriggerService);
const shownMax = 6;
/** As many as a page of the API holds. */
const comparedMax = 1000;

/** Reads the name of the metric of the trigger that made an occurrence; undefined: no trigger of a metric did, or it is gone. */
async function metricOfTrigger(labels: Readonly<Record<string, unknown>>, signal: AbortSignal) {
  // As a rule's destination `event` makes it.
  const { rule, trigger, cause } = labels;
  const made = [rule, trigger, cause].every((each) => typeof each === "string");
  if (!made || !may(TriggerService.method.getTrigger)) return undefined;
  const found = await oneOrNull(triggers.getTrigger({ name: String(trigger) }, { signal }));
  const source = found?.trigger?.type?.source;
  return source?.case === "metricThreshold" || source?.case === "staleData" ? source.value.metricName : undefined;
}

interface EntityMetricsProps {
  readonly event: Event;
  readonly occurrence: Occurrence;
}

/** The metrics of the entity an hour before and after an occurrence began, those that tell most about it. */
export function EntityMetrics({ event, occurrence }: EntityMetricsProps) {
  const entityId = event.entity ?? "";
  const aroundMs = Number(occurrence.startTime ?? 0n);
  const [start, end] = [aroundMs - 3_600_000, aroundMs + 3_600_000];
  const around = useAnswer((signal) => readHappened(entityId, start, end, signal), undefined, "happened");
  const happened = around.value.value ?? nothing;
  const marks = useMemo(
    () => [
      { at: aroundMs, text: "its start", tone: "critical" },
      ...happened.marks.filter(({ id }) => id !== occurrence.id),
    ],
    [aroundMs, happened],
  );
  const read = async (signal: AbortSignal) => {
    const how = { entityId, start, end };
    const labels = { ...occurrence.dimensions, ...occurrence.metadataFields };
    const counting = { ...how, aggregator: Aggregator.COUNT, period: periodOf(start, end, 1), pageSize: comparedMax };
    const [all, metric] = await Promise.all([readSeries(counting, signal), metricOfTrigger(labels, signal)]);
    const sent = all.series.filter(({ values }) => values.length > 0);
    const telltale = { name: event.name ?? "", summary: occurrence.summary ?? "", labels, metric };
    const chosen = tellingFirst(sent, telltale).slice(0, shownMax);
    if (chosen.length === 0) return { series: [], more: all.more };
    const metricClause = create(ClauseSchema, { anyOf: { clauses: chosen.map(clauseOfSeries) } });
    const drawing = { ...how, aggregator: Aggregator.MEAN, period: periodOf(start, end, 120), metricClause };
    const { series } = await readSeries({ ...drawing, pageSize: comparedMax }, signal);
    const byKey = new Map(series.map((each) => [each.key, each]));
    return {
      series: chosen.flatMap(({ key }) => byKey.get(key) ?? []),
      more: all.more || sent.length > chosen.length,
    };
  };
  const answer = useAnswer(read, undefined, "around");
  const { value, failure, again } = answer.value;
  const series = value?.series ?? [];
  const range = `${start}-${end}`;
  return (
    <section class={ui.card} aria-labelledby="around">
      <h2 id="around">Metrics of the entity around its start</h2>
      <Problem failure={failure} again={again} />
      {value && series.length === 0 && <p class={ui.quiet}>The entity sent no metric in that time.</p>}
      <div class={ui.smallPlots}>
        {series.map((each) => (
          <figure key={each.key}>
            <figcaption>
              <a href={linkTo(["metrics"], { entity: entityId, metric: each.metric, range })}>{each.name}</a>
              <span class={ui.quiet}>
                {" "}
                <LastValue series={each} end={end} />
              </span>
            </figcaption>
            <Plot
              name={each.name}
              series={[each]}
              start={start}
              end={end}
              height={120}
              marks={marks}
              bands={happened.bands}
            />
          </figure>
        ))}
      </div>
      {value?.more && (
        <p>
          <a href={linkTo(["metrics"], { entity: entityId, range })}>All its series</a>
        </p>
      )}
    </section>
  );
}
