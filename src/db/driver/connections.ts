import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type postgres from "postgres";
import { type Holder, limiter } from "../../limiter.ts";
import { discardPlans } from "../plans.ts";
import { connectionLost } from "./connection-errors.ts";
import { type Client, count, isFatal, type PooledConnection } from "./pooled-connection.ts";
import { forget, fromFirstRow, queryAdapter, type SentQuery, type Settling, type Tagged } from "./query-adapter.ts";
import { transact } from "./transact.ts";

/** A pool's tagged template, which can also begin transactions. */
export interface Connections extends postgres.ISql<{ bigint: bigint }> {
  /** Whether the tables lie distributed over nodes. */
  readonly distributed: boolean;
  /** True if its connections plan every statement without values, so that no transaction has to ask for it. */
  readonly plansWithoutValues: boolean;
  begin<T>(fn: (tx: Tagged) => Promise<T>): Promise<T>;
}

interface Waiter {
  take(slot: PooledConnection): void;
  refuse(error: unknown): void;
  /** Leaves the line. */
  leave?: () => void;
}

const cancelMs = 20;
const lifetimeMs = 30 * 60_000;
// PostgreSQL and the driver keep each for the life of a connection, some 100 KB; searches have endless forms.
const statementsMax = 400;
interface ConnectionsOptions {
  max: number;
  /** Whether the tables lie distributed over nodes; false when left out. */
  distributed?: boolean | undefined;
  /** True if `client` makes connections that plan without values; false when left out. */
  plansWithoutValues?: boolean | undefined;
  /** After this time a connection is replaced by a new one, between statements; 30 to 60 min when left out. */
  lifetimeMs?: number | undefined;
  /** After this time a connection's plans are made again, between statements, as tables are then; never when left out. */
  replanMs?: number | undefined;
  /** False while the database is away: statements then fail at once. */
  allowed(): boolean;
  /** The tenant and key on whose behalf a statement is sent now. */
  asker(): Holder;
  /** Makes a client of one connection that calls `onclose`; without it, one that only makes and cancels queries. */
  client(onclose?: () => void): Client;
  /** A connection has closed, for whatever reason. */
  onclose(): void;
  /** A statement or a transaction has failed. */
  failed?(error: unknown): void;
}

/**
 * Up to `max` connections, made when they are needed. Statements and transactions take turns on them between those for
 * which they are sent; none of these takes all.
 */
export function connections(options: ConnectionsOptions) {
  const slots = new Set<PooledConnection>();
  const idle: PooledConnection[] = [];
  const places = limiter({ max: options.max, waitingMax: Infinity, what: "statements are at the database" });
  const waiting = new Set<Waiter>();
  let ended = false;

  function open(): PooledConnection {
    const client = options.client(() => {
      slot.closed = true;
      slots.delete(slot);
      const i = idle.indexOf(slot);
      if (i >= 0) idle.splice(i, 1);
      slot.fail?.(connectionLost());
      options.onclose();
    });
    // A query that is never sent shows how this client runs one.
    const { handler: run } = client`` as unknown as SentQuery;
    const retireMs = performance.now() + (options.lifetimeMs ?? lifetimeMs * (1 + Math.random()));
    const nothing = {
      closed: false,
      spent: false,
      statements: 0,
      fail: undefined,
      cancelling: undefined,
      place: undefined,
    };
    const slot: PooledConnection = { client, run, retireMs, plannedMs: performance.now(), ...nothing };
    slots.add(slot);
    return slot;
  }

  function acquire(waiter: Waiter): void {
    if (ended || !options.allowed()) {
      waiter.refuse(connectionLost());
      return;
    }
    waiting.add(waiter);
    waiter.leave = places.line(options.asker(), (place) => {
      waiting.delete(waiter);
      if (ended || !options.allowed()) {
        place.release();
        return waiter.refuse(connectionLost());
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
      waiter.refuse(connectionLost());
    }
  }

  async function release(slot: PooledConnection): Promise<void> {
    slot.fail = undefined;
    // Also lets the driver finish what it is doing with the connection.
    await slot.cancelling;
    slot.cancelling = undefined;
    if (slot.closed || slot.spent || slot.statements > statementsMax || performance.now() > slot.retireMs) {
      slots.delete(slot);
      if (!slot.closed) void slot.client.end({ timeout: slot.spent ? 0 : 5 });
    } else {
      replan(slot);
      idle.push(slot);
    }
    slot.place?.release();
  }

  /** Plans that PostgreSQL keeps may be of tables that were empty. Nothing waits: what comes next is sent after it. */
  function replan(slot: PooledConnection) {
    const { replanMs = Number.POSITIVE_INFINITY } = options;
    if (performance.now() < slot.plannedMs + replanMs) return;
    slot.plannedMs = performance.now();
    slot.client
      .unsafe(discardPlans)
      .execute()
      .catch(() => undefined);
  }

  /** A statement of its own: takes a connection for as long as it runs. */
  function single(query: SentQuery, { resolve, reject }: Settling): () => void {
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
        query.resolve = finish((answer) => resolve(fromFirstRow(answer)));
        query.reject = finish((error) => {
          if (isFatal(error)) slot.spent = true;
          options.failed?.(error);
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
      waiter.refuse(connectionLost());
    };
    return () => acquire(waiter);
  }

  const maker = options.client();
  const begin: Connections["begin"] = (fn) =>
    new Promise((resolve, reject) => {
      // Whatever lets it take its turn belongs to another one, on whose behalf `fn` must not run.
      const inside = AsyncLocalStorage.snapshot();
      const take = (slot: PooledConnection) =>
        void inside(() => transact(slot, fn))
          .finally(() => void release(slot))
          .then(resolve, (error) => {
            options.failed?.(error);
            reject(error);
          });
      acquire({ take, refuse: reject });
    });

  return {
    sql: Object.assign(queryAdapter(maker, single), {
      begin,
      distributed: options.distributed ?? false,
      plansWithoutValues: options.plansWithoutValues ?? false,
    }) as Connections,
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
