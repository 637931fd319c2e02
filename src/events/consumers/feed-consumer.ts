import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import type { Db, Sql } from "../../db/connect.ts";
import { isConnectionLost } from "../../db/driver/connection-errors.ts";
import { withHolder } from "../../db/request-scope.ts";
import { afterCommit, transaction } from "../../db/transaction.ts";
import { exhausted } from "../../errors.ts";
import { paced, stepsOwedMs } from "../../event-loop.ts";
import { failpoint } from "../../failpoint.ts";
import { type Histogram, histogram, secondsBounds } from "../../histogram.ts";
import type { Job } from "../../jobs/queue.ts";
import { lockJob } from "../../jobs/queue.ts";
import type { JobKind } from "../../jobs/worker.ts";
import type { Log } from "../../log.ts";
import { decodeFacts, type Fact } from "../facts.ts";
import type { FeedRow } from "../feed.ts";
import { type Consumer, feedJob, feedKind } from "./consumer.ts";
import {
  type Behind,
  behindSinceMs,
  type Cursor,
  countBehind,
  endCursor,
  factsAfter,
  hasCursor,
  lockCursor,
  moveCursor,
} from "./cursors.ts";
import { factsNow } from "./facts-now.ts";
import { asideJob, setAside } from "./set-aside.ts";

/** What this process has consumed. */
export interface ConsumerStats {
  facts: number;
  /** Facts that were set aside: consuming them failed again and again. */
  setAside: number;
  /** How long after they were stored, s. */
  readonly lateSec: Histogram;
}

/** A consumer at work in this process. */
export interface FeedConsumer extends Pick<Consumer, "name" | "wants"> {
  /** Takes rows that this process has just stored. */
  stored(tenantId: string, rows: readonly FeedRow[]): void;
  /** Consumes what there is of a tenant, unless another does; resolves when it is at the end of the feed, or another is at work. */
  consume(tenantId: string): Promise<"end" | "busy">;
  /** Before data of a tenant are taken. @throws code 8 while too much waits to be consumed */
  check(tenantId: string): void;
  readonly kinds: readonly JobKind[];
  stats(): ConsumerStats;
  /** After the last data were stored: consumes what this process has stored, for some seconds. What is left another process finds, or the next start. */
  stop(): Promise<void>;
}

interface Options {
  nowMs(): number;
  /** How many tenants are served at once. */
  atOnce?: number;
  log?: Pick<Log, "error">;
  /** Whether a server of 0.3 may read what is set aside. Absent: none. */
  oldForm?(): boolean;
  /** How much of a tenant may wait; beyond it further data of this tenant are refused. */
  waitingMax?: Behind;
}

/** One transaction shows at most this many facts. */
const factsMax = 1000;
/** Rows and facts of a tenant that wait in memory; beyond them they are read from the feed. */
const keptRowsMax = 100;
const keptFactsMax = 5000;
/** Another transaction is at work on the tenant: this one looks again after this time, ms, later and later. */
const busyMs = 4;
const busyMsMax = 100;
/** A fact that has failed alone this often is set aside. */
const triesMax = 3;
const retryMs = 100;
const stopMsMax = 5000;
const stopLookMs = 20;
/** A job's run works on a tenant for this long, ms. */
const runMs = 2000;
/** How old a count of what waits may be, ms. */
const freshMs = 1000;
const tenantsMax = 10_000;
const retryAfterSec = 5;

/** A row of the feed in memory. */
interface Row {
  readonly position: bigint;
  readonly createdMs: number;
  readonly facts: readonly Fact[];
}

interface Tenant {
  /** Rows that wait, one after the other. */
  rows: Row[];
  serving: boolean;
  /** Whether its comparisons wait for their share. */
  owing: boolean;
  /** How many facts one transaction shows: fewer after one that has failed. */
  factsMax: number;
  /** The fact that fails alone. */
  failing: { place: string; tries: number } | undefined;
  busyMs: number;
}

/** What a transaction has come to: the tenant's feed may have more, is at its end, or another transaction is at work. */
type Slice = "more" | "end" | "busy";

const placeText = ({ position, done }: Cursor) => `${position}/${done}`;

/** A collision, want of room or memory, a lock, an end of the server, its files: what PostgreSQL refuses whatever the facts. */
const isOfNoFact = (error: unknown) =>
  isConnectionLost(error) || /^(40|53|55|57P|58)/.test(String((error as { code?: unknown }).code));

