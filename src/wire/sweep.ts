/** What has to be looked at now and then while it lasts. */
export interface Sweep<T> extends Iterable<T> {
  add(item: T): void;
  delete(item: T): void;
}

// How late a bound of seconds may be noticed: one timer for all costs a call nothing, one for each took 2 µs.
const sweepMs = 250;

/** Looks at all items every 250 ms, with the time of `performance.now()`, while there are any. */
export function sweep<T>(look: (item: T, nowMs: number) => void): Sweep<T> {
  const items = new Set<T>();
  let sweeping = false;

  function round(): void {
    sweeping = items.size > 0;
    if (sweeping) setTimeout(round, sweepMs).unref();
    const nowMs = performance.now();
    for (const item of items) look(item, nowMs);
  }

  return {
    add(item) {
      items.add(item);
      if (sweeping) return;
      sweeping = true;
      setTimeout(round, sweepMs).unref();
    },
    delete: (item) => void items.delete(item),
    [Symbol.iterator]: () => items.values(),
  };
}
