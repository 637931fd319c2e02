import { entityId } from "../entities/identity.ts";
import { namesText } from "./labels.ts";
import { type Notes, withNotes } from "./notes.ts";
import type { NamedSeries } from "./series.ts";
import { type KeptKey, keptKey, kinds, setKey } from "./series-key.ts";
import { found, type Segment, type TenantSeries } from "./series-memory.ts";
import { dimensionsKey, nameSetter, type SeriesNames } from "./series-names.ts";

/** A series that a way in does not know, and what else is said of it. All of this has been checked. */
export interface NewSeries extends SeriesNames, Notes {
  /** What it was looked up by; absent: its names. */
  key?: KeptKey | undefined;
}

/** Points as a way in hands them over: columns, one place a point, in the order of arrival. Values are finite, times whole ms. */
export interface ReadPoints {
  /** The segment that has the series, whose trust was looked at, or a new series. */
  readonly series: (Segment | NewSeries)[];
  /** The entry of the segment. */
  readonly entries: number[];
  readonly times: number[];
  readonly values: number[];
}

export const noPoints = (): ReadPoints => ({ series: [], entries: [], times: [], values: [] });

/** Points of one tenant that have been checked: columns, one place a point, in the order of arrival. */
export interface PointBatch {
  /** Numbers of series; 0: not known yet. */
  numbers: Float64Array;
  /** The segment of a series that is known, and its entry; of another its place in `series`. */
  segments: readonly (Segment | undefined)[];
  places: Int32Array;
  /** Whole ms since the epoch. */
  times: Float64Array;
  values: Float64Array;
  /** Series that are to be looked up, each once. */
  series: readonly NamedSeries[];
  /** What they were named by. */
  learnt: readonly Learnt[];
  /** Set by `storePoints`, by places of `series`: why their points are not stored; undefined where they are. */
  refused: readonly (string | undefined)[];
}

interface Learnt {
  place: number;
  key: KeptKey;
  said: Notes;
}

/** Gathers points into a batch. */
export interface BatchBuilder {
  addKnown(segment: Segment, entry: number, timeMs: number, value: number): void;
  /** Any point that has been checked. Returns whether its series has to be looked up. */
  add(series: NewSeries, timeMs: number, value: number): boolean;
  batch(): PointBatch;
}

/** Begins a batch of at most `countMax` points. */
export function batchBuilder(known: TenantSeries, tenantId: string, countMax: number, nowMs: number): BatchBuilder {
  const numbers = new Float64Array(countMax);
  const places = new Int32Array(countMax);
  const times = new Float64Array(countMax);
  const values = new Float64Array(countMax);
  const segments: (Segment | undefined)[] = [];
  const series: NamedSeries[] = [];
  const learnt: Learnt[] = [];
  const setNames = nameSetter();
  /** By `dimensionsKey`: the entity, and the places of its series by `namesText`. */
  const entities = new Map<string, { id: Buffer; byNames: Map<string, number> }>();

  function put(segment: Segment | undefined, place: number, timeMs: number, value: number) {
    const at = segments.push(segment) - 1;
    numbers[at] = segment?.numbers[place] ?? 0;
    places[at] = place;
    times[at] = timeMs;
    values[at] = value;
  }

  function named({ metric, dimensions, labels }: SeriesNames, said: Notes, timeMs: number): number {
    const key = dimensionsKey(dimensions);
    const entity = entities.get(key) ?? { id: entityId(tenantId, dimensions), byNames: new Map() };
    entities.set(key, entity);
    const names = namesText(metric, labels);
    const place = entity.byNames.get(names);
    if (place === undefined) {
      entity.byNames.set(names, series.length);
      return series.push({ entityId: entity.id, metric, dimensions, labels, lastMs: timeMs, ...said }) - 1;
    }
    const own = series[place] as NamedSeries;
    if (timeMs > own.lastMs) own.lastMs = timeMs;
    Object.assign(own, withNotes(own, said));
    return place;
  }

  return {
    addKnown: put,
    add(names, timeMs, value) {
      const { key, units, description, instrument } = names;
      const said = { units, description, instrument };
      if (key !== undefined) setKey(key.bytes, 0, key.bytes.length, key.hash);
      const isKeySet = key !== undefined || setNames(names, said);
      if (isKeySet && known.find(key?.owner ?? kinds.names, nowMs, key?.version, () => said)) {
        put(found.segment, found.entry, timeMs, value);
        return false;
      }
      const kept = isKeySet ? (key ?? keptKey(kinds.names)) : undefined;
      const place = named(names, said, timeMs);
      if (kept !== undefined && learnt.at(-1)?.key !== kept) learnt.push({ place, key: kept, said });
      put(undefined, place, timeMs, value);
      return true;
    },
    batch() {
      const count = segments.length;
      return {
        numbers: begin(numbers, count),
        segments,
        places: begin(places, count),
        times: begin(times, count),
        values: begin(values, count),
        series,
        learnt,
        refused: [],
      };
    },
  };
}

/** Returns the first places of a column: the column itself where that is all of it, for a view of a short one costs more than it. */
export function begin<Column extends Float64Array | Int32Array>(column: Column, count: number): Column {
  return count === column.length ? column : (column.subarray(0, count) as Column);
}

/** Points of a batch from one place to another, as a batch. */
export function partOf(batch: PointBatch, from: number, to: number): PointBatch {
  const kept = new Map<number, number>();
  const places = batch.places.slice(from, to);
  for (let i = from; i < to; i++) {
    if (batch.segments[i] !== undefined) continue;
    const place = batch.places[i] as number;
    if (!kept.has(place)) kept.set(place, kept.size);
    places[i - from] = kept.get(place) as number;
  }
  return {
    numbers: batch.numbers.subarray(from, to),
    segments: batch.segments.slice(from, to),
    places,
    times: batch.times.subarray(from, to),
    values: batch.values.subarray(from, to),
    series: [...kept.keys()].map((place) => batch.series[place] as NamedSeries),
    learnt: batch.learnt.flatMap(({ place, ...rest }) => {
      const own = kept.get(place);
      return own === undefined ? [] : [{ place: own, ...rest }];
    }),
    refused: [],
  };
}
