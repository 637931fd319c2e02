import { useMemo } from "preact/hooks";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { linkTo } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { periodOf, readSeries } from "../data/series.ts";
import { Plot } from "../ui/plot.tsx";
import { Problem } from "../ui/problem.tsx";
import { quantityText } from "../ui/quantity.ts";
import ui from "../ui/ui.module.css";

const shownMax = 6;

/** The metrics of an entity, an hour before and after a moment. */
export function EntityMetrics({ entityId, aroundMs }: { entityId: string; aroundMs: number }) {
  const [start, end] = [aroundMs - 3_600_000, aroundMs + 3_600_000];
  const marks = useMemo(() => [{ at: aroundMs, text: "its start", tone: "critical" }], [aroundMs]);
  const answer = useAnswer((signal) =>
    readSeries(
      { entityId, start, end, aggregator: Aggregator.MEAN, period: periodOf(start, end, 120), pageSize: shownMax },
      signal,
    ),
  );
  const { value, failure, again } = answer.value;
  const series = value?.series.filter(({ values }) => values.length > 0) ?? [];
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
              <span class={ui.quiet}> {quantityText(each.values.at(-1), each.units)}</span>
            </figcaption>
            <Plot name={each.name} series={[each]} start={start} end={end} height={120} marks={marks} />
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