/** Starts a consumer. Each tenant is served by one transaction at a time of all servers, in the order of its feed. */
export function feedConsumer(db: Sql, consumer: Consumer, options: Options): FeedConsumer {
  const { name } = consumer;
  const { nowMs, atOnce = 1, log, waitingMax = { facts: 50_000, bytes: 128 * 1024 * 1024 } } = options;
  const tenants = new Map<string, Tenant>();
  /** Tenants that wait for their turn, in its order. */
  const ready = new Set<string>();
  const running = new Set<Promise<void>>();
  const timers = new Set<NodeJS.Timeout>();
  const stats: ConsumerStats = { facts: 0, setAside: 0, lateSec: histogram([...secondsBounds, 60, 300, 1800]) };
  const waiting = backlog(db, name, waitingMax);
  // Nothing of the call that stores may stay with what follows: neither its share of the database nor its deadline.
  const outside = AsyncLocalStorage.snapshot();
  let stopped = false;

  const newTenant = (): Tenant => ({ rows: [], serving: false, owing: false, factsMax, failing: undefined, busyMs });

  function tenantOf(tenantId: string): Tenant {
    const tenant = tenants.get(tenantId) ?? newTenant();
    tenants.set(tenantId, tenant);
    return tenant;
  }

  function serveNext(): void {
    for (const tenantId of ready) {
      if (stopped || running.size >= atOnce) return;
      const tenant = tenantOf(tenantId);
      if (tenant.serving) continue;
      ready.delete(tenantId);
      const owedMs = stepsOwedMs(tenantId);
      if (owedMs > 0) {
        // Its comparisons wait for their share, outside of a transaction: others have its place.
        if (!tenant.owing) later(tenantId, owedMs);
        tenant.owing = true;
        continue;
      }
      const turn = serve(tenantId, tenant);
      running.add(turn);
      void turn.finally(() => {
        running.delete(turn);
        serveNext();
      });
    }
  }

  function later(tenantId: string, ms: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      tenantOf(tenantId).owing = false;
      ready.add(tenantId);
      serveNext();
    }, ms).unref();
    timers.add(timer);
  }

  /** A tenant's turn: one transaction, more while nobody else waits. What fails is left to the job. Never rejects. */
  async function serve(tenantId: string, tenant: Tenant): Promise<void> {
    try {
      const came = await work(tenantId, tenant, () => !stopped && ready.size === 0);
      if (came === "more") ready.add(tenantId);
      if (came === "busy" && tenant.rows.length > 0) {
        later(tenantId, tenant.busyMs);
        tenant.busyMs = Math.min(busyMsMax, tenant.busyMs * 2);
      } else tenant.busyMs = busyMs;
    } catch {
      tenant.rows = [];
    }
    if (tenant.rows.length === 0 && tenant.failing === undefined && !ready.has(tenantId)) tenants.delete(tenantId);
  }

  /** Transactions of a tenant, one after the other, until there is no more, or no more time. */
  async function work(tenantId: string, tenant: Tenant, mayGoOn: () => boolean): Promise<Slice> {
    if (tenant.serving) return "busy";
    tenant.serving = true;
    try {
      for (;;) {
        const came = await withHolder({ tenant: tenantId }, () => attempt(tenantId, tenant));
        if (came !== "more" || !mayGoOn()) return came;
      }
    } finally {
      tenant.serving = false;
    }
  }

  /** A transaction, and what is made of its failure. @throws what has nothing to do with the facts */
  async function attempt(tenantId: string, tenant: Tenant): Promise<Slice> {
    const shown: { first?: Fact; count: number; place?: Cursor; storedMs: number } = { count: 0, storedMs: 0 };
    try {
      const came = await slice(tenantId, tenant, shown);
      tenant.factsMax = Math.min(factsMax, tenant.factsMax * 2);
      tenant.failing = undefined;
      return came;
    } catch (error) {
      tenant.rows = [];
      const { first, count, place, storedMs } = shown;
      if (isOfNoFact(error) || first === undefined || place === undefined) throw error;
      if (count > 1) {
        tenant.factsMax = Math.ceil(count / 2);
        return "more";
      }
      tenant.factsMax = 1;
      const tries = tenant.failing?.place === placeText(place) ? tenant.failing.tries + 1 : 1;
      tenant.failing = { place: placeText(place), tries };
      if (tries < triesMax) {
        await sleep(retryMs * 2 ** tries, undefined, { ref: false });
        return "more";
      }
      await putAside(tenantId, place, { fact: first, error: error as Error, storedMs });
      tenant.failing = undefined;
      return "more";
    }
  }

  async function slice(
    tenantId: string,
    tenant: Tenant,
    shown: { first?: Fact; count: number; place?: Cursor; storedMs: number },
  ): Promise<Slice> {
    const moved = await transaction(db, async (tx) => {
      // Those alone are older than what the cursor's statement says of the rules.
      const before = [...tenant.rows];
      const cursor = await lockCursor(tx, tenantId, name);
      if (cursor === undefined) return (await hasCursor(tx, tenantId, name)) ? "busy" : forget(tenant);
      const kept = nextOf(before, cursor);
      const rows = kept.length > 0 ? kept : await readAfter(tx, tenantId, tenant, cursor);
      if (rows.length === 0) return "end";
      failpoint("consumer:read");
      const facts = rows.flatMap((row) => row.facts).slice(cursor.done, cursor.done + tenant.factsMax);
      const storedMs = rows[0]?.createdMs ?? 0;
      Object.assign(shown, { first: facts[0], count: facts.length, place: cursor, storedMs });
      const now = nowMs();
      const moment = { storedMs, nowMs: now, ...(kept.length > 0 && { rulesVersion: cursor.rulesVersion }) };
      const nothing = { taken: 0, idleAt: undefined };
      const { taken, idleAt } = facts.length === 0 ? nothing : await consumer.batch(tx, tenantId, facts, moment);
      if (taken === 0 && facts.length > 0) return "busy";
      const { place, ended } = advanced(cursor, rows, taken);
      failpoint("consumer:consumed");
      const end = moveCursor(tx, tenantId, name, place);
      end.catch(() => undefined); // the transaction fails with it
      if (idleAt !== undefined && (await end) === place.position) await endCursor(tx, tenantId, name, idleAt);
      afterCommit(tx, () => {
        stats.facts += taken;
        for (const { createdMs } of ended) stats.lateSec.note(Math.max(0, now - createdMs) / 1000);
        tenant.rows = tenant.rows.filter(({ position }) => position > place.position);
      });
      return { end, position: place.position };
    });
    if (typeof moved === "string") return moved;
    return (await moved.end) === moved.position ? "end" : "more";
  }

  function forget(tenant: Tenant): Slice {
    tenant.rows = [];
    return "end";
  }

  /** Reads the rows after a cursor from the feed. */
  async function readAfter(tx: Db, tenantId: string, tenant: Tenant, { position }: Cursor): Promise<readonly Row[]> {
    const pace = paced(undefined, tenantId);
    const rows: Row[] = [];
    for (const { facts, changes, ...row } of await factsAfter(tx, tenantId, position)) {
      const readable = (read: Promise<Fact[]>) => read.catch((error) => unreadable(tenantId, row.position, error));
      if (facts !== null) rows.push({ ...row, facts: await readable(decodeFacts(facts, changes, pace)) });
      else {
        // Alone, and never kept: its facts hold under the locks of this transaction.
        if (rows.length === 0) return [{ ...row, facts: await readable(factsNow(tx, tenantId, changes)) }];
        break;
      }
    }
    const last = rows.at(-1)?.position ?? position;
    tenant.rows = [...rows, ...tenant.rows.filter((row) => row.position > last)];
    return rows;
  }

  /** A row that cannot be read is passed over: as long as it stood, nothing of the tenant would be consumed again. */
  function unreadable(tenantId: string, position: bigint, error: Error): Fact[] {
    if (isOfNoFact(error) || "query" in error) throw error;
    log?.error({ tenant: tenantId, position: `${position}`, cause: error.message }, "facts of the feed cannot be read");
    return [];
  }

  async function putAside(
    tenantId: string,
    place: Cursor,
    { fact, error, storedMs }: { fact: Fact; error: Error; storedMs: number },
  ): Promise<void> {
    // The words of PostgreSQL, or of a mistake in this program, are for the log alone.
    const cause = error instanceof ConnectError ? error.rawMessage : "internal error; the log has its cause";
    await transaction(db, async (tx) => {
      const cursor = await lockCursor(tx, tenantId, name);
      if (cursor === undefined || placeText(cursor) !== placeText(place)) return;
      await setAside(tx, tenantId, name, { fact, cause, storedMs, nowMs: nowMs(), oldForm: options.oldForm?.() });
      await moveCursor(tx, tenantId, name, { ...cursor, done: cursor.done + 1 });
      afterCommit(tx, () => {
        stats.setAside += 1;
        const event = fact.event.id.toString("base64url");
        log?.error(
          { tenant: tenantId, consumer: name, event, cause: error.message },
          "a change of an event is set aside: consuming it failed again and again",
        );
      });
    });
  }

  /** Consumes what a process that has died, or is slow, has left. */
  async function run(tx: Db, tenantId: string, [job]: readonly Job[], now: number) {
    if (job === undefined) return [];
    const again = (dueMs: number) => [{ id: job.id, payload: job.payload, dueMs }];
    const untilMs = performance.now() + runMs;
    const came = await outside(() => work(tenantId, tenantOf(tenantId), () => performance.now() < untilMs));
    if (came === "busy") return again(now + busyMsMax);
    // Whoever has seen this job is committed; who comes later waits for this transaction, and leaves another one.
    await lockJob(tx, { tenantId, kind: feedKind(name) }, feedJob);
    return (await behindSinceMs(tx, tenantId, name)) === Infinity ? [] : again(now);
  }

  return {
    name,
    wants: consumer.wants,
    stored(tenantId, rows) {
      const tenant = tenantOf(tenantId);
      for (const { position, createdMs, facts } of rows) {
        if (facts !== undefined) tenant.rows.push({ position, createdMs: Number(createdMs), facts });
      }
      if (tenant.rows.length > 1) waiting.grew(tenantId);
      const kept = tenant.rows.reduce((sum, { facts }) => sum + facts.length, 0);
      if (tenant.rows.length > keptRowsMax || kept > keptFactsMax) tenant.rows = tenant.rows.slice(-1);
      if (tenant.rows.length === 0) return;
      ready.add(tenantId);
      outside(serveNext);
    },
    async consume(tenantId) {
      const came = await work(tenantId, tenantOf(tenantId), () => true);
      return came === "more" ? "busy" : came;
    },
    check: waiting.check,
    kinds: [{ name: feedKind(name), sizeMax: 1, run }, asideJob(consumer)],
    stats: () => stats,
    async stop() {
      const lateMs = performance.now() + stopMsMax;
      while (ready.size + running.size > 0 && performance.now() < lateMs) {
        serveNext();
        await Promise.race([...running, sleep(stopLookMs)]);
      }
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}

/** Returns the rows right after a cursor: they come in the order of the answers to their commits, some twice, some after a gap. */
function nextOf(rows: readonly Row[], { position }: Cursor): readonly Row[] {
  const byPosition = new Map(rows.map((row) => [row.position, row]));
  const next: Row[] = [];
  for (let row = byPosition.get(position + 1n); row !== undefined; row = byPosition.get(row.position + 1n))
    next.push(row);
  return next;
}

/** The place behind facts that were taken, and the rows of which all are. */
function advanced(cursor: Cursor, rows: readonly Row[], taken: number): { place: Cursor; ended: Row[] } {
  let [{ position }, done] = [cursor, cursor.done + taken];
  const ended: Row[] = [];
  for (const row of rows) {
    if (done < row.facts.length) break;
    done -= row.facts.length;
    position = row.position;
    ended.push(row);
  }
  return { place: { position, done }, ended };
}

/** How much waits of which tenant, as this process knows it; counted beside the calls, of tenants that were seen to wait. */
function backlog(db: Db, name: string, max: Behind) {
  const known = new LRUCache<string, Behind & { atMs: number; counting: boolean }>({ max: tenantsMax });

  function count(tenantId: string) {
    const there = known.get(tenantId) ?? { facts: 0, bytes: 0, atMs: -Infinity, counting: false };
    if (there.counting || performance.now() - there.atMs < freshMs) return;
    there.counting = true;
    known.set(tenantId, there);
    countBehind(db, tenantId, name)
      .then((behind) => {
        if (behind.facts === 0) known.delete(tenantId);
        else known.set(tenantId, { ...behind, atMs: performance.now(), counting: false });
      })
      .catch(() => known.delete(tenantId));
  }

  return {
    grew: count,
    check(tenantId: string): void {
      const behind = known.get(tenantId);
      if (behind === undefined) return;
      count(tenantId);
      if (behind.facts <= max.facts && behind.bytes <= max.bytes) return;
      throw exhausted(
        `${behind.facts} changes of events wait to be held against the tenant's rules, more than may wait; send the request again`,
        retryAfterSec * (1 + Math.random() / 2),
      );
    },
  };
}
