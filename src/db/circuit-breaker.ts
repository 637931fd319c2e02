import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { unavailable } from "../errors.ts";
import { type Holder, limiter } from "../limiter.ts";
import { isConnectionLost } from "./driver/connection-errors.ts";
import { withHolder } from "./request-scope.ts";

/** Lets calls through while the database answers, and refuses them at once while it does not. */
export interface CircuitBreaker {
  /** False while the database is away. */
  readonly open: boolean;
  /** How many calls are in work. */
  calls(): number;
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

const away = () =>
  unavailable("the database cannot be reached at the moment; send the request again", ErrorReason.DATABASE_UNAVAILABLE);

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
  const calls = callsInWork(callsMax, () => void probeOnce());

  async function probeOnce() {
    if (probing || stopped) {
      again = true;
      return;
    }
    probing = true;
    clearTimeout(timer);
    do {
      again = false;
      const found = await answersWithin(silenceMs, probe);
      if (!found && open && !stopped) {
        open = false;
        calls.refuse();
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
    calls: calls.used,
    check,
    probeNow() {
      // While it is away the timer alone probes: each failed probe closes a connection, which would start the next one.
      if (open) void probeOnce();
    },
    run: (call, who) => (open ? calls.run(call, who) : Promise.reject(away())),
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

/** Whether a probe succeeds before the database has been silent for too long. */
async function answersWithin(silenceMs: number, probe: () => Promise<void>): Promise<boolean> {
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

/** The calls that use the database now. `lost`: one of them lost its connection. */
function callsInWork(callsMax: number, lost: () => void) {
  const places = limiter({ max: callsMax, what: "calls are in work" });
  const waiting = new Set<(error: Error) => void>();
  return {
    used: () => places.used,
    /** Fails all of them; each counts until it has really ended. */
    refuse() {
      for (const reject of waiting) reject(away());
      waiting.clear();
    },
    // One promise, settled by hand: every call passes here, and a race of promises took several times as long.
    run<T>(call: () => Promise<T>, who?: Holder): Promise<T> {
      return new Promise((resolve, reject) => {
        const place = who && places.take(who);
        waiting.add(reject);
        const end = () => {
          place?.release();
          waiting.delete(reject);
        };
        const fail = (error: unknown) => {
          end();
          if (!isConnectionLost(error)) return reject(error);
          lost();
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
  };
}
