import { type Signal, useSignal } from "@preact/signals";
import { Fragment } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { linkTo, listOf, listText, setParameters } from "../data/address.ts";
import { LastValue } from "../ui/last-value.tsx";
import { narrow } from "../ui/narrow.ts";
import { lineStyle, Plot } from "../ui/plot.tsx";
import { countText, quantityText, unitWords } from "../ui/quantity.ts";
import { Sign } from "../ui/sign.tsx";
import { Time, timeText } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import type { Happened } from "./happened.ts";
import metricsLook from "./metrics.module.css";
import { type Line, type PlotGroup, plotGroups } from "./plot-groups.ts";
import { parameters, type Read } from "./reading.ts";
import { endsNow, refreshHere } from "./refresh.tsx";
import { ValueTable } from "./value-table.tsx";

/** How many series a plot draws until more are asked for: as many as there are colours. */
const drawnMax = 10;
const plotsMax = 30;
const toldMax = 6;

interface PlotsProps {
  readonly read: Read;
  readonly happened: Happened;
  readonly tables: boolean;
}

/** Small plots side by side, each of one metric; a single one is large. */
export function Plots({ read, happened, tables }: PlotsProps) {
  const { start, end, series } = read;
  const by = parameters.by.value;
  const groups = useMemo(() => plotGroups(series, by), [series, by]);
  const shown = useSignal(plotsMax);
  return (
    <div class={ui.scroll}>
      <p class={ui.hint}>
        {seriesText(read)} in {groups.length} {groups.length === 1 ? "plot" : "plots"}. {asOf(end)}Drag across a plot to
        zoom; the browser's Back button undoes it.
      </p>
      <WhatHappened {...happened} />
      <div class={groups.length === 1 ? metricsLook.one : metricsLook.many}>
        {groups.slice(0, shown.value).map((group) => (
          <PlotCard
            key={group.key}
            group={group}
            start={start}
            end={end}
            happened={happened}
            tables={tables}
            height={groups.length === 1 ? 300 : 160}
          />
        ))}
      </div>
      {groups.length > shown.value && (
        <p>
          <button
            type="button"
            onClick={() => {
              shown.value += plotsMax;
            }}
          >
            Show more of the other {groups.length - shown.value} plots
          </button>
        </p>
      )}
    </div>
  );
}

/** Returns the number of series that are shown, of how many, and which these are. */
function seriesText({ series, found, more }: Read): string {
  if (found === series.length && !more) return `${countText(found)} series`;
  const all = `${countText(found)}${more ? " or more" : ""} series`;
  return found === series.length
    ? all
    : `${countText(series.length)} of ${all}, those with the greatest values of each metric,`;
}

/** When it was read, and how often that is done by itself. Of a range that has ended nothing: no later reading finds more. */
function asOf(end: number): string {
  if (!endsNow()) return "";
  const [, every] = refreshHere() ?? [];
  return `Read at ${timeText(end).slice(11)}${every === undefined ? "" : `, again every ${every}`}. `;
}

/** What the marks and bands of the plots are. */
function WhatHappened({ marks, bands, more }: Happened) {
  if (marks.length + bands.length === 0) return null;
  const entity = parameters.entity.value;
  const where = JSON.stringify({ filter: { field: "entity", operation: "OP_EQUALS", value: entity } });
  // On a phone the plots come first.
  const told = narrow.value ? 2 : toldMax;
  return (
    <ul class={metricsLook.happened} aria-label="Marked on the plots">
      {bands.slice(0, toldMax).map(({ id, text, start, end, over }) => (
        <li key={`${id} ${start}`}>
          <span class={metricsLook.band} aria-hidden="true" /> <a href={linkTo(["windows", id])}>{text}</a>{" "}
          <span class={ui.quiet}>
            {over ? "until" : "since"} <Time at={over ? end : start} short />
          </span>
        </li>
      ))}
      {bands.length > toldMax && <li>and {bands.length - toldMax} more windows</li>}
      {marks.slice(0, told).map(({ id, at, text, tone }) => (
        <li key={id}>
          <Sign tone={tone} /> <a href={linkTo(["occurrences", id])}>{text}</a>{" "}
          <span class={ui.quiet}>
            <Time at={at} short />
          </span>
        </li>
      ))}
      {(marks.length > told || more) && (
        <li>
          <a href={linkTo(["events"], { status: "any", where, range: parameters.range.value })}>
            {more ? "and more" : `and ${marks.length - told} more`}
          </a>
        </li>
      )}
    </ul>
  );
}

interface PlotCardProps {
  readonly group: PlotGroup;
  readonly start: number;
  readonly end: number;
  readonly height: number;
  readonly happened: Happened;
  readonly tables: boolean;
}

