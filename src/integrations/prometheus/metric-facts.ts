import { cut, oneLine } from "../foreign-texts.ts";
import { recentMap } from "../recent-map.ts";

/** What a metric says of all its series. */
export interface MetricFacts {
  readonly units: string;
  readonly description: string;
}

/** What senders said of metrics lately; they say it again each minute. */
export interface KnownFacts {
  learn(tenantId: string, metric: string, facts: MetricFacts, nowMs: number): void;
  /** Of a metric, else of the family that its name belongs to. */
  find(tenantId: string, metric: string): MetricFacts | undefined;
  /** Another number whenever something has changed. */
  version(): number;
}

const textCharactersMax = 1024;
const charactersMax = 32 * 1024 * 1024;
/** Of two texts that targets say in turn, one stays for as long as it is said: else every minute would write both. */
const keptMs = 300_000;
const suffix = /_(?:bucket|sum|count|total|created|info)$/;

/** Facts made to fit. */
export function factsOf(units: string, description: string): MetricFacts {
  const short = (text: string) => cut(oneLine(text), textCharactersMax).toWellFormed();
  return { units: short(units), description: short(description) };
}

/** Bounded, and empty at first. */
export function knownFacts(): KnownFacts {
  const known = recentMap<MetricFacts & { saidMs: number }>(charactersMax, 2 * textCharactersMax);
  let changes = 0;
  return {
    learn(tenantId, metric, { units, description }, nowMs) {
      const key = `${tenantId} ${metric}`;
      const before = known.get(key);
      const same = before !== undefined && before.units === units && before.description === description;
      if (before !== undefined && !same && nowMs - before.saidMs < keptMs) return;
      known.set(key, { units, description, saidMs: nowMs });
      if (!same) changes += 1;
    },
    find(tenantId, metric) {
      const own = known.get(`${tenantId} ${metric}`);
      return own ?? known.get(`${tenantId} ${metric.replace(suffix, "")}`);
    },
    version: () => changes,
  };
}
