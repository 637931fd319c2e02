import type { Db } from "../../db/connect.ts";
import { withHolder } from "../../db/request-scope.ts";
import { type DueDelivery, renewLeases } from "./delivery-queue.ts";

/** The hold on deliveries of one try. */
export interface Lease {
  /** Aborts when they are another's, or no more are to be sent. */
  readonly signal: AbortSignal;
  /** Whether no other server can have claimed them yet. */
  held(): boolean;
}

/** What this process holds. */
export interface Leases {
  /** Holds deliveries that were claimed after `startMs`, on the clock of performance.now(). */
  begin(tenantId: string, rows: readonly DueDelivery[], startMs: number): Lease;
  /** Lets go of deliveries that are recorded. */
  end(rows: readonly DueDelivery[]): void;
  /** Aborts all tries. */
  abort(): void;
  stop(): void;
}

interface Held {
  row: DueDelivery;
  tenantId: string;
  untilMs: number;
  tries: AbortController;
}

// Clocks differ in their speed, by far less.
const safety = 0.95;

/** Renews leases for as long as their tries take, a third of their time before they end at the latest. */
export function deliveryLeases(db: Db, { leaseMs, nowMs }: { leaseMs: number; nowMs(): number }): Leases {
  const all = new Map<string, Held>();

  async function renew(tenantId: string, own: readonly Held[]): Promise<void> {
    const startMs = performance.now();
    const rows = own.map(({ row }) => row);
    const kept = await withHolder({ tenant: tenantId }, () =>
      renewLeases(db, tenantId, rows, { nowMs: nowMs(), leaseMs }),
    );
    for (const each of own) {
      if (kept.has(each.row.id)) each.untilMs = startMs + leaseMs * safety;
      else if (all.get(each.row.id) === each) each.tries.abort();
    }
  }

  const timer = setInterval(() => {
    // What was claimed just now can wait for the next time.
    const old = [...all.values()].filter(({ untilMs }) => untilMs - performance.now() < leaseMs * (2 / 3));
    for (const [tenantId, own] of Map.groupBy(old, (each) => each.tenantId)) {
      renew(tenantId, own).catch(() => undefined); // the database is away: the leases run out, and others claim
    }
  }, leaseMs / 4).unref();

  return {
    begin(tenantId, rows, startMs) {
      const tries = new AbortController();
      const own = rows.map((row): Held => ({ row, tenantId, untilMs: startMs + leaseMs * safety, tries }));
      for (const each of own) all.set(each.row.id, each);
      return { signal: tries.signal, held: () => own.every(({ untilMs }) => performance.now() < untilMs) };
    },
    end(rows) {
      for (const row of rows) if (all.get(row.id)?.row === row) all.delete(row.id);
    },
    abort() {
      for (const { tries } of all.values()) tries.abort();
    },
    stop: () => clearInterval(timer),
  };
}
