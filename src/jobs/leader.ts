import { randomUUID } from "node:crypto";
import type { Db } from "../db/connect.ts";
import { formatsNumber } from "../db/session-name.ts";
import { every, type Rounds } from "../every.ts";

/** Whether this process leads in something that one replica alone is to do at a time. */
export interface Leadership {
  /** Never true in two processes at once, as long as the database's clock is not set forward. */
  held(): boolean;
  /** Gives it up, so that another need not wait for its end. */
  stop(): Promise<void>;
}

// Clocks differ in their speed, by far less.
const safety = 0.99;

/**
 * Strives for leadership: a row with a lease, kept up while this process lives. Work of a leader that must not overlap
 * with that of the next one belongs into the queue instead, whose claims are fenced. The lease is given and judged by the
 * database's clock alone; this process counts from before it asked, so that its own end comes first.
 */
export function leadership(db: Db, name: string, leaseMs = 10_000): Leadership {
  // With the formats that this process reads: src/db/formats.ts.
  const holder = `${formatsNumber} ${randomUUID()}`;
  let untilMs = 0; // on the clock of performance.now()
  let stopped = false;

  async function strive() {
    const askedMs = performance.now();
    const rows = await db`
      insert into leases as held (name, holder, until_ms)
      select ${name}, ${holder}, clock.ms + ${BigInt(leaseMs)}
      from (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms) as clock
      on conflict (name) do update set holder = excluded.holder, until_ms = excluded.until_ms
      where held.holder = excluded.holder or held.until_ms <= excluded.until_ms - ${BigInt(leaseMs)}
      returning 1`;
    if (rows.count > 0 && !stopped) untilMs = askedMs + leaseMs * safety;
  }

  let striving = strive().catch(() => undefined);
  // Not one after the other: one that waits for a connection that is cut must not cost the lease.
  const strivings = every(leaseMs / 3, () => {
    striving = strive().catch(() => undefined);
  });

  return {
    held: () => performance.now() < untilMs,
    async stop() {
      stopped = true;
      untilMs = 0;
      await strivings.stop();
      await striving;
      // The row stays: it says who led last.
      await db`update leases set until_ms = 0 where name = ${name} and holder = ${holder}`.catch(() => undefined);
    },
  };
}

/** When a leader's work is done, by which process. */
export interface LeaderRounds {
  db: Db;
  /** Of the leadership, unique among all. */
  name: string;
  ms: number;
  /** When it is done first; `ms` when left out. */
  firstMs?: number;
}

/**
 * Does some work again and again where this process leads.
 * @param work gets a function that says whether it may still go on, and asks it between its portions
 */
export function everyAsLeader(
  { db, name, ms, firstMs }: LeaderRounds,
  work: (going: () => boolean) => Promise<void>,
): Rounds {
  const lead = leadership(db, name);
  let stopped = false;
  const going = () => !stopped && lead.held();
  const rounds = every(ms, async () => (going() ? await work(going) : undefined), firstMs);
  return {
    async stop() {
      stopped = true;
      await rounds.stop();
      await lead.stop();
    },
  };
}
