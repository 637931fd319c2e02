/** How a stream is cut into batches: at this many items, when they are large, or this long after a batch's first one. */
export interface BatchBounds {
  itemsMax: number;
  /** Says that what has been gathered is enough. */
  full?(): boolean;
  waitMsMax: number;
}

/**
 * Gathers a stream's items into batches, so that a fast stream is stored in few statements and a slow one soon. What was
 * gathered when the stream fails is dropped: nothing of it was acknowledged.
 */
export async function* batches<T>(items: AsyncIterable<T>, bounds: BatchBounds): AsyncIterable<T[]> {
  const { itemsMax, waitMsMax } = bounds;
  const iterator = items[Symbol.asyncIterator]();
  let next = iterator.next();
  // A failure while a batch is being stored is seen when the next item is awaited.
  next.catch(() => undefined);
  try {
    for (;;) {
      const first = await next;
      if (first.done) return;
      const batch = [first.value];
      next = iterator.next();
      const timeout = timer(waitMsMax);
      let ended = false;
      while (batch.length < itemsMax && !bounds.full?.()) {
        const result = await Promise.race([next, timeout.expired]);
        if (result === undefined) break;
        if (result.done) {
          ended = true;
          break;
        }
        batch.push(result.value);
        next = iterator.next();
      }
      timeout.stop();
      next.catch(() => undefined);
      yield batch;
      if (ended) return;
    }
  } finally {
    // Not awaited: it may stand behind an item that is still to come.
    iterator.return?.().catch(() => undefined);
  }
}

function timer(ms: number) {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const handle = setTimeout(() => resolve(undefined), ms);
  return { expired: promise, stop: () => clearTimeout(handle) };
}
