import { AsyncLocalStorage } from "node:async_hooks";
import type { Holder } from "../limiter.ts";

const askers = new AsyncLocalStorage<Holder>();
/** Those who have no share: the server itself. */
export const nobody = (): Holder => ({});

/** Runs `fn` for somebody: its statements take their turns at the database among those of others. */
export function askingFor<T>(who: Holder, fn: () => T): T {
  return askers.run(who, fn);
}

/** For whom a statement is sent; nobody's have no share. */
export const asker = (): Holder => askers.getStore() ?? nobody();
