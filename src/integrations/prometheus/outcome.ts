import { shownSeries } from "./series-of-labels.ts";
import type { WrittenSeries } from "./write-request.ts";

/** What a request's unit is counted as. */
export type Unit = "samples" | "histograms";

/** A series, or how to read it again: most are never asked for. */
export type Named = WrittenSeries | { readonly from: number; readonly to: number };

/** What becomes of the samples and histograms of a request. */
export interface Outcome {
  /** The next point is one of this series; `unit`: the first one of a sample or histogram. */
  place(series: Named, unit: Unit | undefined): void;
  /** Nothing is stored of it, and it counts as written. */
  skip(unit: Unit): void;
  refuse(series: Named, unit: Unit, rule: string): void;
  refuseSeries(series: WrittenSeries, rule: string): void;
  /** The points at these places were not stored. */
  notStored(refused: ReadonlyMap<number, string>): void;
  /** How many were written, skipped ones too. */
  written(unit: Unit): number;
  skipped(): number;
  refused(): number;
  /** What is wrong, at most ten series with the rule; undefined: nothing. */
  text(): string | undefined;
}

const listedMax = 10;

/** Nothing yet. @param read reads a series again */
export function outcome(read: (from: number, to: number) => WrittenSeries): Outcome {
  const places: Named[] = [];
  const units: (Unit | undefined)[] = [];
  const all = { samples: 0, histograms: 0 };
  const refused = { samples: 0, histograms: 0 };
  /** The rule that a series breaks first. */
  const broken = new Map<Named, string>();
  let skipped = 0;

  function refuse(series: Named, unit: Unit | undefined, rule: string) {
    if (unit !== undefined) refused[unit] += 1;
    if (!broken.has(series)) broken.set(series, rule);
  }

  return {
    place(series, unit) {
      places.push(series);
      units.push(unit);
      if (unit !== undefined) all[unit] += 1;
    },
    skip(unit) {
      all[unit] += 1;
      skipped += 1;
    },
    refuse(series, unit, rule) {
      all[unit] += 1;
      refuse(series, unit, rule);
    },
    refuseSeries(series, rule) {
      refuse(series, undefined, rule);
      for (const [unit, count] of [
        ["samples", series.times.length],
        ["histograms", series.histograms.length],
      ] as const) {
        all[unit] += count;
        refused[unit] += count;
      }
    },
    notStored(reasons) {
      for (const [place, reason] of reasons) {
        refuse(places[place] as Named, units[place], reason);
      }
    },
    written: (unit) => all[unit] - refused[unit],
    skipped: () => skipped,
    refused: () => refused.samples + refused.histograms,
    text() {
      if (broken.size === 0) return undefined;
      const first = [...broken].slice(0, listedMax);
      const labelsOf = (each: Named) => ("labels" in each ? each : read(each.from, each.to)).labels();
      const listed = first.map(([series, rule]) => `${shownSeries(labelsOf(series))}: ${rule}`);
      const more = broken.size - first.length;
      return [...listed, ...(more > 0 ? [`and ${more} more series`] : [])].join("; ");
    },
  };
}
