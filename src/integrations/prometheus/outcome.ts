import { shownSeries } from "./series-of-labels.ts";

/** What a request's unit is counted as. */
export type Unit = "samples" | "histograms";

/** What becomes of the samples and histograms of a request. Its series are known by where their lengths stand. */
export interface Outcome {
  /** The next point is one of this series; `unit`: the first one of a sample or histogram. */
  place(at: number, unit: Unit | undefined): void;
  /** Nothing is stored of it, and it counts as written. */
  skip(unit: Unit): void;
  /** @param count how many of its samples or histograms */
  refuse(at: number, unit: Unit, rule: string, count?: number): void;
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

/** Nothing yet. @param shownAt the labels of a series, names and values in turn */
export function outcome(shownAt: (at: number) => Iterable<string>): Outcome {
  const places: number[] = [];
  const units: (Unit | undefined)[] = [];
  const all = { samples: 0, histograms: 0 };
  const refused = { samples: 0, histograms: 0 };
  const broken = new Set<number>();
  /** The rule that each of the first of them breaks first. */
  const rules = new Map<number, string>();
  let skipped = 0;

  function refuse(at: number, rule: string) {
    if (broken.has(at)) return;
    broken.add(at);
    if (rules.size < listedMax) rules.set(at, rule);
  }

  return {
    place(at, unit) {
      places.push(at);
      units.push(unit);
      if (unit !== undefined) all[unit] += 1;
    },
    skip(unit) {
      all[unit] += 1;
      skipped += 1;
    },
    refuse(at, unit, rule, count = 1) {
      all[unit] += count;
      refused[unit] += count;
      refuse(at, rule);
    },
    notStored(reasons) {
      for (const [place, reason] of reasons) {
        const unit = units[place];
        if (unit !== undefined) refused[unit] += 1;
        refuse(places[place] as number, reason);
      }
    },
    written: (unit) => all[unit] - refused[unit],
    skipped: () => skipped,
    refused: () => refused.samples + refused.histograms,
    text() {
      if (broken.size === 0) return undefined;
      const listed = [...rules].map(([at, rule]) => `${shownSeries(readable(shownAt(at)))}: ${rule}`);
      const more = broken.size - rules.size;
      return [...listed, ...(more > 0 ? [`and ${more} more series`] : [])].join("; ");
    },
  };
}

/** The texts before what cannot be read: beyond the bound that a series exceeds it was not looked at. */
function* readable(texts: Iterable<string>): Generator<string> {
  try {
    yield* texts;
  } catch {
    // The series is named by what there is.
  }
}
