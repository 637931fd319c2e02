import { randomUUID } from "node:crypto";
import type { Db } from "../db/connect.ts";

/** Whether this process leads in something that one replica alone is to do at a time. */
export interface Leadership {
  /** Exact to the clock of the database: never true in two processes at once. */
  held(): boolean;
  /** Gives it up, so that another need not wait for its end. */
  stop(): Promise<void>;
}

/**
 * Strives for leadership: a row with a lease, kept up while this process lives. Work of a leader that must not overlap
 * with that of the next one belongs into the queue instead, whose claims are fenced.
 */
export function leadership(db: Db, name: string, nowMs: () => number, leaseMs = 10_000): Leadership {
  const holder = randomUUID();
  let untilMs = 0;
  let stopped = false;

  async function strive() {
    const now = nowMs();
    const until = now + leaseMs;
    const rows = await db`
      insert into leases as held (name, holder, until_ms) values (${name}, ${holder}, ${BigInt(until)})
      on conflict (name) do update set holder = excluded.holder, until_ms = excluded.until_ms
      where held.holder = excluded.holder or held.until_ms <= ${BigInt(now)}
      returning 1`;
    if (rows.count > 0 && !stopped) untilMs = until;
  }

  let striving = strive().catch(() => undefined);
  const timer = setInterval(() => {
    striving = strive().catch(() => undefined);
  }, leaseMs / 3).unref();

  return {
    held: () => nowMs() < untilMs,
    async stop() {
      stopped = true;
      untilMs = 0;
      clearInterval(timer);
      await striving;
      await db`delete from leases where name = ${name} and holder = ${holder}`.catch(() => undefined);
    },
  };
}
