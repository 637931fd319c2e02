import { setTimeout as sleep } from "node:timers/promises";
import type postgres from "postgres";
import { lost } from "./lost.ts";

type Types = { bigint: bigint };
type Client = postgres.Sql<Types>;
type Tagged = postgres.ISql<Types>;

/** A pool's tagged template, which can also begin transactions. */
export interface Connections extends postgres.ISql<Types> {
  begin<T>(fn: (tx: Tagged) => Promise<T>): Promise<T>;
}

/** The parts of the driver's query that are used here (3.4.9, pinned; test/db/connections.test.ts watches). */
interface Query {
  options: { onexecute?: () => unknown };
  handler: (query: Query) => void;
  resolve: (answer: unknown) => void;
  reject: (error: unknown) => void;
  canceller: ((query: Query) => Promise<void>) | null;
  active: boolean;
  /** Once it is sent: whether the connection keeps it prepared, and whether it did so before. */
  prepare?: boolean;
  prepared?: boolean;
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
}

interface Waiter {
  take(slot: Slot): void;
  refuse(error: unknown): void;
}

const cancelMs = 20;
const lifetimeMs = 30 * 60_000;
// PostgreSQL and the driver keep each for the life of a connection, some 100 KB; searches have endless forms.
const statementsMax = 400;
/** PostgreSQL's last word on a connection, which closes a moment later. */
const isFatal = (error: unknown) =>
  ["FATAL", "PANIC"].includes((error as { severity?: string } | null)?.severity ?? "");
const isQuery = (value: unknown): value is Query => value instanceof Promise;

function tagged(inner: Tagged, wrap: (query: Query) => Query): Tagged {
  const call = inner as unknown as (...args: unknown[]) => unknown;
  const unsafe = inner.unsafe as unknown as (...args: unknown[]) => Query;
  const outer = (...args: unknown[]) => {
    const made = call(...args);
    return isQuery(made) ? wrap(made) : made;
  };
  const { typed, types, array } = inner;
  return Object.assign(outer, {
    typed,
    types,
    array,
    unsafe: (...args: unknown[]) => wrap(unsafe(...args)),
    json: (value: unknown) => typed(JSON.stringify(value) as never, 3802),
  }) as unknown as Tagged;
}

/** Stops a statement, and resolves when PostgreSQL has been told. Never rejects. */
export async function cancelQuery(pending: object): Promise<void> {
  const query = pending as Query;
  const { canceller } = query;
  query.canceller = null;
  await canceller?.(query).catch(() => undefined);
}

interface ConnectionsOptions {
  max: number;
  /** False while the database is away: statements then fail at once. */
  allowed(): boolean;
  /** Makes a client of one connection that calls `onclose`; without it, one that only makes and cancels queries. */
  client(onclose?: () => void): Client;
  /** A connection has closed, for whatever reason. */
  onclose(): void;
}

/** Up to `max` connections, made when they are needed; statements and transactions take turns on them, first come first served. */
export function connections(options: ConnectionsOptions) {
  const slots = new Set<Slot>();
  const idle: Slot[] = [];
  const waiting: Waiter[] = [];
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
    const retireMs = performance.now() + lifetimeMs * (1 + Math.random());
    const nothing = { closed: false, spent: false, statements: 0, fail: undefined, cancelling: undefined };
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
    const slot = idle.pop() ?? (slots.size < options.max ? open() : undefined);
    if (slot === undefined) waiting.push(waiter);
    else waiter.take(slot);
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
    const next = waiting.shift();
    if (next) acquire(next);
  }

  /** A statement of its own: takes a connection for as long as it runs. */
  function single(query: Query): Query {
    const { resolve, reject, canceller } = query;
    const waiter: Waiter = {
      refuse: reject,
      take(slot) {
        let done = false;
        const ended = Promise.withResolvers<void>();
        const finish = (settle: (value: unknown) => void) => (value: unknown) => {
          settle(value);
          if (done) return;
          done = true;
          ended.resolve();
          count(slot, query);
          void release(slot);
        };
        query.resolve = finish(resolve);
        query.reject = finish((error) => {
          if (isFatal(error)) slot.spent = true;
          reject(error);
        });
        slot.fail = query.reject;
        query.canceller = async () => {
          // Most statements end sooner than a cancellation, for which PostgreSQL starts a process, would reach them.
          await Promise.race([ended.promise, sleep(cancelMs)]);
          if (done) return;
          const { active } = query;
          slot.cancelling = canceller?.(query).catch(() => undefined);
          // One that waits for its connection to be made leaves it unusable.
          if (!active) slot.spent = true;
          await slot.cancelling;
        };
        slot.run(query);
      },
    };
    query.handler = () => acquire(waiter);
    query.canceller = async () => {
      const i = waiting.indexOf(waiter);
      if (i >= 0) waiting.splice(i, 1);
      reject(lost());
    };
    return query;
  }

  /** A statement within a transaction: nothing may reach the driver once the connection is gone. */
  function joined(query: Query, slot: Slot): Query {
    const { handler, canceller } = query;
    query.handler = () => {
      if (slot.closed) return query.reject(lost());
      handler(query);
      count(slot, query);
    };
    // Statements are sent one behind the other, and the driver mixes up their answers when one of them is cancelled:
    // a cancelled one takes the whole transaction with it.
    query.canceller = async () => {
      slot.spent = true;
      slot.fail?.(Object.assign(new Error("canceling statement of a transaction"), { code: "57014" }));
      if (query.active) slot.cancelling = canceller?.(query).catch(() => undefined);
      await slot.cancelling;
    };
    return query;
  }

  async function transact<T>(slot: Slot, fn: (tx: Tagged) => Promise<T>): Promise<T> {
    const { promise: gone, reject } = Promise.withResolvers<never>();
    gone.catch(() => undefined);
    let failed = false;
    slot.fail = (error) => {
      failed = true;
      reject(error);
    };
    let thrown: unknown;
    try {
      const work = slot.client.begin(async (tx) => {
        try {
          return await fn(tagged(tx, (query) => joined(query, slot)));
        } catch (error) {
          thrown = error;
          throw error;
        } finally {
          // The driver would now send commit or rollback: not on a closed connection, nor after answers that may be mixed up.
          if (failed || slot.closed) await new Promise(() => undefined);
        }
      });
      return (await Promise.race([work, gone])) as T;
    } catch (error) {
      // The rollback has failed.
      if ((thrown !== undefined && error !== thrown) || isFatal(error)) slot.spent = true;
      throw error;
    } finally {
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
    /** Fails everything that waits for a connection. */
    refuse() {
      for (const waiter of waiting.splice(0)) waiter.refuse(lost());
    },
    /** Fails what waits, gives what runs `timeoutSec`, and closes. */
    async end(timeoutSec: number) {
      ended = true;
      for (const waiter of waiting.splice(0)) waiter.refuse(lost());
      await Promise.all([...slots].map(({ client }) => client.end({ timeout: timeoutSec })));
    },
  };
}
