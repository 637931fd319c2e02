import { effect, type Signal, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import Plotter from "uplot";
import { theme } from "../data/preferences.ts";
import type { PlotSeries } from "../data/series.ts";
import plotLook from "./plot.module.css";
import { quantityText } from "./quantity.ts";
import { Sign } from "./sign.tsx";
import { timeText, zoneName } from "./time.tsx";
import ui from "./ui.module.css";

interface PlotProps {
  readonly name: string;
  readonly series: readonly PlotSeries[];
  readonly start: number;
  readonly end: number;
  readonly height: number;
  /** Called with the range that was drawn over by dragging. Absent: the plot does not zoom. */
  zoom?: (start: number, end: number) => void;
  /** Moments that are marked by a line, in the colour of their tone. */
  readonly marks?: readonly PlotMark[];
  /** Lengths of time that are tinted. */
  readonly bands?: readonly PlotBand[];
  /** Values that are marked by a line across, within sight and in no colour of a series. */
  readonly levels?: readonly number[];
  /** The key of the series that stands out; the others are dimmed. The plot sets it where the pointer is near a line. */
  readonly lifted?: Signal<string | undefined>;
}

export interface PlotMark {
  readonly at: number;
  readonly text: string;
  readonly tone: string;
}

export interface PlotBand {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const dashes: readonly (number[] | undefined)[] = [undefined, [8, 4], [2, 3], [10, 3, 2, 3]];
const colours = 10;
/** Distance, in pixels, within which the pointer is at a point. */
const nearPx = 8;
/** Most values that are told at the cursor, the nearest to it first. */
const toldMax = 10;

/** Distance of the values from the cursor. */
const tipGap = 14;

/** Moment of the cursor, one of those that have values, and its place within the plot. */
interface Cursor {
  readonly time: number;
  readonly left: number;
  readonly width: number;
  /** The value at its height. */
  readonly value: number;
  readonly ms: number;
  /** Length of a pixel in time. */
  readonly pxMs: number;
}

/** Returns the colour of the n-th place; once all colours are used, `dashOf` tells places apart. The legend draws the same. */
const lineColour = (at: number) => `var(--series-${at % colours})`;
const placeOf = (series: readonly PlotSeries[], at: number) => series[at]?.place ?? at;
const legendDashes = ["solid", "dashed", "dotted", "double"];
export const lineStyle = (at: number) => ({
  color: lineColour(at),
  borderTopStyle: legendDashes[Math.floor(at / colours) % legendDashes.length] ?? "solid",
});
/** Style of a level in the legend. */
export const levelStyle = { color: "var(--ink)", borderTopStyle: "dashed" };
const dashOf = (at: number) => dashes[Math.floor(at / colours) % dashes.length];

const none: readonly never[] = [];

/** Series over time on a canvas. Arrow keys move the cursor, whose values are read out; a table beside it has all values. */
export function Plot({
  name,
  series,
  start,
  end,
  height,
  zoom,
  marks = none,
  bands = none,
  levels = none,
  lifted,
}: PlotProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plotter = useRef<Plotter>(undefined);
  const cursor = useSignal<Cursor | undefined>(undefined);
  const times = timesOf(series);
  const lift = (key: string | undefined) => {
    const at = series.findIndex((each) => each.key === key);
    plotter.current?.setSeries(at < 0 ? null : at + 1, { focus: true });
  };

  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const values = series.map((each) => {
      const at = new Map(each.timestamps.map((time, index) => [time, each.values[index] ?? null]));
      return times.map((time) => at.get(time) ?? null);
    });
    // Drawn again when colours or the zone change.
    const end_ = effect(() => {
      theme.value;
      zoneName.value;
      const looked = cursor.peek();
      plotter.current?.destroy();
      plotter.current = new Plotter(
        options({
          element,
          series,
          height,
          start,
          end,
          ...(zoom && { zoom }),
          marks,
          bands,
          levels,
          ...(lifted && { lifted }),
          looked,
          move: (now) => (cursor.value = now),
        }),
        [times.map((time) => time / 1000), ...values] as Plotter.AlignedData,
        element,
      );
      lift(lifted?.peek());
    });
    const sizes = new ResizeObserver(() => plotter.current?.setSize({ width: element.clientWidth, height }));
    sizes.observe(element);
    return () => {
      end_();
      sizes.disconnect();
      plotter.current?.destroy();
      plotter.current = undefined;
    };
  }, [series, start, end, height, marks, bands, levels]);
  useSignalEffect(() => lift(lifted?.value));

  const press = (event: KeyboardEvent) => {
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      PageUp: -10,
      PageDown: 10,
      Home: -Infinity,
      End: Infinity,
    };
    const step = steps[event.key];
    if (step === undefined || times.length === 0) return;
    event.preventDefault();
    const from = cursor.value ? times.indexOf(cursor.value.time) : step > 0 ? -1 : times.length;
    const at = Math.max(0, Math.min(times.length - 1, from + step));
    const left = plotter.current?.valToPos((times[at] ?? 0) / 1000, "x") ?? 0;
    plotter.current?.setCursor({ left, top: height / 3 });
    if (plotter.current) cursor.value = cursorOf(plotter.current, at);
  };

  const now = cursor.value;
  return (
    <div class={plotLook.plot}>
      <div
        class={plotLook.plotFrame}
        role="application"
        aria-label={`Plot of ${name}: arrow keys move the cursor`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: its cursor moves by keyboard
        tabIndex={0}
        onKeyDown={press}
        ref={frame}
        style={{ minHeight: `${height}px` }}
      />
      <div class={plotLook.plotValues} aria-live="polite">
        {now !== undefined && (
          <div
            class={plotLook.tip}
            style={
              now.left > now.width / 2
                ? { right: `${now.width - now.left + tipGap}px` }
                : { left: `${now.left + tipGap}px` }
            }
          >
            <span class={ui.quiet}>{timeText(now.time)}</span>
            {happeningAt(now, marks, bands).map(({ text, tone }, at) => (
              <span key={String(at)} class={plotLook.tipName}>
                {tone && <Sign tone={tone} />} {text}
              </span>
            ))}
            {nearest(series, now.time, now.value).map(({ each, index, value }) => (
              <span key={each.key} class={plotLook.tipValue}>
                <span class={ui.legendLine} style={lineStyle(placeOf(series, index))} aria-hidden="true" />
                <span class={plotLook.tipName}>{each.name}:</span> <strong>{quantityText(value, each.units)}</strong>
              </span>
            ))}
          </div>
        )}
      </div>
    </div>
  );
}

