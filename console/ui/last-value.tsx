import type { PlotSeries } from "../data/series.ts";
import { quantityText } from "./quantity.ts";
import { Time } from "./time.tsx";
import ui from "./ui.module.css";

/** A value is not called old before this, however often its series is sent. */
const freshMs = 300_000;

/** Returns the moment of the last value if another one was due before `end`, by the least time between two of them. */
function staleSince({ timestamps }: PlotSeries, end: number): number | undefined {
  const last = timestamps.at(-1);
  if (last === undefined) return undefined;
  const gaps = timestamps.slice(1).map((time, at) => time - (timestamps[at] ?? time));
  const leastGap = gaps.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const dueMs = Number.isFinite(leastGap) ? 2 * leastGap : 0;
  return Math.min(end, Date.now()) - last > Math.max(freshMs, dueMs) ? last : undefined;
}

/** Shows the last value of a series, and how old it is where none has come since. */
export function LastValue({ series, end }: { series: PlotSeries; end: number }) {
  const since = staleSince(series, end);
  return (
    <>
      {quantityText(series.values.at(-1), series.units)}
      {since !== undefined && (
        <span class={ui.stale}>
          {" "}
          <Time at={since} short />
        </span>
      )}
    </>
  );
}
