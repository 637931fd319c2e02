import { LRUCache } from "lru-cache";
import { type FactStore, keptMs } from "../../metrics/fact-store.ts";
import { type Instrument, type Notes, noNotes } from "../../metrics/notes.ts";
import { cut, lines, oneLine } from "../foreign-texts.ts";
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

/** What senders said of metrics lately, to any process; they say it again each minute. */
export interface KnownFacts {
  /** Returns whether it is to be stored: it is new, or was stored a while ago. */
  learn(tenantId: string, metric: string, facts: Readonly<Notes>, nowMs: number): boolean;
  /** Stores what was learned. May be repeated. */
  store(tenantId: string, learned: ReadonlyMap<string, Readonly<Notes>>, nowMs: number): Promise<void>;
  /** Reads what other processes have stored; undefined where that was done a moment ago. */
  refresh(tenantId: string, nowMs: number): Promise<void> | undefined;
  /** Finds the facts of a metric, else of the family that its name belongs to; none where neither is known. */
  find(tenantId: string, metric: string): Readonly<Notes>;
  /** Another number whenever something has changed of a tenant's metrics. */
  version(tenantId: string): number;
}

const textCharactersMax = 1024;
/** The bytes of a text that are looked at. */
export const factBytesMax = 4 * (textCharactersMax + 1);
const charactersMax = 32 * 1024 * 1024;
/** What is said again is stored again, which is how others know that it stands. */
const storedAgainMs = 900_000;
const refreshMs = 10_000;
/** Clocks of processes differ, and what was written may be committed later. */
const overlapMs = 120_000;
const suffix = /_(?:bucket|sum|count|total|created|info)$/;

/** A text that lies between two places, made to fit. */
export const factText = (bytes: Uint8Array, from: number, to: number): string =>
  cut(lines(beginningOf(bytes, from, to, textCharactersMax + 1)), textCharactersMax).toWellFormed();

/** Facts of such texts, and the number of a type. */
export function factsOf({ unit, help, type }: { unit: string; help: string; type: number }): Notes {
  return { units: oneLine(unit), description: help, instrument: types[type] ?? "" };
}

interface Known extends Notes {
  saidMs: number;
  storedMs: number;
}

const isSame = (one: Readonly<Notes>, other: Readonly<Notes>) =>
  one.units === other.units && one.description === other.description && one.instrument === other.instrument;

/** Bounded, and empty at first. */
export function knownFacts(stored: FactStore): KnownFacts {
  const known = new LRUCache<string, Known>({
    maxSize: charactersMax,
    sizeCalculation: (_, key) => key.length + 2 * textCharactersMax,
  });
  const changes = new Map<string, number>();
  const refreshed = new Map<string, { atMs: number; lastSaidMs: number; running: Promise<void> | undefined }>();

  function put(
    tenantId: string,
    metric: string,
    { units, description, instrument }: Readonly<Notes>,
    saidMs: number,
    storedMs: number,
  ) {
    const key = `${tenantId} ${metric}`;
    const before = known.get(key);
    const next = { units, description, instrument, saidMs, storedMs };
    known.set(key, next);
    if (before === undefined || !isSame(before, next)) changes.set(tenantId, (changes.get(tenantId) ?? 0) + 1);
  }

  /** What is stored wins: of two texts it is the one that all processes take. */
  async function read(tenantId: string, sinceMs: number): Promise<number> {
    let lastSaidMs = sinceMs;
    for await (const page of stored.read(tenantId, Math.max(0, sinceMs - overlapMs)))
      for (const { metric, saidMs, ...facts } of page) {
        put(tenantId, metric, facts, saidMs, saidMs);
        lastSaidMs = Math.max(lastSaidMs, saidMs);
      }
    return lastSaidMs;
  }

  return {
    learn(tenantId, metric, facts, nowMs) {
      const before = known.get(`${tenantId} ${metric}`);
      const same = before !== undefined && isSame(before, facts);
      if (before !== undefined && !same && nowMs - before.saidMs < keptMs) return false;
      const storedMs = same ? before.storedMs : 0;
      put(tenantId, metric, facts, nowMs, storedMs);
      return nowMs - storedMs >= storedAgainMs;
    },
    async store(tenantId, learned, nowMs) {
      await stored.store(tenantId, learned, nowMs);
      for (const metric of learned.keys()) {
        const facts = known.get(`${tenantId} ${metric}`);
        if (facts !== undefined) facts.storedMs = nowMs;
      }
    },
    refresh(tenantId, nowMs) {
      const last = refreshed.get(tenantId) ?? { atMs: Number.NEGATIVE_INFINITY, lastSaidMs: 0, running: undefined };
      if (last.running !== undefined) return last.running;
      if (nowMs - last.atMs < refreshMs) return undefined;
      refreshed.set(tenantId, last);
      last.running = read(tenantId, last.lastSaidMs)
        .then((lastSaidMs) => Object.assign(last, { atMs: nowMs, lastSaidMs }))
        .then(() => {})
        .finally(() => {
          last.running = undefined;
        });
      return last.running;
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
