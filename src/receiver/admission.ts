import { exhausted } from "../errors.ts";

/** Lets in as much data as can be stored soon, and refuses the rest at once. */
export interface Admission {
  /** Before a body is read. @throws code 8 while more comes than is stored. */
  check(): void;
  /** Counts a request and its items for as long as it is in work. @throws code 8 when there is no room for them. */
  request<T>(items: number, work: () => Promise<T>): Promise<T>;
  /** Whether data is being stored, or was a moment ago. */
  busy(): boolean;
  /** Runs one transaction when its turn comes; first come, first served. */
  turn<T>(transaction: () => Promise<T>): Promise<T>;
}

interface AdmissionOptions {
  /** Transactions at once. */
  turnsMax: number;
  /** Items of all requests in work; a single request may have more. */
  itemsMax?: number;
  /** How long a queue may stand, never empty, before it is kept short, ms. */
  standingMs?: number;
}

const busyMs = 500;

/**
 * A burst waits, a flood is refused: the queue may grow as long as it is now and then empty. One that stands longer only
 * makes everybody wait, so that it is kept short from then on, until turns are free half of the time: it becomes empty by
 * chance under a flood too. The limit follows how fast this machine stores (docs/decisions/0015).
 */
export function admission({ turnsMax, itemsMax = 200_000, standingMs = 100 }: AdmissionOptions): Admission {
  const waiting: (() => void)[] = [];
  let running = 0;
  let inWork = 0; // requests, with those that have not come as far as their turn
  let itemsInWork = 0;
  let standsSinceMs = 0;
  let endedMs = -Infinity;
  let freeSinceMs = 0; // as long as not all turns are taken
  /** There while the queue is kept short: since when it is looked at, and how long turns were free in that time. */
  let flood: { sinceMs: number; freeMs: number } | undefined;

  function look(nowMs: number) {
    if (flood === undefined) {
      if (waiting.length > 0 && nowMs - standsSinceMs >= standingMs) flood = { sinceMs: nowMs, freeMs: 0 };
      return;
    }
    const lookedMs = nowMs - flood.sinceMs;
    if (lookedMs < 5 * standingMs) return;
    if (running < turnsMax) noteFree(nowMs);
    flood = flood.freeMs * 2 >= lookedMs ? undefined : { sinceMs: nowMs, freeMs: 0 };
  }

  function noteFree(nowMs: number) {
    if (flood !== undefined) flood.freeMs += nowMs - Math.max(freeSinceMs, flood.sinceMs);
  }

  function check() {
    look(performance.now());
    if (flood === undefined || (waiting.length < turnsMax && inWork < 2 * turnsMax)) return;
    throw exhausted("more data comes in than can be stored; send the request again", 1);
  }

  function begin() {
    running += 1;
    if (running === turnsMax) noteFree(performance.now());
  }

  function next() {
    endedMs = performance.now();
    const start = waiting.shift();
    if (start !== undefined) return start(); // it takes over this place
    if (running === turnsMax) freeSinceMs = endedMs;
    running -= 1;
  }

  return {
    check,
    busy: () => running > 0 || performance.now() - endedMs < busyMs,
    async request(items, work) {
      check();
      if (itemsInWork > 0 && itemsInWork + items > itemsMax) {
        throw exhausted(`more than ${itemsMax} items are in work; send the request again`, 1);
      }
      inWork += 1;
      itemsInWork += items;
      try {
        return await work();
      } finally {
        inWork -= 1;
        itemsInWork -= items;
      }
    },
    async turn(transaction) {
      if (running < turnsMax) begin();
      else {
        if (waiting.length === 0) standsSinceMs = performance.now();
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      try {
        return await transaction();
      } finally {
        next();
      }
    },
  };
}
