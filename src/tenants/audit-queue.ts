import { randomUUIDv7 } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import type { Db, Pool } from "../db/connect.ts";
import { isConnectionLost } from "../db/driver/connection-errors.ts";
import type { Rounds } from "../every.ts";
import { tenantRounds } from "../jobs/tenant-rounds.ts";
import { type LimiterShare, limiter } from "../limiter.ts";
import type { Log } from "../log.ts";
import type { RecordAudit } from "../rpc/audit.ts";
import { insertAuditRows, type TimedAuditRow } from "./audit.ts";
import { tenantIds } from "./tenant.ts";

/** Writes the rows of calls that were refused or have failed, after their answer is known. */
export interface AuditQueue {
  record: RecordAudit;
  /** Resolves when all that was recorded of a tenant is written, at the latest after half a second. */
  settled(tenantId: string): Promise<void>;
  /** Rows that wait, and how many went to the log instead since the start. */
  stats(): { waiting: number; lost: number };
  /** Writes what waits, for at most a second. */
  stop(): Promise<void>;
}

interface Waiting {
  row: TimedAuditRow;
  place: LimiterShare;
}

/** The rows of one tenant that wait, and their writing while it goes on. */
interface Lane {
  rows: Waiting[];
  writing: Promise<void>;
}

const rowsMax = 10_000;
const rowsAtOnceMax = 500;
const writesMax = 2;
const settleWaitMs = 500;
const stopWaitMs = 1000;
const retryMs = 250;

/**
 * A queue in memory, tenant by tenant: rows that come while others of their tenant are being written go together. While
 * the database is unavailable they wait; rows beyond the bound, rows that cannot be written and rows left at the end are
 * written to the log.
 */
export function auditQueue(
  { sql, gate, background }: Pick<Pool, "sql" | "gate" | "background">,
  nowMs: () => number,
  log: Log,
  keepSec = 0,
): AuditQueue {
  const retention = auditRetention(background, keepSec, nowMs, log);
  const lanes = new Map<string, Lane>();
  const places = limiter({ max: rowsMax, what: "audit rows wait" });
  const writes = limiter({ max: writesMax, waitingMax: rowsMax, what: "audit rows are being written", shares: {} });
  const { write, lose, lost } = auditWriter({ sql, gate }, log);
  let stopped = false;

  async function flush(tenantId: string, lane: Lane) {
    while (lane.rows.length > 0) {
      const turn = await writes.turn({ tenant: tenantId });
      const some = lane.rows.splice(0, rowsAtOnceMax);
      const rows = some.map(({ row }) => row);
      try {
        await write(tenantId, rows);
        for (const { place } of some) place.release();
      } catch (error) {
        if (stopped) lose(tenantId, rows, error);
        else {
          // Rows that were written before the connection went are known by their ids.
          lane.rows.unshift(...some);
          await sleep(retryMs, undefined, { ref: false });
        }
      } finally {
        turn.release();
      }
    }
    lanes.delete(tenantId);
  }

  function queue(tenantId: string, waiting: Waiting): void {
    const known = lanes.get(tenantId);
    if (known !== undefined) return void known.rows.push(waiting);
    const lane: Lane = { rows: [waiting], writing: Promise.resolve() };
    lanes.set(tenantId, lane);
    lane.writing = flush(tenantId, lane);
  }

  return {
    record({ principal: { tenantId, keyId, clientId, clientName, keyPrefix, sessionId }, ...event }) {
      const actor = { id: clientId, name: clientName };
      const row = { ...event, actor, keyPrefix, sessionId, id: randomUUIDv7(), timeMs: nowMs() };
      let place: LimiterShare;
      try {
        if (stopped) return lose(tenantId, [row]);
        place = places.take({ tenant: tenantId, key: keyId });
      } catch {
        return lose(tenantId, [row]);
      }
      queue(tenantId, { row, place });
    },
    stats: () => ({ waiting: places.used, lost: lost() }),
    settled: async (tenantId) => await within(lanes.get(tenantId)?.writing ?? Promise.resolve(), settleWaitMs),
    async stop() {
      await retention.stop();
      await within(Promise.all([...lanes.values()].map(({ writing }) => writing)), stopWaitMs);
      stopped = true;
      for (const [tenantId, { rows }] of lanes) {
        lose(
          tenantId,
          rows.splice(0).map(({ row }) => row),
        );
      }
    },
  };
}

/** Writes rows to the table or, where that is not possible, to the log. */
function auditWriter({ sql, gate }: Pick<Pool, "sql" | "gate">, log: Log) {
  let lost = 0;

  function lose(tenantId: string, rows: readonly TimedAuditRow[], cause?: unknown) {
    lost += rows.length;
    const reason = cause instanceof Error && { cause: cause.message };
    for (const row of rows) log.error({ audit: { tenantId, ...row }, ...reason }, "an audit row was not written");
  }

  /** Rows that the database refuses go to the log; texts of calls are made storable where rows are made. */
  async function write(tenantId: string, rows: readonly TimedAuditRow[]): Promise<void> {
    try {
      await gate.run(() => insertAuditRows(sql, tenantId, rows));
    } catch (error) {
      if (error instanceof ConnectError || isConnectionLost(error)) throw error;
      lose(tenantId, rows, error);
    }
  }

  return { write, lose, lost: () => lost };
}

async function within(done: Promise<unknown>, ms: number): Promise<void> {
  const end = new AbortController();
  await Promise.race([done, sleep(ms, undefined, { signal: end.signal }).catch(() => {})]);
  end.abort();
}

const lookMs = 3_600_000;
/** Rows a statement: some milliseconds. */
const portion = 1000;

/** Removes rows of a tenant's audit log from before this time, the oldest first, at most a portion; returns how many went. */
export async function dropAuditRows(db: Db, tenantId: string, beforeMs: number): Promise<number> {
  const gone = await db`
    delete from audit_entries where tenant_id = ${tenantId} and (time_ms, id) in (
      select time_ms, id from audit_entries
      where tenant_id = ${tenantId} and time_ms < ${BigInt(Math.floor(beforeMs))}
      order by time_ms, id limit ${portion}
    )`;
  return gone.count;
}

/**
 * Removes what is older than `keepSec` from the audit log of all tenants once an hour, where this process leads;
 * 0 keeps it for ever.
 */
export function auditRetention(db: Db, keepSec: number, nowMs: () => number, log: Pick<Log, "warn">): Rounds {
  if (keepSec === 0) return { stop: () => Promise.resolve() };
  return tenantRounds({
    db,
    name: "audit.retention",
    ms: lookMs,
    firstMs: 5000,
    tenantIds: () => tenantIds(db),
    portion: async (id) => (await dropAuditRows(db, id, nowMs() - keepSec * 1000)) === portion,
    log,
    failed: "old rows of the audit log were not removed",
  });
}
