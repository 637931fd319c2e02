import { unavailable } from "../errors.ts";
import { type Holder, limiter } from "../limiter.ts";
import { isConnectionLost } from "./driver/connection-errors.ts";
import { withHolder } from "./request-scope.ts";

/** Lets calls through while the database answers, and refuses them at once while it does not. */
export interface CircuitBreaker {
  /** False while the database is away. */
  readonly open: boolean;
  /** How many calls are in work. */
  readonly calls: number;
  /**
   * Runs a call that needs the database. Code 14 at once while the database is away, and as soon as it goes while the
   * call is in work (whose commit is then unknown). With a holder it counts among the calls in work and takes its
   * turns at the database; code 8 when too many are in work.
   */
  run<T>(call: () => Promise<T>, who?: Holder): Promise<T>;
  /** @throws code 14 while the database is away; for streams, between two messages. */
  check(): void;
  /** A connection failed: probes the database now instead of after the interval. */
  probeNow(): void;
  /** Ends the probes; calls in work go on. */
  stop(): void;
}

interface GateOptions {
  callsMax: number;
  /** Asks the database for a sign of life, on a connection of its own. */
  probe(): Promise<void>;
  /** Cuts every connection, so that what waits for a silent server fails now. */
  cut(): void;
  /** Time between two probes while the database answers; while it is away a quarter of it. */
  probeIntervalMs?: number;
  /** A server that says nothing for this long is away. */
  silenceMs?: number;
}

const ticks = 12;

const away = () => unavailable("the database cannot be reached at the moment; send the request again");

/** Makes a gate that is open, and probes at once. */
export function circuitBreaker({
  callsMax,
  probe,
  cut,
  probeIntervalMs = 1000,
  silenceMs = 5000,
}: GateOptions): CircuitBreaker {
  let open = true;
  let stopped = false;
  let probing = false;
  let again = false;
  let timer: NodeJS.Timeout | undefined;
  const calls = limiter({ max: callsMax, what: "calls are in work" });
  const waiting = new Set<(error: Error) => void>();

  async function answers(): Promise<boolean> {
    const { promise: silence, resolve } = Promise.withResolvers<boolean>();
    // Counted in ticks of this process: while it is busy itself an answer may lie there unread, and no time passes.
    let left = ticks;
    const tick = () => {
      left--;
      if (left > 0) late = setTimeout(tick, silenceMs / ticks);
      else resolve(false);
    };
    let late = setTimeout(tick, silenceMs / ticks);
    try {
      return await Promise.race([probe().then(() => true), silence]);
    } catch {
      return false;
    } finally {
      clearTimeout(late);
    }
  }

  async function probeOnce() {
    if (probing || stopped) {
      again = true;
      return;
    }
    probing = true;
    clearTimeout(timer);
    do {
      again = false;
      const found = await answers();
      if (!found && open && !stopped) {
        open = false;
        for (const reject of waiting) reject(away());
        waiting.clear();
      }
      if (!found && !stopped) cut();
      if (found) open = true;
    } while (again && open && !stopped);
    probing = false;
    if (!stopped) timer = setTimeout(probeOnce, open ? probeIntervalMs : probeIntervalMs / 4).unref();
  }

  const check = () => {
    if (!open) throw away();
  };

  void probeOnce();
  return {
    get open() {
      return open;
    },
    get calls() {
      return calls.used;
    },
    check,
    probeNow() {
      // While it is away the timer alone probes: each failed probe closes a connection, which would start the next one.
      if (open) void probeOnce();
    },
    // One promise, settled by hand: every call passes here, and a race of promises took several times as long.
    run(call, who) {
      return new Promise((resolve, reject) => {
        check();
        const place = who && calls.take(who);
        waiting.add(reject);
        // The call counts until it has really ended, also when its caller has been answered long before.
        const end = () => {
          place?.release();
          waiting.delete(reject);
        };
        const fail = (error: unknown) => {
          end();
          if (!isConnectionLost(error)) return reject(error);
          void probeOnce();
          reject(away());
        };
        try {
          (who === undefined ? call() : withHolder(who, call)).then((value) => {
            end();
            resolve(value);
          }, fail);
        } catch (error) {
          fail(error);
        }
      });
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
