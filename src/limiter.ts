import { exhausted } from "./errors.ts";
import { fairQueue } from "./fair-queue.ts";

/** The holder whose use is counted. An absent part has no share of its own; the bound for all always holds. */
export interface Holder {
  readonly tenant?: string;
  /** An API key, by its id. */
  readonly key?: string;
  /** A network address. */
  readonly address?: string;
  /** One connection of a client. */
  readonly connection?: string;
}

/** A part of something bounded that is in use. */
export interface LimiterShare {
  /** How much it is now. A function: a getter would make a shape of its own of each hold, and several are made a request. */
  amount(): number;
  /** Uses more of it. @throws code 8 when there is no room; what it had stays */
  more(amount: number): void;
  /** Gives so much of it back, or all. May be repeated. */
  release(amount?: number): void;
}

/** One bound for all, with shares beneath it: one holder alone leaves room for others. */
export interface Limiter {
  /** Whether `take` would find room for one more. */
  fits(who: Holder): boolean;
  /** @throws code 8 when `take` would */
  check(who: Holder, amount?: number): void;
  /** Uses some of it at once. @throws code 8 when there is no room, in all or in a share of the holder's */
  take(who: Holder, amount?: number): LimiterShare;
  /**
   * Uses 1 as soon as there is room. Those that wait take turns: tenant by tenant, within one key by key (without a key,
   * address by address), within one in the order of their arrival. @throws code 8 when too many wait; the signal's reason
   */
  turn(who: Holder, signal?: AbortSignal): Promise<LimiterShare>;
  /** Does work in its turn. @throws what `turn` or the work throws */
  run<T>(who: Holder, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** The same as `turn` without a promise: calls `start`, at once when there is room. Returns what gives up a place in the line. */
  line(who: Holder, start: (hold: LimiterShare) => void): () => void;
  /** How much is used. */
  readonly used: number;
  /** How many wait for their turn. */
  readonly waiting: number;
}

type Share = keyof Holder;

interface LimiterOptions {
  /** How much there is for all. What alone is larger is let in while nothing else is used. */
  max: number;
  /** What there is too much of, to be read after "too many": "request bodies are held". */
  what: string;
  /** How many may wait for their turn; the same shares hold for them. */
  waitingMax?: number;
  /** Seconds after which one that was refused may try again. */
  retrySec?: number;
  /**
   * How many times as much as is still free each may use. At 8 a tenant alone uses up to 8/9 of all, two of them 8/17
   * each: so there is always a part left for the next one. What is absent has no share.
   */
  shares?: Readonly<Partial<Record<Share, number>>>;
}

const usualShares: Readonly<Partial<Record<Share, number>>> = { tenant: 8, key: 4, address: 4 };
const sharesByName: readonly Share[] = ["tenant", "key", "address", "connection"];
const names = {
  tenant: "of this tenant",
  key: "of this API key",
  address: "from this address",
  connection: "on this connection",
};

interface Waiter {
  start(hold: LimiterShare): void;
  who: Holder;
}

/** Makes a limiter. It remembers only the holders that use something, or wait, now. */
export function limiter(options: LimiterOptions): Limiter {
  const { max, what, waitingMax = 0, retrySec = 1, shares = usualShares } = options;
  const usedBy = {
    tenant: new Map<string, number>(),
    key: new Map<string, number>(),
    address: new Map<string, number>(),
    connection: new Map<string, number>(),
  };
  const room: Limiter | undefined =
    waitingMax > 0 ? limiter({ max: waitingMax, what: `${what} and wait`, retrySec }) : undefined;
  const waiting = fairQueue<Waiter>();
  let used = 0;

  /** Why there is no room for so much more; undefined when there is. `own`: what the same hold has already. */
  function full(who: Holder, amount: number, own = 0): string | undefined {
    if (used === own) return undefined;
    if (used + amount > max) return "";
    const free = max - used - amount;
    for (const share of sharesByName) {
      const id = who[share];
      const times = shares[share];
      if (id === undefined || times === undefined) continue;
      // The first 1 is free, so that the last of a few places is for a holder that has none.
      if ((usedBy[share].get(id) ?? 0) + amount - 1 > times * free) return ` ${names[share]}`;
    }
    return undefined;
  }

  function count(who: Holder, amount: number) {
    used += amount;
    for (const share of sharesByName) {
      const id = who[share];
      if (id === undefined) continue;
      const now = (usedBy[share].get(id) ?? 0) + amount;
      if (now > 0) usedBy[share].set(id, now);
      else usedBy[share].delete(id);
    }
  }

  const refuse = (reason: string) => exhausted(`too many ${what}${reason}; send the request again`, retrySec);

  function hold(who: Holder, first: number): LimiterShare {
    let amount = first;
    count(who, first);
    return {
      amount: () => amount,
      more(added) {
        const reason = full(who, added, amount);
        if (reason !== undefined) throw refuse(reason);
        amount += added;
        count(who, added);
      },
      release(some = amount) {
        const freed = Math.min(some, amount);
        if (freed <= 0) return;
        amount -= freed;
        count(who, -freed);
        serve();
      },
    };
  }

  /** Lets in what has its turn. Afterwards nothing waits for which there is room. */
  function serve() {
    while (used < max) {
      const next = waiting.next(({ who }) => full(who, 1) === undefined);
      if (next === undefined) return;
      next.start(hold(next.who, 1));
    }
  }

  function check(who: Holder, amount = 1) {
    const reason = full(who, amount);
    if (reason !== undefined) throw refuse(reason);
  }

  function line(who: Holder, start: (hold: LimiterShare) => void): () => void {
    const reason = full(who, 1);
    if (reason === undefined) {
      start(hold(who, 1));
      return () => {};
    }
    if (room === undefined) throw refuse(reason);
    const place = room.take(who);
    const waiter: Waiter = {
      who,
      start(hold) {
        place.release();
        start(hold);
      },
    };
    const keys = [who.tenant, who.key ?? who.address];
    waiting.add(keys, waiter);
    return () => {
      waiting.remove(keys, waiter);
      place.release();
    };
  }

  async function turn(who: Holder, signal?: AbortSignal): Promise<LimiterShare> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<LimiterShare>();
    const leave = line(who, resolve);
    const cancel = () => {
      leave();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const turn = await promise;
      if (!signal?.aborted) return turn;
      turn.release();
      throw signal.reason;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
  }

  return {
    fits: (who) => full(who, 1) === undefined,
    check,
    take(who, amount = 1) {
      check(who, amount);
      return hold(who, amount);
    },
    line,
    turn,
    async run(who, work, signal) {
      signal?.throwIfAborted();
      const place = full(who, 1) === undefined ? hold(who, 1) : await turn(who, signal);
      try {
        return await work();
      } finally {
        place.release();
      }
    },
    get used() {
      return used;
    },
    get waiting() {
      return room?.used ?? 0;
    },
  };
}

/** The network that counts as one address: the address itself for IPv4, its /64 for IPv6. */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped !== null) return mapped[1] as string;
  if (!address.includes(":")) return address;
  const [head = "", tail] = (address.split("%", 1)[0] as string).split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? [] : tail.split(":");
    while (groups.length + after.length < 8) groups.push("0");
    groups.push(...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
