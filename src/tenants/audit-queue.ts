import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import type { Pool } from "../db/connect.ts";
import { isLost } from "../db/driver/lost.ts";
import type { RecordAudit } from "../rpc/audit.ts";
import type { Log } from "../rpc/log.ts";
import { insertAuditRows, type TimedAuditRow } from "./audit.ts";

/** Writes the rows of calls that were refused or have failed, after their answer is known. */
export interface AuditQueue {
  record: RecordAudit;
  /** Resolves when all that was recorded is written, at the latest after half a second. */
  settled(): Promise<void>;
  /** Writes what waits, for at most a second. */
  stop(): Promise<void>;
}

interface Waiting extends TimedAuditRow {
  tenantId: string;
}

const rowsMax = 10_000;
const answerWaitMs = 50;
const settleWaitMs = 500;
const stopWaitMs = 1000;
const retryMs = 250;

/**
 * A queue in memory: rows that come while others are being written go together. While the database is away they wait;
 * what finds no room, or is left at the end, goes to the log whole.
 */
export function auditQueue({ sql, gate }: Pick<Pool, "sql" | "gate">, nowMs: () => number, log: Log): AuditQueue {
  let waiting: Waiting[] = [];
  let flushing: Promise<void> | undefined;
  let stopped = false;

  const lose = (rows: readonly Waiting[]) => {
    for (const row of rows) log.error({ audit: row }, "an audit row was not written");
  };

  async function write(rows: readonly Waiting[]): Promise<void> {
    const byTenant = Map.groupBy(rows, ({ tenantId }) => tenantId);
    for (const [tenantId, own] of byTenant) await insertAuditRows(sql, tenantId, own);
  }

  async function flush() {
    while (waiting.length > 0) {
      const rows = waiting;
      waiting = [];
      try {
        await gate.run(() => write(rows));
      } catch (error) {
        const later = !stopped && (error instanceof ConnectError || isLost(error));
        if (later) {
          waiting = rows.concat(waiting);
          await sleep(retryMs, undefined, { ref: false });
        } else lose(rows);
      }
    }
  }

  function written(): Promise<void> {
    flushing ??= flush().finally(() => {
      flushing = undefined;
    });
    return flushing;
  }

  return {
    async record({ principal, ...row }) {
      const actor = { id: principal.clientId, name: principal.clientName };
      const entry = { ...row, actor, tenantId: principal.tenantId, id: randomUUIDv7(), timeMs: nowMs() };
      if (stopped || waiting.length >= rowsMax) return lose([entry]);
      waiting.push(entry);
      const done = written();
      if (gate.open) await within(done, answerWaitMs);
    },
    settled: () => within(flushing, settleWaitMs),
    async stop() {
      await within(flushing, stopWaitMs);
      stopped = true;
      lose(waiting.splice(0));
    },
  };
}

async function within(done: Promise<void> | undefined, ms: number): Promise<void> {
  if (done === undefined) return;
  const end = new AbortController();
  await Promise.race([done, sleep(ms, undefined, { signal: end.signal }).catch(() => {})]);
  end.abort();
}
