import type { Pool } from "../db/connect.ts";
import type { NotifyListener } from "../db/listen.ts";

const callMsMin = 100;

/**
 * Wakes the other servers where there is more to do than this one takes on, at most ten times a second, and hears them. A hint:
 * what is due is found without it, too.
 */
export function otherServers(
  { system }: Pick<Pool, "system">,
  replicas: Pick<NotifyListener, "listen">,
  channel: string,
  heard: () => void,
): () => void {
  let calledMs = -Infinity;
  replicas.listen(channel, heard);
  return () => {
    if (performance.now() - calledMs <= callMsMin) return;
    calledMs = performance.now();
    system.unsafe(`notify ${channel}`).catch(() => undefined);
  };
}

/** Timers of what is due later, one for each key: the earliest that was asked for. */
export interface Alarms<Key> {
  set(key: Key, dueMs: number): void;
  clear(key: Key): void;
  stop(): void;
}

/** @param ring called when a key's time has come */
export function alarms<Key>(nowMs: () => number, ring: (key: Key) => void): Alarms<Key> {
  const all = new Map<Key, { dueMs: number; timer: NodeJS.Timeout }>();
  let stopped = false;

  function clear(key: Key) {
    clearTimeout(all.get(key)?.timer);
    all.delete(key);
  }

  return {
    set(key, dueMs) {
      if (stopped || (all.get(key)?.dueMs ?? Infinity) <= dueMs) return;
      clear(key);
      const go = () => {
        all.delete(key);
        ring(key);
      };
      all.set(key, { dueMs, timer: setTimeout(go, Math.max(0, dueMs - nowMs())).unref() });
    },
    clear,
    stop() {
      stopped = true;
      for (const key of all.keys()) clear(key);
    },
  };
}
