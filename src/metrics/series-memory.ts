import type { SeenEntity } from "./forms.ts";
import type { StoredSeries } from "./series.ts";

/** A series whose number is known without asking. */
export interface KnownSeries extends StoredSeries {
  /** When the statement was sent that answered it, ms. */
  confirmedMs: number;
  /** How many dimensions its entity has. */
  dimensions: number;
  entity: SeenEntity;
}

/** The series that this process has seen lately, of all tenants. */
export interface SeriesMemory {
  /** The series of this key, when it was confirmed not too long ago. */
  find(tenantId: string, key: string, nowMs: number): KnownSeries | undefined;
  /** How many there are. */
  size(): number;
  /** After the commit of what confirmed it. */
  remember(tenantId: string, key: string, series: KnownSeries): void;
}

/** How long a number is trusted: a series that is marked as unused is removed an hour later, unless it is looked up by then. */
const trustMs = 600_000;

/**
 * Bounded: when it has taken half of `seriesMax` it begins anew, and what is found in the half before moves over, so that
 * what is used least lately is forgotten.
 */
export function seriesMemory(seriesMax = 200_000): SeriesMemory {
  let young = new Map<string, KnownSeries>();
  let old = new Map<string, KnownSeries>();

  function keep(key: string, series: KnownSeries) {
    young.set(key, series);
    if (young.size * 2 < seriesMax) return;
    old = young;
    young = new Map();
  }

  return {
    find(tenantId, key, nowMs) {
      const full = tenantId + key;
      let known = young.get(full);
      if (known === undefined) {
        known = old.get(full);
        if (known === undefined) return undefined;
        old.delete(full);
        keep(full, known);
      }
      return nowMs - known.confirmedMs < trustMs ? known : undefined;
    },
    size: () => young.size + old.size,
    remember: (tenantId, key, series) => keep(tenantId + key, series),
  };
}

/** What tells a series of a tenant from all others: the metric and the dimensions in one order. NUL occurs in none of them. */
export function seriesKey(metric: string, dimensions: Record<string, string>): string {
  const keys = Object.keys(dimensions);
  if (keys.length > 1) keys.sort();
  let key = metric;
  for (const name of keys) key += `\0${name}\0${dimensions[name]}`;
  return key;
}
