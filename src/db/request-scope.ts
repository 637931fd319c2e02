import { AsyncLocalStorage } from "node:async_hooks";
import type { Holder } from "../limiter.ts";

const askers = new AsyncLocalStorage<Holder>();
/** The holder of statements that the server sends for itself: it has no share. */
export const noHolder = (): Holder => ({});

/** Runs `fn` for a holder: its statements take their turns at the database among those of other holders. */
export function withHolder<T>(holder: Holder, fn: () => T): T {
  return askers.run(holder, fn);
}

/** The holder for which a statement is sent; without one there is no share. */
export const currentHolder = (): Holder => askers.getStore() ?? noHolder();
