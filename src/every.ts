/** Work that is done again and again. */
export interface Rounds {
  /** Ends it; resolves when the round that runs, if one does, has ended. */
  stop(): Promise<void>;
}

/**
 * Does some work every `ms`, for the first time after `firstMs`. While a round runs, none begins; one
 * that fails is tried again when the next is due, and the work itself logs why.
 */
export function every(
  ms: number,
  work: () => void | Promise<void>,
  firstMs = ms,
): Rounds & { /** Begins a round at once, unless one runs. */ now(): void } {
  let running: Promise<void> | undefined;
  const attempt = async () => await work();
  const round = () => {
    running ??= attempt()
      .catch(() => undefined)
      .finally(() => {
        running = undefined;
      });
  };
  const first = firstMs === ms ? undefined : setTimeout(round, firstMs).unref();
  const timer = setInterval(round, ms).unref();
  return {
    now: round,
    async stop() {
      clearTimeout(first);
      clearInterval(timer);
      await running;
    },
  };
}
