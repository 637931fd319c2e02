import { type Instrument, type Notes, noNotes } from "../../metrics/notes.ts";
import { cut, lines, oneLine } from "../foreign-texts.ts";
import { recentMap } from "../recent-map.ts";
import { beginningOf } from "./written-labels.ts";

/** The types of metrics by their numbers, which are the same in both versions. What counts does so from the beginning. */
const types: readonly Instrument[] = [
  "",
  "COUNTER CUMULATIVE",
  "GAUGE",
  "HISTOGRAM CUMULATIVE",
  "GAUGE_HISTOGRAM",
  "SUMMARY CUMULATIVE",
  "INFO",
  "STATE_SET",
];

/** What senders said of metrics lately; they say it again each minute. */
export interface KnownFacts {
  learn(tenantId: string, metric: string, facts: Readonly<Notes>, nowMs: number): void;
  /** Finds the facts of a metric, else of the family that its name belongs to; none where neither is known. */
  find(tenantId: string, metric: string): Readonly<Notes>;
  /** Another number whenever something has changed of a tenant's metrics. */
  version(tenantId: string): number;
}

const textCharactersMax = 1024;
/** The bytes of a text that are looked at. */
export const factBytesMax = 4 * (textCharactersMax + 1);
const charactersMax = 32 * 1024 * 1024;
/** Of two texts that targets say in turn, one stays for as long as it is said: else every minute would write both. */
const keptMs = 300_000;
const suffix = /_(?:bucket|sum|count|total|created|info)$/;

/** A text that lies between two places, made to fit. */
export const factText = (bytes: Uint8Array, from: number, to: number): string =>
  cut(lines(beginningOf(bytes, from, to, textCharactersMax + 1)), textCharactersMax).toWellFormed();

/** Facts of such texts, and the number of a type. */
export function factsOf({ unit, help, type }: { unit: string; help: string; type: number }): Notes {
  return { units: oneLine(unit), description: help, instrument: types[type] ?? "" };
}

/** Bounded, and empty at first. */
export function knownFacts(): KnownFacts {
  const known = recentMap<Notes & { saidMs: number }>(charactersMax, 2 * textCharactersMax);
  const changes = new Map<string, number>();
  return {
    learn(tenantId, metric, { units, description, instrument }, nowMs) {
      const key = `${tenantId} ${metric}`;
      const before = known.get(key);
      const same = before?.units === units && before.description === description && before.instrument === instrument;
      if (before !== undefined && !same && nowMs - before.saidMs < keptMs) return;
      known.set(key, { units, description, instrument, saidMs: nowMs });
      if (!same) changes.set(tenantId, (changes.get(tenantId) ?? 0) + 1);
    },
    find(tenantId, metric) {
      const own = known.get(`${tenantId} ${metric}`);
      if (own !== undefined) return own;
      const family = known.get(`${tenantId} ${metric.replace(suffix, "")}`);
      // When a counter began is no count.
      if (family === undefined) return noNotes;
      return metric.endsWith("_created") ? { ...family, instrument: "" } : family;
    },
    version: (tenantId) => changes.get(tenantId) ?? 0,
  };
}
