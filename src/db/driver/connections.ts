import { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type postgres from "postgres";
import { type Hold, type Holder, limiter } from "../../limiter.ts";
import { lost } from "./lost.ts";
import { type Answer, forget, type Query, type Tagged, tagged } from "./tagged.ts";

type Types = { bigint: bigint };
type Client = postgres.Sql<Types>;

/** A pool's tagged template, which can also begin transactions. */
export interface Connections extends postgres.ISql<Types> {
  begin<T>(fn: (tx: Tagged) => Promise<T>): Promise<T>;
}

/**
 * One connection: a client of the driver that may have no second one. The driver's own pool is not used, because what
 * it does when a connection breaks cannot be lived with: it writes to a socket that is null, outside of any promise, so
 * that the process dies; it goes on with connections that never send again; it hands the answers of a cancelled
 * statement to the next one. A client whose connection has closed is thrown away here.
 */
interface Slot {
  client: Client;
  /** The driver's own way to run a query on this client. */
  run: (query: Query) => void;
  closed: boolean;
  /** Not to be used again, although it is open. */
  spent: boolean;
  retireMs: number;
  /** How many statements it has prepared. */
  statements: number;
  /** Fails what runs there now. */
  fail: ((error: unknown) => void) | undefined;
  /** Cancellations under way, which would hit the next statement. */
  cancelling: Promise<unknown> | undefined;
  /** The place among all that what runs there takes. */
  place: Hold | undefined;
}

interface Waiter {
  take(slot: Slot): void;
  refuse(error: unknown): void;
  /** Leaves the line. */
  leave?: () => void;
}

const cancelMs = 20;
const lifetimeMs = 30 * 60_000;
// PostgreSQL and the driver keep each for the life of a connection, some 100 KB; searches have endless forms.
const statementsMax = 400;
/** PostgreSQL's last word on a connection, which closes a moment later. */
const isFatal = (error: unknown) =>
  ["FATAL", "PANIC"].includes((error as { severity?: string } | null)?.severity ?? "");

interface ConnectionsOptions {
  max: number;
  /** After this time a connection is replaced by a new one, between statements; 30 to 60 min when left out. */
  lifetimeMs?: number | undefined;
  /** False while the database is away: statements then fail at once. */
  allowed(): boolean;
  /** The tenant and key on whose behalf a statement is sent now. */
  asker(): Holder;
  /** Makes a client of one connection that calls `onclose`; without it, one that only makes and cancels queries. */
  client(onclose?: () => void): Client;
  /** A connection has closed, for whatever reason. */
  onclose(): void;
}

/**
 * Up to `max` connections, made when they are needed. Statements and transactions take turns on them between those for
 * which they are sent; none of these takes all.
 */
export function connections(options: ConnectionsOptions) {
  const slots = new Set<Slot>();
  const idle: Slot[] = [];
  const places = limiter({ max: options.max, waitingMax: Infinity, what: "statements are at the database" });
  const waiting = new Set<Waiter>();
  let ended = false;

  function open(): Slot {
    const client = options.client(() => {
      slot.closed = true;
      slots.delete(slot);
      const i = idle.indexOf(slot);
      if (i >= 0) idle.splice(i, 1);
      slot.fail?.(lost());
      options.onclose();
    });
    // A query that is never sent tells how this client runs one.
    const { handler: run } = client`` as unknown as Query;
    const retireMs = performance.now() + (options.lifetimeMs ?? lifetimeMs * (1 + Math.random()));
    const nothing = {
      closed: false,
      spent: false,
      statements: 0,
      fail: undefined,
      cancelling: undefined,
      place: undefined,
    };
    const slot: Slot = { client, run, retireMs, ...nothing };
    slots.add(slot);
    return slot;
  }

  function count(slot: Slot, { prepare, prepared }: Query): void {
    if (prepare && !prepared) slot.statements += 1;
  }

  function acquire(waiter: Waiter): void {
    if (ended || !options.allowed()) {
      waiter.refuse(lost());
      return;
    }
    waiting.add(waiter);
    waiter.leave = places.line(options.asker(), (place) => {
      waiting.delete(waiter);
      if (ended || !options.allowed()) {
        place.release();
        return waiter.refuse(lost());
      }
      const slot = idle.pop() ?? open();
      slot.place = place;
      waiter.take(slot);
    });
  }

  function refuseAll() {
    for (const waiter of waiting) {
      waiting.delete(waiter);
      waiter.leave?.();
      waiter.refuse(lost());
    }
  }

  async function release(slot: Slot): Promise<void> {
    slot.fail = undefined;
    // Also lets the driver finish what it is doing with the connection.
    await slot.cancelling;
    slot.cancelling = undefined;
    if (slot.closed || slot.spent || slot.statements > statementsMax || performance.now() > slot.retireMs) {
      slots.delete(slot);
      if (!slot.closed) void slot.client.end({ timeout: slot.spent ? 0 : 5 });
    } else {
      idle.push(slot);
    }
    slot.place?.release();
  }

  /** A statement of its own: takes a connection for as long as it runs. */
  function single(query: Query, { resolve, reject }: Answer): () => void {
    const { canceller } = query;
    const waiter: Waiter = {
      refuse(error) {
        forget(query);
        reject(error);
      },
      take(slot) {
        let done = false;
        const ended = Promise.withResolvers<void>();
        const finish = (settle: (value: unknown) => void) => (value: unknown) => {
          if (done) return;
          done = true;
          count(slot, query);
          forget(query);
          settle(value);
          ended.resolve();
          void release(slot);
        };
        query.resolve = finish(resolve);
        query.reject = finish((error) => {
          if (isFatal(error)) slot.spent = true;
          reject(error);
        });
        slot.fail = query.reject;
        const cancel = async () => {
          // Most statements end sooner than a cancellation, for which PostgreSQL starts a process, would reach them.
          await Promise.race([ended.promise, sleep(cancelMs)]);
          if (done) return;
          const { active } = query;
          slot.cancelling = canceller?.(query).catch(() => undefined);
          // One that waits for its connection to be made leaves it unusable.
          if (!active) slot.spent = true;
          await slot.cancelling;
        };
        query.canceller = cancel;
        slot.run(query);
      },
    };
    query.canceller = async () => {
      waiting.delete(waiter);
      waiter.leave?.();
      waiter.refuse(lost());
    };
    return () => acquire(waiter);
  }

  /** A statement within a transaction: nothing may reach the driver once the connection is gone. */
  function joined(query: Query, slot: Slot, { resolve, reject }: Answer): () => void {
    const { handler, canceller } = query;
    const succeed = (value: unknown) => {
      forget(query);
      // What a copy fails with at its end the driver tells its statement alone, which was answered when the copy began.
      if (value instanceof Writable) query.reject = (error) => void value.destroy(error as Error);
      resolve(value);
    };
    const failed = (error: unknown) => {
      forget(query);
      reject(error);
    };
    // Statements are sent one behind the other, and the driver mixes up their answers when one of them is cancelled:
    // a cancelled one takes the whole transaction with it.
    const cancel = async () => {
      slot.spent = true;
      slot.fail?.(Object.assign(new Error("canceling statement of a transaction"), { code: "57014" }));
      if (query.active) slot.cancelling = canceller?.(query).catch(() => undefined);
      await slot.cancelling;
    };
    query.resolve = succeed;
    query.reject = failed;
    query.canceller = cancel;
    return () => {
      if (slot.closed) return reject(lost());
      handler(query);
      count(slot, query);
    };
  }

  /** `begin` goes with the first statement and `commit` with those that `fn` has sent and not waited for: no turn of the wire is theirs. */
  async function transact<T>(slot: Slot, fn: (tx: Tagged) => Promise<T>): Promise<T> {
    const { promise: gone, reject } = Promise.withResolvers<never>();
    gone.catch(() => undefined);
    let over = false;
    slot.fail = (error) => {
      over = true;
      reject(error);
    };
    /** What the first statement failed with: PostgreSQL only says of the later ones that the transaction is aborted. */
    let failed: { error: unknown } | undefined;
    const noted = ({ resolve, reject: tell }: Answer): Answer => ({
      resolve,
      reject(error) {
        failed ??= { error };
        tell(error);
      },
    });
    const tx = tagged(slot.client, (query, answer) => {
      if (over) return () => answer.reject(lost("the transaction has ended"));
      return joined(query, slot, noted(answer));
    });
    async function work(): Promise<T> {
      tx`begin`.catch(() => undefined); // what follows fails as well
      let value: T;
      try {
        value = await fn(tx);
      } catch (error) {
        // Nothing may be sent after answers that may be mixed up.
        if (!over) {
          await tx`rollback`.catch(() => {
            slot.spent = true;
          });
        }
        throw error;
      }
      const { command } = await tx`commit`;
      if (command !== "COMMIT") throw failed?.error ?? lost("the transaction was not committed");
      return value;
    }
    const worked = work();
    worked.catch(() => undefined);
    try {
      return await Promise.race([worked, gone]);
    } catch (error) {
      if (isFatal(error) || isFatal(failed?.error)) slot.spent = true;
      throw error;
    } finally {
      over = true;
      void release(slot);
    }
  }

  const maker = options.client();
  const begin: Connections["begin"] = (fn) =>
    new Promise((resolve, reject) => {
      const take = (slot: Slot) => void transact(slot, fn).then(resolve, reject);
      acquire({ take, refuse: reject });
    });

  return {
    sql: Object.assign(tagged(maker, single), { begin }) as Connections,
    stats: () => ({ open: slots.size, busy: places.used, waiting: waiting.size }),
    /** Fails everything that waits for a connection. */
    refuse: refuseAll,
    /** Fails what waits, gives what runs `timeoutSec`, and closes. */
    async end(timeoutSec: number) {
      ended = true;
      refuseAll();
      await Promise.all([...slots].map(({ client }) => client.end({ timeout: timeoutSec })));
    },
  };
}
