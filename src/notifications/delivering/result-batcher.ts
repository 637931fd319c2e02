import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, Sql } from "../../db/connect.ts";
import { isConnectionLost } from "../../db/driver/connection-errors.ts";
import { withHolder } from "../../db/request-scope.ts";
import { failpoint } from "../../failpoint.ts";
import type { Log } from "../../log.ts";
import type { Result } from "./classify-response.ts";
import { forgetDelivery, record } from "./result-statements.ts";

/** Writes down what became of deliveries. */
export interface ResultBatcher {
  /** Notes results of a tenant; `suspects` are destinations of which also what goes well is to be noted. */
  add(tenantId: string, results: readonly Result[], suspects: ReadonlySet<string>): void;
  /** Resolves when all that was noted is written. */
  idle(): Promise<void>;
  /** What cannot be written from now on is not tried again: its leases end. */
  stop(): void;
}

interface RecorderOptions {
  db: Sql;
  gate: Pick<Pool["gate"], "open">;
  nowMs(): number;
  log: Log;
  /** What was noted of a tenant is written, or another process has it by now. */
  onRecorded(tenantId: string, results: readonly Result[]): void;
}

const againMs = 200;
const againMsMax = 5000;
/** What PostgreSQL refuses now and may take later: a collision, want of room or memory, a lock or a time limit, its files. */
const passes = (error: unknown) => /^(25|40|53|55|57|58)...$/.test((error as { code?: string } | null)?.code ?? "");

/**
 * Gathers results tenant by tenant, without a timer: those that come while a statement is under way go with the next one.
 * Goes on trying while the database is away or takes nothing, such as with a full disk, since what was sent should not be
 * sent again.
 */
export function resultBatcher({ db, gate, nowMs, log, onRecorded }: RecorderOptions): ResultBatcher {
  const waiting = new Map<string, { results: Result[]; suspects: Set<string> }>();
  const writing = new Map<string, Promise<void>>();
  let stopped = false;

  /** Writes results; one that the database refuses alone, and for good, is dropped: else it would be sent for ever. */
  async function write(tenantId: string, results: readonly Result[], suspects: ReadonlySet<string>): Promise<void> {
    for (let waitMs = againMs; ; waitMs = Math.min(waitMs * 2, againMsMax)) {
      try {
        return await record(db, tenantId, results, suspects, nowMs());
      } catch (error) {
        if (stopped) throw error;
        if (isConnectionLost(error) || !gate.open) waitMs = againMs;
        else {
          log.error({ tenant: tenantId, cause: (error as Error).message }, "deliveries cannot be recorded");
          if (!passes(error)) return await writeEach(tenantId, results, suspects);
        }
        await sleep(waitMs);
      }
    }
  }

  async function writeEach(tenantId: string, results: readonly Result[], suspects: ReadonlySet<string>): Promise<void> {
    const [only, ...others] = results;
    if (others.length > 0) for (const each of results) await write(tenantId, [each], suspects);
    else if (only !== undefined) await forgetDelivery(db, tenantId, only.row).catch(() => undefined);
  }

  async function drain(tenantId: string): Promise<void> {
    for (let next = waiting.get(tenantId); next !== undefined; next = waiting.get(tenantId)) {
      waiting.delete(tenantId);
      const { results, suspects } = next;
      try {
        await withHolder({ tenant: tenantId }, () => write(tenantId, results, suspects));
        failpoint("deliveries:recorded");
      } catch (error) {
        log.error({ tenant: tenantId, cause: (error as Error).message }, "deliveries cannot be recorded");
      }
      onRecorded(tenantId, results);
    }
    writing.delete(tenantId);
  }

  return {
    add(tenantId, results, suspects) {
      const own = waiting.get(tenantId) ?? { results: [], suspects: new Set() };
      own.results.push(...results);
      for (const name of suspects) own.suspects.add(name);
      waiting.set(tenantId, own);
      if (!writing.has(tenantId)) writing.set(tenantId, drain(tenantId));
    },
    async idle() {
      while (writing.size > 0) await Promise.all(writing.values());
    },
    stop() {
      stopped = true;
    },
  };
}