/** The marks beside the cursor, and the bands under it. */
function happeningAt({ ms, pxMs }: Cursor, marks: readonly PlotMark[], bands: readonly PlotBand[]) {
  return [
    ...marks.filter(({ at }) => Math.abs(at - ms) <= nearPx * pxMs).slice(0, toldMax),
    ...bands.filter(({ start, end }) => start <= ms && ms < end).map(({ text }) => ({ text, tone: undefined })),
  ];
}

/** Series with their values at a moment, those nearest to another value first; those without one come last. */
function nearest(series: readonly PlotSeries[], time: number, wanted: number) {
  const away = (value: number | null | undefined) => (value == null ? Number.MAX_VALUE : Math.abs(value - wanted));
  return series
    .map((each, index) => ({ each, index, value: each.values[each.timestamps.indexOf(time)] }))
    .sort((a, b) => away(a.value) - away(b.value))
    .slice(0, toldMax);
}

/** The moments of all series, each once, in order. */
export function timesOf(series: readonly PlotSeries[]): number[] {
  return [...new Set(series.flatMap(({ timestamps }) => timestamps))].sort((a, b) => a - b);
}

/** A moment on the axis of a range: what of it changes from tick to tick. */
function tickText(ms: number, lengthMs: number): string {
  const text = timeText(ms);
  if (lengthMs <= 600_000) return text.slice(11);
  return lengthMs <= 129_600_000 ? text.slice(11, 16) : text.slice(5, lengthMs <= 864_000_000 ? 16 : 10);
}

/** A number in little room, with the prefixes of SI. */
function shortText(value: number): string {
  const step = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ] as const;
  const [size, sign] = step.find(([each]) => Math.abs(value) >= each) ?? [1, ""];
  return `${shown.format(value / (sign === "k" ? 1000 : size))}${sign}`;
}

const shown = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

/** A number with its unit. */
export function numberText(value: number | null | undefined, units = ""): string {
  if (value === undefined || value === null) return "–";
  return `${shown.format(value)}${units === "" || units === "1" ? "" : ` ${units}`}`;
}

/** Returns the place of a plot's cursor at the n-th moment. */
function cursorOf({ cursor: { left = 0, top = 0 }, data, over, width, posToVal }: Plotter, at: number): Cursor {
  const time = Math.round((data[0][at] ?? 0) * 1000);
  const begin = over.offsetLeft;
  const [ms, nextMs] = [posToVal(left, "x") * 1000, posToVal(left + 1, "x") * 1000];
  return { time, left: begin + left, width, value: posToVal(top, "y"), ms, pxMs: nextMs - ms };
}

/** Greatest width of a character on an axis. */
const tickCharPx = 7;

/** The range of values that holds the levels, too. Without values both ends are null. */
function rangeWith(levels: readonly number[], min: number | null, max: number | null): [number, number] {
  const all = [...levels, ...(min === null || max === null ? [] : [min, max])];
  return Plotter.rangeNum(Math.min(...all), Math.max(...all), 0.1, true) as [number, number];
}

/** The steps of an axis of bytes. */
const powersOfTwo = Array.from({ length: 60 }, (_, at) => 2 ** at);

