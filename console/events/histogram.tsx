import { create } from "@bufbuild/protobuf";
import { TimeRangeSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { ActiveCriteria, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { parameterOf } from "../data/address.ts";
import { clientOf } from "../data/calls.ts";
import { timeText } from "../ui/time.tsx";
import { endsOf } from "../ui/time-range.tsx";
import eventsLook from "./events.module.css";
import { queryOf } from "./query.ts";
import { severities } from "./words.tsx";

const events = clientOf(EventQueryService);

const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000];
/** Lengths of bars that people count in. */
const lengths = [
  ...[1, 5, 15, 30].map((of) => of * second),
  ...[1, 2, 5, 10, 15, 30].map((of) => of * minute),
  ...[1, 2, 3, 6, 12].map((of) => of * hour),
  ...[1, 2, 7, 14, 30, 90, 365, 3650].map((of) => of * day),
];
const barsMax = 72;
/** Part of a bar's room that stays free. */
const gap = 0.2;
/** Of a range that is longer, days are named, not hours. */
const hoursMax = 2 * day;
const marksMax = 6;

/** Counts of occurrences by last-seen time and severity. */
interface Frequencies {
  readonly start: number;
  readonly end: number;
  /** The start of each bar, in ms since the epoch. */
  readonly starts: readonly number[];
  /** The counts of each bar, by the tone of a severity. */
  readonly counts: readonly { readonly tone: string; readonly word: string; readonly of: readonly number[] }[];
}

/** Counts what the list finds by the time at which it was last seen: in its time range, else in the last day. Reads signals. */
export async function readFrequencies(signal: AbortSignal): Promise<Frequencies> {
  const { start, end } = endsOf(parameterOf("range")) ?? { start: Date.now() - day, end: Date.now() };
  const length = lengths.find((each) => (end - start) / each <= barsMax) ?? end - start;
  // The end of the last bar: what comes meanwhile is counted, too.
  const last = Math.ceil((end + 1) / length) * length;
  const timeRange = create(TimeRangeSchema, { start: BigInt(start), end: BigInt(last) });
  const query = { ...queryOf(), timeRange, activeCriteria: ActiveCriteria.BY_TIMERANGE };
  const asked = { query, fields: [{ field: "severity" }], downsample: BigInt(length) };
  const { timestamps, results } = await events.countEventFrequency(asked, { signal });
  const of = new Map(results.severity?.values.map(({ value, counts }) => [Number(value?.kind.value), counts]));
  const counts = severities.flatMap(({ value, word, tone }) => {
    const counted = of.get(value);
    return counted === undefined ? [] : { tone, word, of: counted.map(Number) };
  });
  return { start, end, starts: timestamps.map(Number), counts };
}

/** Draws a bar for each part of the time, the worst severity on top. */
export function Histogram({ frequencies }: { frequencies: Frequencies }) {
  const { start, end, starts, counts } = frequencies;
  const totals = starts.map((_, at) => counts.reduce((sum, { of }) => sum + (of[at] ?? 0), 0));
  const highest = Math.max(1, ...totals);
  const all = totals.reduce((sum, each) => sum + each, 0);
  const said = `${all.toLocaleString("en")} last seen between ${timeText(start)} and ${timeText(end)}`;
  const heights = starts.map(() => 0);
  // From below: what is worse is drawn on what is less so.
  const layers = counts.toReversed().map(({ tone, of }) => {
    const rectangles = of.map((count, at) => {
      if (count === 0) return "";
      const from = heights[at] ?? 0;
      heights[at] = from + count;
      return `M${at} ${highest - from}v${-count}h${1 - gap}v${count}z`;
    });
    return <path key={tone} data-tone={tone} d={rectangles.join("")} />;
  });
  const step = Math.max(1, Math.ceil(starts.length / marksMax));
  const marks = starts.filter((_, at) => at % step === 0);
  return (
    <figure class={eventsLook.histogram}>
      <svg role="img" aria-label={said} viewBox={`0 0 ${starts.length} ${highest}`} preserveAspectRatio="none">
        {layers}
        {starts.map((each, at) => (
          <rect key={each} x={at} y={0} width={1} height={highest}>
            <title>{barText(each, counts, at)}</title>
          </rect>
        ))}
      </svg>
      <p aria-hidden="true">
        {marks.map((each) => (
          <span key={each} style={{ flexGrow: Math.min(step, starts.length - starts.indexOf(each)) }}>
            {end - start > hoursMax ? timeText(each).slice(5, 10) : timeText(each).slice(11, 16)}
          </span>
        ))}
      </p>
    </figure>
  );
}

function barText(from: number, counts: Frequencies["counts"], at: number): string {
  const told = counts.flatMap(({ word, of }) => (of[at] ? `${of[at].toLocaleString("en")} ${word.toLowerCase()}` : []));
  return `From ${timeText(from)}: ${told.length === 0 ? "none" : told.join(", ")}`;
}
