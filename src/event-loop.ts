import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import { fairQueue } from "./fair-queue.ts";

/** Called again and again during long work: undefined while it may go on, else what to wait for first. */
export interface Pace {
  (): Promise<void> | undefined;
  /** The tenant's share of comparisons with regular expressions; absent: nobody's. */
  readonly share?: StepShare;
}

/** The pace of work that is done in one go. */
export const unpaced: Pace = () => undefined;

/** What the comparisons of a tenant may take of this process. */
export interface StepShare {
  /** As the pace itself; also waits until the tenant has paid for the comparisons before. */
  turn(): Promise<void> | undefined;
  spend(steps: number): void;
}

/** A tenant's comparisons may take this many steps a second, which is up to 250 ms of the processor; further ones wait. */
const stepsASecond = 4_000_000;
/** When the comparisons of a tenant are paid for, ms; the past is forgotten. */
const paidMs = new Map<string, number>();
const forgetAbove = 1000;

function spend(tenantId: string, steps: number): void {
  const now = performance.now();
  if (paidMs.size > forgetAbove) for (const [id, ms] of paidMs) if (ms <= now) paidMs.delete(id);
  paidMs.set(tenantId, Math.max(now, paidMs.get(tenantId) ?? 0) + (steps / stepsASecond) * 1000);
}

/** Returns how long a tenant's further comparisons have to wait, ms: those of a second may be done at once. */
export function stepsOwedMs(tenantId: string): number {
  return Math.max(0, (paidMs.get(tenantId) ?? 0) - performance.now() - 1000);
}

/** How long the paced work of all tenants together may run in one turn of the event loop. */
const sliceMs = 5;

/** Work that waits for its next slice, by tenant. */
const waiting = sliceQueue();
/** When the slice ends of all work that begins in this turn of the loop; undefined when none has begun yet. */
let begunUntilMs: number | undefined;

/**
 * Cuts long work into slices, so that no tenant holds the event loop. Between two slices the loop serves its connections. In
 * each turn of the loop one slice is shared out: tenants whose work waits take turns in it, and short pieces share it. Work
 * begins at once when none waits, within one slice for all that begins in the same turn.
 * @param tenantId whose work it is; absent: that of the server itself, which takes its turn as a tenant does
 * @param check called before each further slice; what it throws ends the work: the deadline has passed, the client has left
 * @param holdsNothing whether comparisons may wait for the tenant's share, which takes seconds: not in a transaction, where others wait too
 */
export function paced(check: () => void = () => {}, tenantId = "", { holdsNothing = false } = {}): Pace {
  let ownUntilMs = waiting.size > 0 ? 0 : beginning();
  const pace = () => {
    if (performance.now() < ownUntilMs) return undefined;
    return new Promise<void>((resolve) => waiting.add([tenantId], resolve)).then(() => {
      check();
      ownUntilMs = waiting.untilMs;
    });
  };
  const share: StepShare = {
    turn: () => (holdsNothing && stepsOwedMs(tenantId) > 0 ? paid() : pace()),
    spend: (steps) => spend(tenantId, steps),
  };
  async function paid(): Promise<void> {
    // Others of the tenant may have spent meanwhile.
    for (let ms = stepsOwedMs(tenantId); ms > 0; ms = stepsOwedMs(tenantId)) {
      await sleep(Math.min(ms, checkedMs));
      check();
    }
    await pace();
  }
  return Object.assign(pace, { share });
}

/** What waits for its share looks this often whether its client has left, ms. */
const checkedMs = 1000;

function beginning(): number {
  if (begunUntilMs === undefined) {
    begunUntilMs = performance.now() + sliceMs;
    setImmediate(() => {
      begunUntilMs = undefined;
    });
  }
  return begunUntilMs;
}

/** Pieces of work that wait for their turn in a slice, one slice in each turn of the loop. */
export interface SliceQueue {
  /** How many wait. */
  readonly size: number;
  /** When the running slice ends. */
  readonly untilMs: number;
  /** Lines up a piece of work as a fair queue does. It never begins in the turn that adds it. */
  add(keys: readonly unknown[], piece: () => void): void;
}

/** Makes an empty queue, with slices of its own. */
export function sliceQueue(): SliceQueue {
  const pieces = fairQueue<() => void>();
  /** Whether `serve` is at work, or will be in the next turn of the loop. */
  let serving = false;
  let untilMs = 0;

  function serve() {
    untilMs = performance.now() + sliceMs;
    resumeNext();
  }

  /** Lets one piece of work go on, and then another one for as long as the slice lasts. */
  function resumeNext() {
    pieces.next()?.();
    // A tick comes after all microtasks, so after all that the work does before it waits.
    queueMicrotask(() => process.nextTick(afterPiece));
  }

  function afterPiece() {
    if (pieces.size === 0) serving = false;
    else if (performance.now() < untilMs) resumeNext();
    else setImmediate(serve);
  }

  return {
    get size() {
      return pieces.size;
    },
    get untilMs() {
      return untilMs;
    },
    add(keys, piece) {
      pieces.add(keys, piece);
      if (serving) return;
      serving = true;
      setImmediate(serve);
    },
  };
}

/** Ends the turn after work that cannot be cut, begun at `beganMs`, where that took a slice or longer; short work goes on at once. */
export const turnAfter = (beganMs: number): Promise<void> | undefined =>
  performance.now() - beganMs < sliceMs ? undefined : turn();
