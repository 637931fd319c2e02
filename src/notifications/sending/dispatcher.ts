import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "../../db/connect.ts";
import { isConnectionLost } from "../../db/driver/connection-errors.ts";
import { withHolder } from "../../db/request-scope.ts";
import { every } from "../../every.ts";
import { failpoint } from "../../failpoint.ts";
import { dueLanes } from "../../jobs/due-lanes.ts";
import { type Lease, leaseKeeper } from "../../jobs/leases.ts";
import { alarms } from "../../jobs/wake-ups.ts";
import type { AttemptOutcome } from "../kinds/attempt-outcome.ts";
import { type ClaimedDelivery, deliveriesKind, renewLeases, settleDeliveries } from "../queue/delivery-queue.ts";
import type { Result } from "../queue/result.ts";
import { resultBatcher } from "../queue/result-batcher.ts";
import { sendSlots } from "../queue/send-slots.ts";
import { backResults, cutOffResults, endedResult, triedResults } from "./classify-response.ts";
import { type BatchOptions, nextBatch, type PreparedBatch } from "./next-batch.ts";
import type { Ready } from "./prepare.ts";
import { attempt, type SenderOptions } from "./sender.ts";
import { type SendingStats, sendingStats } from "./stats.ts";

/** Sends what is due, of all tenants. */
export interface Dispatcher {
  /** A tenant has deliveries, due now or at this time, ms. A hint: what is due is found without it, within a second. */
  wake(tenantId: string, dueMs?: number): void;
  /** Some tenant may have deliveries that are due. */
  look(): void;
  /** What was sent, and how many tries go on now. */
  stats(): SendingStats & { running: number };
  /** Takes nothing more; resolves when the tries under way are recorded, at the latest after some seconds. */
  stop(): Promise<void>;
}

export interface DispatcherOptions
  extends Omit<SenderOptions, "db">,
    Pick<BatchOptions, "recheck" | "heldRules" | "waitMsMax"> {
  readonly pool: Pick<Pool, "system" | "workers" | "sending" | "gate">;
  nowMs(): number;
  /** Notified that there is more to do than this process takes on. */
  callOthers?(): void;
  /** How many tries go on at once. */
  readonly slotsMax?: number;
  readonly leaseMs?: number;
  /** How often it looks although nothing called it. */
  readonly pollMs?: number;
}

/** How many of one destination the first look takes, and how far apart looks at a tenant are that is being served, ms. */
const lookMin = 16;
const lookMsMin = 10;
const stopMsMax = 5000;
const stopLookMs = 5;

const resultsOf = (ready: Ready, outcome: AttemptOutcome | undefined, isCutOff: boolean, nowMs: number): Result[] => {
  if (outcome === undefined) return backResults(ready);
  return isCutOff ? cutOffResults(ready, outcome, nowMs) : triedResults(ready, outcome, nowMs, Math.random());
};

