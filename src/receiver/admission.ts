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
  /** How long a queue may stand, never empty, before it is kept short, ms; that ends when hardly anybody was refused for ten times as long. */
  standingMs?: number;
}

/** Of so many that were let in, one may be refused in a time that is no flood. */
const inForOne = 20;
const busyMs = 1000;

/**
 * A burst waits, a flood is refused: the queue may grow as long as it is now and then empty. One that stands longer only
 * makes everybody wait, so that it is kept short from then on, until hardly anybody is refused: it becomes empty by chance
 * under a flood too. The limit follows how fast this machine stores (docs/decisions/0015).
 */
export function admission({ turnsMax, itemsMax = 200_000, standingMs = 100 }: AdmissionOptions): Admission {
  const waiting: (() => void)[] = [];
  const waitingMax = Math.ceil(turnsMax / 2);
  let running = 0;
  let inWork = 0; // requests, with those that have not come as far as their turn
  let itemsInWork = 0;
  let standsSinceMs = 0;
  let endedMs = -Infinity;
  /** Since when the queue is kept short, and who came since, or since it was last looked at. */
  let flood: { sinceMs: number; letIn: number; refused: number; refusedMs: number } | undefined;

  function look(nowMs: number) {
    if (flood === undefined) {
      const stands = waiting.length > 0 && nowMs - standsSinceMs >= standingMs;
      if (stands) flood = { sinceMs: nowMs, letIn: 0, refused: 0, refusedMs: nowMs };
    } else if (nowMs - flood.sinceMs >= 10 * standingMs) {
      const over = flood.refused * inForOne <= flood.letIn || nowMs - flood.refusedMs >= 10 * standingMs;
      flood = over ? undefined : { ...flood, sinceMs: nowMs, letIn: 0, refused: 0 };
    }
  }

  function check() {
    const nowMs = performance.now();
    look(nowMs);
    if (flood === undefined || (waiting.length < waitingMax && inWork < turnsMax + waitingMax)) return;
    flood.refused += 1;
    flood.refusedMs = nowMs;
    throw exhausted("more data comes in than can be stored; send the request again", 1);
  }

  function next() {
    const start = waiting.shift();
    if (start === undefined) running -= 1;
    else start(); // it takes over this place
  }

  return {
    check,
    busy: () => running > 0 || performance.now() - endedMs < busyMs,
    async request(items, work) {
      check();
      if (itemsInWork > 0 && itemsInWork + items > itemsMax) {
        throw exhausted(`more than ${itemsMax} items are in work; send the request again`, 1);
      }
      if (flood !== undefined) flood.letIn += 1;
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
      if (running < turnsMax) running += 1;
      else {
        if (waiting.length === 0) standsSinceMs = performance.now();
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      try {
        return await transaction();
      } finally {
        endedMs = performance.now();
        next();
      }
    },
  };
}
