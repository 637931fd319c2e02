import { entityId } from "../entities/identity.ts";
import type { EncodedSeriesCache, EncodedSeriesTable, SeenEntity } from "./encoded-series-cache.ts";
import { type Labels, labelsKey } from "./labels.ts";
import { agrees, type Notes, withNotes } from "./notes.ts";
import type { NamedSeries, StoredSeries } from "./series.ts";
import { dimensionsKey, type KnownSeries, repeated, type SeriesMemory } from "./series-memory.ts";

/** One point that has been checked. */
export interface PointItem extends Notes {
  metric: string;
  dimensions: Record<string, string>;
  /** Absent: none. */
  labels?: Labels | undefined;
  timeMs: number;
  value: number;
}

/** Points of one tenant that have been checked: columns, one place a point, in the order of arrival. */
export interface PointBatch {
  /** Numbers of series; 0: not known yet, `places` reports which of `series` it is. */
  numbers: Float64Array;
  places: Int32Array;
  /** Whole ms since the epoch. */
  times: Float64Array;
  values: Float64Array;
  /** Series that are to be looked up, each once. */
  series: readonly NamedSeries[];
  /** Points of these series and their bytes, for `forms`. */
  learnt: readonly { place: number; item: PointItem; bytes: Uint8Array }[];
  /** Of points whose numbers are known: a place in `table`, or the series. */
  sources: readonly (number | KnownSeries | undefined)[];
  table: EncodedSeriesTable;
  /** Set by `storePoints`, by places of `series`: why their points are not stored; undefined where they are. */
  refused: readonly (string | undefined)[];
}

/** Gathers points into a batch. */
export interface BatchBuilder {
  /** A point whose form is known. */
  addForm(place: number, timeMs: number, value: number): void;
  /** A point of a series that is known. */
  addKnown(series: KnownSeries, timeMs: number, value: number): void;
  /** Any point that has been checked; `bytes` are its own, when it came in binary. */
  addItem(item: PointItem, bytes?: Uint8Array): void;
  batch(): PointBatch;
}

const noLabels: Labels = {};

/** An entity of new series, with the places of these. */
interface NewEntity {
  key: string;
  id: Buffer;
  /** By the metric, followed by the `labelsKey`. */
  byMetric: Map<string, number>;
}

/** Begins a batch of at most `countMax` points. */
export function batchBuilder(
  { memory, forms }: { memory: SeriesMemory; forms: EncodedSeriesCache },
  tenantId: string,
  countMax: number,
  nowMs: number,
  table: EncodedSeriesTable = forms.table(),
): BatchBuilder {
  const numbers = new Float64Array(countMax);
  const places = new Int32Array(countMax);
  const times = new Float64Array(countMax);
  const values = new Float64Array(countMax);
  const sources: (number | KnownSeries | undefined)[] = [];
  const series: NamedSeries[] = [];
  const learnt: { place: number; item: PointItem; bytes: Uint8Array }[] = [];
  const find = memory.finder(tenantId, nowMs);
  const repeats = repeated();
  const entities = new Map<string, NewEntity>();
  let last: NewEntity | undefined;

  function entityOf(dimensions: Record<string, string>): NewEntity {
    if (repeats(dimensions) && last !== undefined) return last;
    const key = dimensionsKey(dimensions);
    last = entities.get(key);
    if (last === undefined) {
      last = { key, id: entityId(tenantId, dimensions), byMetric: new Map() };
      entities.set(key, last);
    }
    return last;
  }

  function add(number: number, source: number | KnownSeries | undefined, timeMs: number, value: number) {
    const at = sources.push(source) - 1;
    numbers[at] = number;
    times[at] = timeMs;
    values[at] = value;
  }

  function named({ metric, dimensions, labels, timeMs, units, description, instrument }: PointItem): number {
    const { key: entityKey, id, byMetric } = entityOf(dimensions);
    const metricKey = labels === undefined ? metric : metric + labelsKey(labels);
    const place = byMetric.get(metricKey);
    if (place === undefined) {
      byMetric.set(metricKey, series.length);
      const notes = { units, description, instrument };
      const own = { entityKey, entityId: id, metric, dimensions, labels, lastMs: timeMs, ...notes };
      return series.push(own) - 1;
    }
    const found = series[place] as NamedSeries;
    if (timeMs > found.lastMs) found.lastMs = timeMs;
    Object.assign(found, withNotes(found, { units, description, instrument }));
    return place;
  }

  return {
    addForm: (place, timeMs, value) => add(table.number(place), place, timeMs, value),
    addKnown: (known, timeMs, value) => add(known.number, known, timeMs, value),
    addItem(item, bytes) {
      const known = find(item.metric, item.dimensions, item.labels ?? noLabels);
      if (known !== undefined && agrees(known, item)) {
        add(known.number, known, item.timeMs, item.value);
        if (bytes !== undefined) forms.learn(tenantId, bytes, known);
        return;
      }
      const place = named(item);
      if (bytes !== undefined) learnt.push({ place, item, bytes });
      places[sources.length] = place;
      add(0, undefined, item.timeMs, item.value);
    },
    batch() {
      const count = sources.length;
      return {
        numbers: begin(numbers, count),
        places: begin(places, count),
        times: begin(times, count),
        values: begin(values, count),
        series,
        learnt,
        sources,
        table,
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
  const places = new Int32Array(to - from);
  for (let i = from; i < to; i++) {
    if (batch.numbers[i] !== 0) continue;
    const place = batch.places[i] as number;
    if (!kept.has(place)) kept.set(place, kept.size);
    places[i - from] = kept.get(place) as number;
  }
  return {
    numbers: batch.numbers.subarray(from, to),
    places,
    times: batch.times.subarray(from, to),
    values: batch.values.subarray(from, to),
    series: [...kept.keys()].map((place) => batch.series[place] as NamedSeries),
    learnt: batch.learnt.flatMap(({ place, ...rest }) => {
      const own = kept.get(place);
      return own === undefined ? [] : [{ place: own, ...rest }];
    }),
    sources: batch.sources.slice(from, to),
    table: batch.table,
    refused: [],
  };
}

/** The entity of a point whose series is known. */
export function entityOf({ sources, table }: PointBatch, i: number): SeenEntity {
  const source = sources[i] as number | KnownSeries;
  return typeof source === "number" ? table.entity(source) : source.entity;
}

/** The series of a point whose series is known. */
export function seriesOf({ sources, table }: PointBatch, i: number): StoredSeries {
  const source = sources[i] as number | KnownSeries;
  return typeof source === "number" ? table.series(source) : source;
}

/** The metric of a point whose series is known. */
export function metricOf({ sources, table }: PointBatch, i: number): string {
  const source = sources[i] as number | KnownSeries;
  return typeof source === "number" ? table.metric(source) : source.metric;
}
