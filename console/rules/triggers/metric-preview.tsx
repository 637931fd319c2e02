import { toJsonString } from "@bufbuild/protobuf";
import { useMemo } from "preact/hooks";
import { type MetricThresholdSource, MetricThresholdSourceSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { setParameters } from "../../data/address.ts";
import { useAnswer } from "../../data/answer.ts";
import { useSettled } from "../../data/settled.ts";
import { levelStyle, lineStyle, numberText, Plot } from "../../ui/plot.tsx";
import { Problem } from "../../ui/problem.tsx";
import { TimeRangeChoice } from "../../ui/time-range.tsx";
import ui from "../../ui/ui.module.css";
import { type Measured, readAgainstBounds } from "./bounds.ts";
import { previewRange } from "./preview.tsx";

const drawnMax = 6;

/** The values of a metric against the bounds as they are typed. */
export function MetricPreview({ source }: { source: MetricThresholdSource }) {
  const text = useSettled(source.metricName === "" ? "" : toJsonString(MetricThresholdSourceSchema, source));
  const answer = useAnswer(async (signal) => {
    const range = previewRange();
    return text === "" ? undefined : await readAgainstBounds(text, range, signal);
  }, text);
  const { value, loading, failure, again } = answer.value;
  return (
    <section class={`${ui.card} ${ui.preview}`} aria-labelledby="preview">
      <h2 id="preview">Values and bounds</h2>
      <p class={ui.hint}>A preview is of events alone. These are the values that the entities sent, with the bounds.</p>
      <TimeRangeChoice value={previewRange()} change={(range) => setParameters({ range }, false)} />
      <p role="status">
        {loading ? "Looking…" : failure ? "" : value ? foundText(value) : "Name a metric to see its values."}
      </p>
      <Problem failure={failure} again={again} />
      {failure === undefined && value && value.series.length > 0 && <DrawnBounds {...value} />}
    </section>
  );
}

function foundText({ outside, count, asked, total }: Measured): string {
  const entities =
    asked < total ? ` Only the first ${asked} of ${total.toLocaleString("en")} entities were looked at.` : "";
  if (count === 0) return `No series of this metric in this time.${entities}`;
  if (outside === undefined) return `${count} series. Set a bound to see which were outside of it.${entities}`;
  return `${outside} of ${count} series ${outside === 1 ? "was" : "were"} out of bounds in this time.${entities}`;
}

/** Draws those that were out of bounds before others, as many as have a colour of their own. */
function DrawnBounds({ start, end, series, min, max }: Measured) {
  const drawn = useMemo(() => series.slice(0, drawnMax), [series]);
  const bounds = [
    ["Highest good value", max],
    ["Lowest good value", min],
  ] as const;
  const levels = useMemo(() => [max, min].filter((each) => each !== undefined), [min, max]);
  return (
    <>
      <Plot name="values and bounds" series={drawn} levels={levels} start={start} end={end} height={220} />
      <ul class={ui.legend}>
        {bounds.map(
          ([name, value]) =>
            value !== undefined && (
              <li key={name}>
                <span class={ui.legendLine} style={levelStyle} aria-hidden="true" /> {name}:{" "}
                {numberText(value, series[0]?.units)}
              </li>
            ),
        )}
        {drawn.map((each, at) => (
          <li key={each.key}>
            <span class={ui.legendLine} style={lineStyle(at)} aria-hidden="true" /> {each.name}
          </li>
        ))}
        {series.length > drawnMax && <li class={ui.quiet}>and {series.length - drawnMax} more, which are not drawn</li>}
      </ul>
    </>
  );
}
