/** How often values fell into each of some ranges. To note one costs a few nanoseconds. */
export interface Histogram {
  /** The upper ends of the ranges, ascending; the last range, without an end, has none here. */
  readonly bounds: readonly number[];
  /** How many values there were in each range. */
  readonly counts: readonly number[];
  readonly sum: number;
  note(value: number): void;
}

/** Upper ends for durations from a millisecond to half a minute, s. */
export const secondsBounds: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

/** An empty histogram. */
export function histogram(bounds: readonly number[] = secondsBounds): Histogram {
  const counts = new Array<number>(bounds.length + 1).fill(0);
  let sum = 0;
  return {
    bounds,
    counts,
    get sum() {
      return sum;
    },
    note(value) {
      let i = 0;
      while (i < bounds.length && value > (bounds[i] as number)) i += 1;
      counts[i] = (counts[i] as number) + 1;
      sum += value;
    },
  };
}
