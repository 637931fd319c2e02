/** How much of a stream is gathered while the portion before is stored. */
export interface PortionBounds {
  itemsMax: number;
  /** Says that what has been gathered is enough. */
  full?(): boolean;
}

/**
 * A stream in portions: what has come by the time that the next is asked for, at least one item. While a portion is in
 * work the stream is read on, up to the bounds. What was gathered when the stream fails is dropped: nothing of it was
 * acknowledged.
 */
export async function* portions<T>(items: AsyncIterable<T>, { itemsMax, full }: PortionBounds): AsyncIterable<T[]> {
  const iterator = items[Symbol.asyncIterator]();
  let gathered: T[] = [];
  let over = false;
  let failure: { error: unknown } | undefined;
  let wake = () => {};
  let goOn = () => {};
  let left = false;

  async function read() {
    try {
      while (!left) {
        const next = await iterator.next();
        if (next.done) break;
        gathered.push(next.value);
        wake();
        if (gathered.length >= itemsMax || full?.()) {
          await new Promise<void>((resolve) => {
            goOn = resolve;
          });
        }
      }
    } catch (error) {
      failure = { error };
    }
    over = true;
    wake();
  }
  void read();

  try {
    for (;;) {
      if (gathered.length === 0 && !over) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      if (failure !== undefined) throw failure.error;
      if (gathered.length === 0) return;
      const portion = gathered;
      gathered = [];
      goOn();
      yield portion;
    }
  } finally {
    left = true;
    goOn();
    // Not awaited: it may stand behind an item that is still to come.
    iterator.return?.().catch(() => undefined);
  }
}
