import type { NamedSeries } from "./series.ts";
import { seriesKey } from "./series-memory.ts";
import type { PointBatch } from "./store.ts";

/** One point that has been checked. */
export interface PointItem {
  metric: string;
  dimensions: Record<string, string>;
  timeMs: number;
  value: number;
  /** From its metadata; empty: nothing. */
  units: string;
  description: string;
  /** Set where the batch was stored without it: its series would be one too many. */
  refused?: boolean;
}

/** Points as columns, with each series once. `entityIdOf` tells the id of the entity with these dimensions. */
export function pointBatch(
  items: readonly PointItem[],
  entityIdOf: (dimensions: Record<string, string>) => Buffer,
): PointBatch {
  const known = new Map<string, number>();
  const batch: PointBatch = {
    series: [],
    places: new Uint32Array(items.length),
    times: new Float64Array(items.length),
    values: new Float64Array(items.length),
  };
  for (const [i, { metric, dimensions, timeMs, value, units, description }] of items.entries()) {
    const key = seriesKey(metric, dimensions);
    let place = known.get(key);
    if (place === undefined) {
      place = batch.series.length;
      known.set(key, place);
      const entityId = entityIdOf(dimensions);
      batch.series.push({ key, entityId, metric, dimensions, lastMs: timeMs, units, description });
    } else {
      const series = batch.series[place] as NamedSeries;
      if (timeMs > series.lastMs) series.lastMs = timeMs;
      if (units !== "") series.units = units;
      if (description !== "") series.description = description;
    }
    batch.places[i] = place;
    batch.times[i] = timeMs;
    batch.values[i] = value;
  }
  return batch;
}
