import { exhausted } from "../../errors.ts";
import type { Pace } from "../../event-loop.ts";
import { type Held, hold, release, type Told } from "./told.ts";

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
  let waiting: Told[] = [];
  let from = 0;
  let bytes = 0;
  let asking = false;
  let failure: unknown;
  let wake: (() => void) | undefined;
  const size = () => waiting.length - from;
  const aborted = () => wake?.();
  signal.addEventListener("abort", aborted, { once: true });

  function clear() {
    for (const told of waiting.slice(from)) release(held, told);
    waiting = [];
    from = 0;
    bytes = 0;
  }

  function fail(error: unknown) {
    failure ??= error;
    clear();
    wake?.();
  }

  async function wakened(withinMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, withinMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    wake = undefined;
  }

  /** The first one, if there is any; what is taken is given up in portions. */
  function shift(): Told | undefined {
    const told = waiting[from];
    if (told === undefined) return undefined;
    from += 1;
    bytes -= told.changed.bytes;
    if (from === waiting.length || from >= 256) {
      waiting = waiting.slice(from);
      from = 0;
    }
    if (waiting.length === 0) queue.lags = false;
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
      if (size() > waitingMax || (bytes > waitingBytesMax && size() > 1)) fail(tooSlow());
      else wake?.();
    },
    fail,
    end() {
      clear();
      signal.removeEventListener("abort", aborted);
    },
    long: () => !queue.lags && (size() > shortMax || bytes > shortBytesMax),
    async next(withinMs, pace) {
      asking = true;
      try {
        if (failure === undefined && size() === 0) {
          signal.throwIfAborted();
          await wakened(withinMs);
        }
        if (size() > 0) {
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

/** Ends the watch for which most waits. Answers false when nothing waits. */
export function endSlowest(queues: Iterable<Queue>): boolean {
  let slowest: Queue | undefined;
  for (const queue of queues) if (queue.bytes > (slowest?.bytes ?? 0)) slowest = queue;
  slowest?.fail(tooSlow());
  return slowest !== undefined;
}
