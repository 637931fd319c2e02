import { hash } from "node:crypto";
import type { SeenEntity } from "./encoded-series-cache.ts";
import { type Labels, labelsKey } from "./labels.ts";
import type { StoredSeries } from "./series.ts";

/** A series whose number is known without asking. */
export interface KnownSeries extends StoredSeries {
  /** When the statement was sent that answered it, ms. */
  confirmedMs: number;
  entity: SeenEntity;
}

/** Finds the series of a metric, dimensions and labels, when it was confirmed not too long ago. */
export type SeriesFinder = (metric: string, dimensions: Dimensions, labels: Labels) => KnownSeries | undefined;

/** The series that this process has seen lately, of all tenants. */
export interface SeriesMemory {
  /** For one request: points of one entity that follow each other share its look-up. */
  finder(tenantId: string, nowMs: number): SeriesFinder;
  /** How many there are. */
  size(): number;
  /** After the commit of what confirmed it. @param entityKey `dimensionsKey` of its entity, which has this many dimensions */
  remember(tenantId: string, entityKey: string, dimensions: number, series: KnownSeries): void;
}

type Dimensions = Readonly<Record<string, string>>;

/** What is known of the series of one entity. */
interface KnownEntity {
  dimensions: number;
  /** By `seriesKey`. */
  byMetric: Map<string, KnownSeries>;
  /** What its series count as. */
  weight: number;
}

/** Characters of a key that is kept as it is. */
const keyCharactersMax = 1024;
/** A series of this many characters, or of fewer, counts as one; one of more counts as several. */
const weightCharacters = 512;

/** Returns the key of a series within its entity: the metric, followed by the `labelsKey`; for long ones a digest. */
function seriesKey(text: string): string {
  // No metric's name begins so.
  return text.length <= keyCharactersMax ? text : `\0${hash("sha256", text, "base64")}`;
}

/** The series of labels as they were sent: where they have not been checked, a value may hold a NUL, or be empty. */
function inEntity({ byMetric }: KnownEntity, metric: string, labels: Labels): KnownSeries | undefined {
  let count = 0;
  for (const key in labels) {
    if (labels[key] === "") return undefined;
    count += 1;
  }
  if (count === 0) return byMetric.get(metric);
  const known = byMetric.get(seriesKey(metric + labelsKey(labels)));
  return known?.labels !== undefined && Object.keys(known.labels).length === count ? known : undefined;
}

/** How long a number is trusted: a series that is marked as unused is removed an hour later, unless it is looked up by then. */
const trustMs = 600_000;

/** Whether a series may be used without looking it up again. */
export const isTrusted = ({ confirmedMs }: KnownSeries, nowMs: number) => nowMs - confirmedMs < trustMs;

/**
 * Bounded: when it has taken half of `seriesMax` it starts again, and the entities that are found in the half before move over,
 * so that what is used least lately is forgotten. A series takes some 150 bytes; one with much text counts as several.
 */
export function seriesMemory(seriesMax = 1_000_000): SeriesMemory {
  let young = new Map<string, KnownEntity>();
  let old = new Map<string, KnownEntity>();
  let youngCount = 0;
  let oldCount = 0;
  let youngWeight = 0;

  function turn() {
    if (youngWeight * 2 < seriesMax) return;
    old = young;
    oldCount = youngCount;
    young = new Map();
    youngCount = youngWeight = 0;
  }

  function entityOf(key: string): KnownEntity | undefined {
    const known = young.get(key);
    if (known !== undefined) return known;
    const older = old.get(key);
    if (older === undefined) return undefined;
    old.delete(key);
    oldCount -= older.byMetric.size;
    young.set(key, older);
    youngCount += older.byMetric.size;
    youngWeight += older.weight;
    turn();
    return older;
  }

  return {
    finder(tenantId, nowMs) {
      const repeats = repeated();
      let entity: KnownEntity | undefined;
      return (metric, dimensions, labels) => {
        if (!repeats(dimensions)) {
          entity = entityOf(tenantId + dimensionsKey(dimensions));
          // A value that has not been checked may hold the NUL that parts the others.
          if (entity?.dimensions !== Object.keys(dimensions).length) entity = undefined;
        }
        const known = entity && inEntity(entity, metric, labels);
        return known !== undefined && isTrusted(known, nowMs) ? known : undefined;
      };
    },
    size: () => youngCount + oldCount,
    remember(tenantId, entityKey, dimensions, series) {
      const key = tenantId + entityKey;
      let entity = entityOf(key);
      if (entity === undefined) {
        entity = { dimensions, byMetric: new Map(), weight: 0 };
        young.set(key, entity);
      }
      const text = series.metric + labelsKey(series.labels);
      const metricKey = seriesKey(text);
      const before = entity.byMetric.get(metricKey);
      if (before === undefined) {
        const weight = Math.max(1, Math.round((text.length + series.description.length) / weightCharacters));
        youngCount += 1;
        youngWeight += weight;
        entity.weight += weight;
        entity.byMetric.set(metricKey, series);
      } else Object.assign(before, series); // those that hold it see what has changed
      turn();
    },
  };
}

/** What identifies an entity of a tenant: the dimensions in one order. NUL occurs in none of them. */
export function dimensionsKey(dimensions: Dimensions): string {
  const names = Object.keys(dimensions);
  if (names.length > 1) names.sort();
  let key = "";
  for (const name of names) key += `\0${name}\0${dimensions[name]}`;
  return key;
}

/** Reports whether dimensions are those of the call before: to compare them is cheaper than to join them. */
export function repeated(): (dimensions: Dimensions) => boolean {
  let last: Dimensions = {};
  let lastCount = -1;
  return (dimensions) => {
    let count = 0;
    let same = true;
    for (const name in dimensions) {
      count += 1;
      if (last[name] !== dimensions[name]) same = false;
    }
    same &&= count === lastCount;
    last = dimensions;
    lastCount = count;
    return same;
  };
}
