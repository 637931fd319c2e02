import { exhausted } from "../../errors.ts";
import type { Pace } from "../../event-loop.ts";
import { type Held, hold, release, type Told } from "./shared-messages.ts";

/** How many messages, and bytes of them, wait for a client before its watch is ended. */
const waitingMax = 10_000;
const waitingBytesMax = 16 * 1024 * 1024;
/** This many may wait while the feed is followed further; beyond, it waits for the watch, unless the client is the slow one. */
const shortMax = 64;
const shortBytesMax = 1024 * 1024;

/** What waits for the client of a watch: bounded, in order. */
export interface Queue {
  tell(told: Told): void;
  fail(error: unknown): void;
  /** The next one, when the tenant has its turn; undefined when there is none within this time. @throws what the watch ends with */
  next(withinMs: number, pace: Pace): Promise<Told | undefined>;
  /** Whether so much waits that the feed should not be followed further. */
  long(): boolean;
  /** Whether the server works on it, not the client. */
  readonly asking: boolean;
  /** The client is slower than the feed: nothing waits for it until it has taken all. */
  lags: boolean;
  /** How much waits, bytes. */
  readonly bytes: number;
  /** The watch is over. */
  end(): void;
}

const tooSlow = () => exhausted("the client takes the changes too slowly; watch again from its last cursor");

/** @param held what all watches of the tenant have not taken yet */
export function messageQueue(signal: AbortSignal, held: Held): Queue {
  const waiting = fifo<Told>();
  let bytes = 0;
  let asking = false;
  let failure: unknown;
  const sleeper = wakeable();
  const aborted = () => sleeper.wake();
  signal.addEventListener("abort", aborted, { once: true });

  function clear() {
    for (let told = waiting.shift(); told !== undefined; told = waiting.shift()) release(held, told);
    bytes = 0;
  }

  function fail(error: unknown) {
    failure ??= error;
    clear();
    sleeper.wake();
  }

  function shift(): Told | undefined {
    const told = waiting.shift();
    if (told === undefined) return undefined;
    bytes -= told.changed.bytes;
    if (waiting.size() === 0) queue.lags = false;
    release(held, told);
    return told;
  }

  const queue: Queue = {
    lags: false,
    get asking() {
      return asking;
    },
    get bytes() {
      return bytes;
    },
    tell(told) {
      if (failure !== undefined) return;
      waiting.push(told);
      hold(held, told);
      bytes += told.changed.bytes;
      if (waiting.size() > waitingMax || (bytes > waitingBytesMax && waiting.size() > 1)) fail(tooSlow());
      else sleeper.wake();
    },
    fail,
    end() {
      clear();
      signal.removeEventListener("abort", aborted);
    },
    long: () => !queue.lags && (waiting.size() > shortMax || bytes > shortBytesMax),
    async next(withinMs, pace) {
      asking = true;
      try {
        if (failure === undefined && waiting.size() === 0) {
          signal.throwIfAborted();
          await sleeper.sleep(withinMs);
        }
        if (waiting.size() > 0) {
          const turn = pace();
          if (turn !== undefined) await turn;
        }
        signal.throwIfAborted();
        if (failure !== undefined) throw failure;
        return shift();
      } finally {
        asking = false;
      }
    },
  };
  return queue;
}

/** Sleeps until it is woken, or for a time. */
function wakeable() {
  let wake: (() => void) | undefined;
  return {
    wake: () => wake?.(),
    async sleep(ms: number): Promise<void> {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      wake = undefined;
    },
  };
}

/** First in, first out. What was taken is given up in portions. */
function fifo<T>() {
  let items: T[] = [];
  let from = 0;
  return {
    size: () => items.length - from,
    push: (item: T) => void items.push(item),
    shift(): T | undefined {
      if (from === items.length) return undefined;
      const item = items[from];
      from += 1;
      if (from === items.length || from >= 256) {
        items = items.slice(from);
        from = 0;
      }
      return item;
    },
  };
}

/** Ends the watch for which most waits. Answers false when nothing waits. */
export function endSlowest(queues: Iterable<Queue>): boolean {
  let slowest: Queue | undefined;
  for (const queue of queues) if (queue.bytes > (slowest?.bytes ?? 0)) slowest = queue;
  slowest?.fail(tooSlow());
  return slowest !== undefined;
}