function PlotCard({ group, start, end, height, happened, tables }: PlotCardProps) {
  const { title, shared, units, lines } = group;
  const count = useSignal(drawnMax);
  const lifted = useSignal<string | undefined>(undefined);
  const only = listOf("only");
  const placeOf = usePlaces();
  const [listed, drawn] = useMemo(() => {
    const told = lines
      .filter(({ key }, at) => at < count.value || only.includes(key))
      .map((each) => ({ ...each, name: lines.length === 1 ? title : each.short }));
    const placed = placeOf(told);
    const kept = placed.filter(({ key }) => only.includes(key));
    return [placed, kept.length > 0 ? kept : placed];
  }, [lines, count.value, listText(only)]);
  const [single] = lines.length === 1 ? lines : [];
  const name = shared === "" ? title : `${title}, ${shared}`;
  const hidden = lines.length - listed.length;
  return (
    <section class={`${ui.card} ${metricsLook.plot}`} aria-label={name}>
      <div class={metricsLook.plotHead} title={single?.description ?? lines[0]?.description}>
        <h2>
          {breakable(title)}{" "}
          <span class={metricsLook.about}>{[shared, unitWords(units)].filter((text) => text !== "").join(" · ")}</span>
        </h2>
        {single && (
          <strong class={metricsLook.last}>
            <LastValue series={single} end={end} />
          </strong>
        )}
      </div>
      <div class={metricsLook.plotBody}>
        <Plot
          name={name}
          series={drawn}
          start={start}
          end={end}
          height={height}
          marks={happened.marks}
          bands={happened.bands}
          lifted={lifted}
          zoom={(from, to) => setParameters({ range: `${from}-${to}` })}
        />
        {lines.length > 1 && <Legend name={name} lines={listed} end={end} only={only} lifted={lifted} />}
        {hidden > 0 && (
          <button
            type="button"
            class={ui.plain}
            onClick={() => {
              count.value += drawnMax;
            }}
          >
            and {hidden} more
          </button>
        )}
        {tables && <ValueTable name={name} series={drawn} />}
      </div>
    </section>
  );
}

/** Lets a metric's name break after dots and underscores only. */
const breakable = (text: string) =>
  text.split(/(?<=[._])/).map((part, at) => (
    <Fragment key={String(at)}>
      {at > 0 && <wbr />}
      {part}
    </Fragment>
  ));

/** Gives lines the first places that no other line of the plot has; a line keeps its place while it is drawn. */
function usePlaces() {
  const places = useRef(new Map<string, number>());
  return (lines: readonly Line[]): Line[] => {
    const before = places.current;
    const used = new Map(lines.flatMap(({ key }) => (before.has(key) ? [[key, before.get(key) ?? 0] as const] : [])));
    const taken = new Set(used.values());
    let next = 0;
    for (const { key } of lines) {
      if (used.has(key)) continue;
      while (taken.has(next)) next += 1;
      taken.add(next);
      used.set(key, next);
    }
    places.current = used;
    return lines.map((each) => ({ ...each, place: used.get(each.key) ?? 0 }));
  };
}

interface LegendProps {
  readonly name: string;
  readonly lines: readonly Line[];
  readonly end: number;
  /** The keys of those that are drawn alone. */
  readonly only: readonly string[];
  readonly lifted: Signal<string | undefined>;
}

/** The series of a plot with what they come to. A line lifts its series while it is pointed at, and keeps it alone when it is pressed. */
function Legend({ name, lines, end, only, lifted }: LegendProps) {
  return (
    <table class={metricsLook.legend} aria-label={`Series of ${name}`}>
      <thead>
        <tr>
          {["Series", "Last", "Least", "Most", "Mean"].map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {lines.map((series) => {
          const { key, name: line, place = 0, units, values } = series;
          const kept = only.includes(key);
          const drop = () => {
            if (lifted.peek() === key) lifted.value = undefined;
          };
          return (
            <tr
              key={key}
              data-lifted={lifted.value === key ? "" : undefined}
              onMouseEnter={() => {
                lifted.value = key;
              }}
              onMouseLeave={drop}
            >
              <th scope="row">
                <button
                  type="button"
                  aria-pressed={kept}
                  title={kept ? "Draw the others, too" : "Draw this one alone"}
                  onFocus={() => {
                    lifted.value = key;
                  }}
                  onBlur={drop}
                  onClick={() =>
                    setParameters({ only: listText(kept ? only.filter((each) => each !== key) : [...only, key]) })
                  }
                >
                  <span class={ui.legendLine} style={lineStyle(place)} aria-hidden="true" /> <span>{line}</span>
                </button>
              </th>
              <td>
                <LastValue series={series} end={end} />
              </td>
              {[
                outermost(values, Math.min),
                outermost(values, Math.max),
                values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length,
              ].map((value, column) => (
                <td key={String(column)}>{quantityText(value, units)}</td>
              ))}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

const outermost = (values: readonly number[], of: (a: number, b: number) => number) =>
  values.length === 0 ? undefined : values.reduce((a, b) => of(a, b));
