import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, Sql } from "../../db/connect.ts";
import { isConnectionLost } from "../../db/driver/connection-errors.ts";
import { isContent, lacksPartition } from "../../db/refused-content.ts";
import { withHolder } from "../../db/request-scope.ts";
import { failpoint } from "../../failpoint.ts";
import type { Log } from "../../log.ts";
import type { Attempt } from "./attempts.ts";
import { historyBackMs } from "./history.ts";
import type { Result } from "./result.ts";
import { forgetDelivery, record } from "./result-statements.ts";

/** Writes down what became of deliveries. */
export interface ResultBatcher {
  /** Notes results of a tenant; `suspects` are destinations of which also what goes well is to be noted. */
  add(tenantId: string, results: readonly Result[], suspects: ReadonlySet<string>): void;
  /** Whether the database has refused a tenant's results, which are tried again: nothing more should be sent before. */
  isLate(tenantId: string): boolean;
  /** Resolves when all that was noted is written. */
  idle(): Promise<void>;
  /** What cannot be written from now on is not tried again: its leases end. */
  stop(): void;
}

interface Batch {
  results: readonly Result[];
  suspects: ReadonlySet<string>;
  /** Whether it is one result, in our own words alone. */
  isBare?: boolean;
}

interface RecorderOptions {
  db: Sql;
  gate: Pick<Pool["gate"], "open">;
  nowMs(): number;
  log: Log;
  /** The first wait before another try. */
  againMs?: number;
  /** What was noted of a tenant is written, or another process has it by now. `more`: another look is worth it. */
  onRecorded(tenantId: string, results: readonly Result[], more: boolean): void;
}

const againMsMax = 5000;
/** What of a result is in our own words, for where the database refuses it: without the receiver's. */
const bare = ({ row, status, error, dueMs, slow, attempt }: Result): Result => ({
  row,
  status,
  error: attempt === undefined ? error : status === "SENT" ? "" : attempt.reason,
  ...(dueMs !== undefined && { dueMs }),
  ...(slow !== undefined && { slow }),
  ...(attempt && { attempt: bareAttempt(attempt) }),
});

const bareAttempt = ({ recipients, ...attempt }: Attempt): Attempt => ({
  ...attempt,
  answer: "",
  ...(recipients && { recipients: recipients.map((each) => ({ ...each, answer: "" })) }),
});

/**
 * Gathers results tenant by tenant, without a timer: those that come while a statement is under way go with the next one.
 * Goes on trying while the database is away or takes nothing, such as with a full disk, or says what is not known here: what was
 * sent should not be sent again, and always has its record.
 */
export function resultBatcher({ db, gate, nowMs, log, onRecorded, againMs = 200 }: RecorderOptions): ResultBatcher {
  const waiting = new Map<string, { results: Result[]; suspects: Set<string> }>();
  const writing = new Map<string, Promise<void>>();
  const late = new Set<string>();
  let stopped = false;

  async function write(tenantId: string, { results, suspects, isBare = false }: Batch): Promise<boolean> {
    for (let waitMs = againMs, isFirst = true; ; waitMs = Math.min(waitMs * 2, againMsMax), isFirst = false) {
      try {
        return (await record(db, tenantId, results, suspects, nowMs())) || !isFirst;
      } catch (error) {
        if (stopped) throw error;
        // While the database, or the tenant's node, is away nothing can be claimed either.
        if (isConnectionLost(error) || !gate.open) waitMs = againMs;
        else {
          log.error({ tenant: tenantId, cause: (error as Error).message }, "deliveries cannot be recorded");
          const atFault = isContent(error) || lacksPartition(error);
          if (atFault && (await writeLess(tenantId, { results, suspects, isBare }, error))) return true;
          late.add(tenantId);
        }
        await sleep(waitMs);
      }
    }
  }

  /**
   * What is refused for what it holds: each result alone, and the one at fault without what a receiver said. Resolves with false when
   * that must be tried again. Where the history of its day has been removed it is dropped: else it would be sent for ever.
   */
  async function writeLess(tenantId: string, { results, suspects, isBare }: Batch, error: unknown): Promise<boolean> {
    const [only, ...others] = results as [Result, ...Result[]];
    if (others.length > 0) for (const each of results) await write(tenantId, { results: [each], suspects });
    else if (!isBare) await write(tenantId, { results: [bare(only)], suspects: new Set(), isBare: true });
    else if (!lacksPartition(error) || only.row.createdMs >= nowMs() - historyBackMs) return false;
    else await forgetDelivery(db, tenantId, only.row).catch(() => undefined);
    return true;
  }

  async function drain(tenantId: string): Promise<void> {
    for (let next = waiting.get(tenantId); next !== undefined; next = waiting.get(tenantId)) {
      waiting.delete(tenantId);
      const { results, suspects } = next;
      let more = true;
      try {
        more = await withHolder({ tenant: tenantId }, () => write(tenantId, { results, suspects }));
        failpoint("deliveries:recorded");
      } catch (error) {
        log.error({ tenant: tenantId, cause: (error as Error).message }, "deliveries cannot be recorded");
      }
      late.delete(tenantId);
      onRecorded(tenantId, results, more);
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
    isLate: (tenantId) => late.has(tenantId),
    async idle() {
      while (writing.size > 0) await Promise.all(writing.values());
    },
    stop() {
      stopped = true;
    },
  };
}