interface Drawn extends Omit<PlotProps, "name"> {
  element: HTMLElement;
  readonly marks: readonly PlotMark[];
  readonly bands: readonly PlotBand[];
  readonly levels: readonly number[];
  /** Where the cursor was in the plot that this one replaces. */
  readonly looked: Cursor | undefined;
  move(now: Cursor | undefined): void;
}

function options(drawn: Drawn): Plotter.Options {
  const { element, series, height, start, end, zoom, marks, bands, levels, lifted, looked, move } = drawn;
  const colourOf = (colour: string, tone = "") => {
    const probe = document.createElement("i");
    probe.dataset.tone = tone;
    probe.style.color = colour;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  const [{ units } = { units: "" }] = series;
  const ofBytes = /^By(?:\/s)?$/.test(units);
  const [ink, line] = [colourOf("var(--quiet)"), colourOf("var(--line)")];
  const bandColour = colourOf("color-mix(in srgb, var(--info-fill) 18%, transparent)");
  const markColours = marks.map(({ tone }) => colourOf("var(--tone-fill)", tone));
  const levelColour = colourOf(levelStyle.color);
  // The last text of the time axis may stand at the plot's very end, half of it beyond.
  const right = Math.max(12, Math.ceil((tickText(end, end - start).length * tickCharPx) / 2));
  const axis = {
    stroke: ink,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1 },
    font: "11px system-ui",
  };
  return {
    width: Math.max(120, element.clientWidth),
    height,
    legend: { show: false },
    cursor: {
      drag: { x: zoom !== undefined, y: false, setScale: false },
      points: { size: 6 },
      focus: { prox: nearPx },
    },
    focus: { alpha: 0.2 },
    tzDate: (seconds) => Plotter.tzDate(new Date(seconds * 1000), zoneName.value),
    scales: {
      x: { time: true, range: () => [start / 1000, end / 1000] },
      ...(levels.length > 0 && { y: { range: (_, min, max) => rangeWith(levels, min, max) } }),
    },
    axes: [
      { ...axis, space: 70, size: 30, values: (_, ticks) => ticks.map((tick) => tickText(tick * 1000, end - start)) },
      ofBytes
        ? {
            ...axis,
            size: 66,
            incrs: powersOfTwo,
            values: (_, ticks) => ticks.map((tick) => quantityText(tick, units)),
          }
        : { ...axis, size: 54, values: (_, ticks) => ticks.map(shortText) },
    ],
    padding: [8, right, 0, 0],
    series: [
      {},
      ...series.map((_, at) => ({
        stroke: colourOf(lineColour(placeOf(series, at))),
        width: 1.5,
        ...(series.length === 1 && {
          fill: colourOf(`color-mix(in srgb, ${lineColour(placeOf(series, at))} 8%, transparent)`),
        }),
        ...(dashOf(placeOf(series, at)) && { dash: dashOf(placeOf(series, at)) as number[] }),
        points: { show: series[at]?.timestamps.length === 1 },
        spanGaps: false,
      })),
    ],
    hooks: {
      ready: [
        ({ valToPos, setCursor }) => {
          if (looked) setCursor({ left: valToPos(looked.time / 1000, "x"), top: valToPos(looked.value, "y") });
        },
      ],
      setCursor: [
        (self) => {
          const { idx, left = -1 } = self.cursor;
          move(typeof idx !== "number" || left < 0 ? undefined : cursorOf(self, idx));
        },
      ],
      setSelect: [
        (self) => {
          const { left, width } = self.select;
          if (width > 4)
            zoom?.(Math.round(self.posToVal(left, "x") * 1000), Math.round(self.posToVal(left + width, "x") * 1000));
        },
      ],
      setSeries: [
        (self, at) => {
          // Where the pointer is: a legend line is lifted by whoever shows it.
          if (lifted && (self.cursor.left ?? -1) >= 0) lifted.value = at === null ? undefined : series[at - 1]?.key;
        },
      ],
      drawClear: [
        ({ ctx, bbox, valToPos }) => {
          ctx.save();
          ctx.fillStyle = bandColour;
          for (const band of bands) {
            const [from, to] = [Math.max(start, band.start), Math.min(end, band.end)].map((ms) =>
              valToPos(ms / 1000, "x", true),
            );
            if (from !== undefined && to !== undefined && from < to)
              ctx.fillRect(from, bbox.top, to - from, bbox.height);
          }
          ctx.restore();
        },
      ],
      draw: [
        ({ ctx, bbox, valToPos }) => {
          ctx.save();
          ctx.setLineDash([4, 3]);
          ctx.strokeStyle = levelColour;
          for (const level of levels) {
            const y = valToPos(level, "y", true);
            ctx.beginPath();
            ctx.moveTo(bbox.left, y);
            ctx.lineTo(bbox.left + bbox.width, y);
            ctx.stroke();
          }
          for (const [n, { at }] of marks.entries()) {
            const x = valToPos(at / 1000, "x", true);
            ctx.strokeStyle = markColours[n] ?? ink;
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
          }
          ctx.restore();
        },
      ],
    },
  };
}
