import { setImmediate as nextTurn } from "node:timers/promises";

/** Asked again and again during long work: undefined while it may go on, else what to wait for first. */
export type Pace = () => Promise<void> | undefined;

const sliceMs = 10;

/**
 * Cuts long work into slices, between which the event loop serves others. `check` is asked before each further slice.
 * @throws what `check` throws: the deadline has passed, or the client has gone.
 */
export function paced(check: () => void): Pace {
  let untilMs = performance.now() + sliceMs;
  return () => {
    if (performance.now() < untilMs) return undefined;
    return nextTurn().then(() => {
      check();
      untilMs = performance.now() + sliceMs;
    });
  };
}