/** Starts a dispatcher. */
export function dispatcher(options: DispatcherOptions): Dispatcher {
  const { pool, nowMs, log, recheck, heldRules, waitMsMax, callOthers = () => {} } = options;
  const { slotsMax = 128, leaseMs = 10_000, pollMs = 1000 } = options;
  const db = pool.sending;
  const slots = sendSlots(slotsMax);
  const counted = sendingStats();
  const round = { keyring: options.keyring, world: options.world, slots, leaseMs, waitMsMax, recheck, heldRules };
  const sender: SenderOptions = { ...options, db };
  const held = leaseKeeper<string, ClaimedDelivery>({
    leaseMs: () => leaseMs,
    leaseMsMin: leaseMs,
    async renew(tenantId, rows) {
      const kept = await withHolder({ tenant: tenantId }, () =>
        renewLeases(db, tenantId, rows, { nowMs: nowMs(), leaseMs }),
      );
      return ({ id }) => kept.has(id);
    },
  });
  const sending = new Set<Promise<void>>();
  const looking = new Map<string, { again: boolean }>();
  /** When a tenant was looked at last, and how many of its tries are under way. */
  const looked = new Map<string, number>();
  const under = new Map<string, number>();
  const later = alarms<string>(nowMs, (tenantId) => void lookAt(tenantId));
  /** Tenants with something due that found no place, the one that has waited longest first. */
  const crowded = new Set<string>();
  let stopped = false;
  // Nothing of the call that wakes it may stay with its work: neither its share of the database nor its deadline.
  const outside = AsyncLocalStorage.snapshot();

  const records = resultBatcher({
    db,
    gate: pool.gate,
    nowMs,
    log,
    onRecorded(tenantId, results, more) {
      held.end(results.map(({ row }) => row));
      counted.recorded(results);
      // Else the next poll finds that nothing is left, and takes the tenant from those with something due.
      if (more) void lookAt(tenantId);
    },
  });

  /** Looks at a tenant's deliveries until nothing more can be taken. Never rejects. */
  async function lookAt(tenantId: string): Promise<void> {
    const other = looking.get(tenantId);
    if (other !== undefined) other.again = true;
    // What was sent is recorded before more is sent.
    if (other !== undefined || stopped || !pool.gate.open || records.isLate(tenantId)) return;
    const mine = { again: false };
    looking.set(tenantId, mine);
    crowded.delete(tenantId);
    let lookMax = lookMin;
    try {
      do {
        await restSince(tenantId);
        mine.again = false;
        const startMs = performance.now();
        const look = { ...round, lookMax };
        const taken = await withHolder({ tenant: tenantId }, () => nextBatch(db, tenantId, look, nowMs()));
        lookMax = taken.more ? lookMin * 2 : lookMin;
        begin(tenantId, taken, startMs);
        if (taken.more) mine.again = true;
        else if (taken.ready.length === 0 && !taken.crowded) await settle(tenantId);
      } while (mine.again && !stopped && !crowded.has(tenantId) && !records.isLate(tenantId));
    } catch (error) {
      if (!isConnectionLost(error))
        log.error({ tenant: tenantId, cause: (error as Error).message }, "deliveries cannot be claimed");
    } finally {
      looking.delete(tenantId);
      if (!under.has(tenantId)) looked.delete(tenantId);
    }
  }

  /** While a tenant's tries are under way its looks gather what has ended meanwhile. */
  async function restSince(tenantId: string): Promise<void> {
    const restMs = (looked.get(tenantId) ?? 0) + lookMsMin - performance.now();
    if (restMs > 0 && under.has(tenantId)) await sleep(restMs);
    looked.set(tenantId, performance.now());
  }

  async function settle(tenantId: string): Promise<void> {
    const nextMs = await withHolder({ tenant: tenantId }, () => settleDeliveries(db, tenantId, nowMs()));
    if (nextMs !== undefined && nextMs > nowMs()) lookLater(tenantId, nextMs);
  }

  /** Begins to send what was taken. */
  function begin(
    tenantId: string,
    { ready, ended, againMs, suspects, ...taken }: PreparedBatch,
    startMs: number,
  ): void {
    if (againMs < Number.POSITIVE_INFINITY) lookLater(tenantId, againMs);
    if (taken.crowded) {
      crowded.add(tenantId);
      callOthers();
    }
    if (ended.length > 0) records.add(tenantId, ended.map(endedResult), suspects);
    for (const each of ready) {
      counted.claimed(each.row.dueMs, nowMs());
      const lease = held.begin(tenantId, [each.row, ...each.others], startMs);
      const run = deliver(tenantId, each, lease, suspects);
      sending.add(run);
      void run.finally(() => sending.delete(run));
    }
  }

  /** One try, and what is recorded of it. Never rejects. */
  async function deliver(
    tenantId: string,
    ready: Ready,
    { signal, held: isHeld }: Lease,
    suspects: ReadonlySet<string>,
  ): Promise<void> {
    const rows = [ready.row, ...ready.others];
    under.set(tenantId, (under.get(tenantId) ?? 0) + 1);
    try {
      const startMs = performance.now();
      const outcome = isHeld() && !stopped ? await attempt(ready, sender, signal) : undefined;
      failpoint("deliveries:sent");
      const isCutOff = stopped && signal.aborted && outcome?.result === "failed";
      if (outcome !== undefined && !isCutOff) counted.tried(ready, outcome, performance.now() - startMs);
      records.add(tenantId, resultsOf(ready, outcome, isCutOff, nowMs()), suspects);
    } catch (error) {
      // Its lease ends, and it is claimed again.
      log.error({ tenant: tenantId, cause: (error as Error).message }, "a delivery is abandoned until its lease ends");
      held.end(rows);
    }
    slots.free(tenantId, ready.row.destinationName, 1);
    const left = (under.get(tenantId) ?? 1) - 1;
    if (left > 0) under.set(tenantId, left);
    else under.delete(tenantId);
    const [next] = crowded;
    if (next !== undefined) void lookAt(next);
  }

  function lookLater(tenantId: string, dueMs: number): void {
    // The poll finds what is due later.
    if (dueMs - nowMs() <= 2 * pollMs) later.set(tenantId, dueMs);
  }

  async function poll(): Promise<void> {
    if (stopped || !pool.gate.open) return;
    try {
      for (const { tenantId, dueMs } of await dueLanes(pool, [deliveriesKind], nowMs() + pollMs)) {
        if (dueMs > nowMs()) lookLater(tenantId, dueMs);
        // One that is crowded is looked at when a place is given back.
        else if (!crowded.has(tenantId) || slots.used === 0) void lookAt(tenantId);
      }
    } catch (error) {
      if (!isConnectionLost(error))
        log.error({ cause: (error as Error).message }, "the tenants with deliveries cannot be read");
    }
  }
  const polls = every(pollMs, poll);
  polls.now();

  return {
    wake(tenantId, dueMs = 0) {
      outside(() => (dueMs > nowMs() ? lookLater(tenantId, dueMs) : void lookAt(tenantId)));
    },
    look: () => outside(polls.now),
    stats: () => ({ ...counted.read(), running: slots.used }),
    async stop() {
      stopped = true;
      void polls.stop();
      later.stop();
      const lateMs = performance.now() + stopMsMax;
      // What a look under way takes yet is given back.
      while ((looking.size > 0 || sending.size > 0) && performance.now() < lateMs) await sleep(stopLookMs);
      held.abort();
      await Promise.race([
        Promise.all(sending).then(() => records.idle()),
        sleep(stopMsMax, undefined, { ref: false }),
      ]);
      records.stop();
      held.stop();
    },
  };
}
