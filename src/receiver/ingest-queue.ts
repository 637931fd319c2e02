import { ErrorReason } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Db, Sql } from "../db/connect.ts";
import { noHolder, withHolder } from "../db/request-scope.ts";
import { exhausted, unavailable } from "../errors.ts";
import { fairQueue } from "../fair-queue.ts";
import { type CostEstimate, costEstimate } from "./cost-estimate.ts";
import { ingestStats, type LaneStats } from "./ingest-stats.ts";
import { givenUp, storeParts, type WaitingPart } from "./store-batch.ts";

/** A kind of incoming data. The queue batches its items, schedules them by tenant, splits failing batches and sheds load. */
export interface LaneKind<Item> {
  /** In logs, and for `check` before a body is read. */
  name: string;
  /** How large a batch may be, in the unit of its parts' sizes; absent: 1,000. */
  sizeMax?: number;
  /**
   * Stores items in order, usually at most 1,000, possibly of several requests. It runs again with some of the items after
   * a retryable error or one of class 22, 23 or 54, so caches and notifications wait for `afterCommit`. Returns the items
   * that it left out.
   */
  store(tx: Db, tenantId: string, items: readonly Item[]): Promise<Refused | undefined>;
  /** How long a tenant's next batch has to wait for what those before it took of the process, ms; absent: never. */
  owedMs?(tenantId: string): number;
}

/** Items that were not stored: their places, and why. */
export type Refused = ReadonlyMap<number, string>;

/** Items of one request or stream, checked, that are stored in one transaction. */
export interface IngestPart<Item> {
  items: readonly Item[];
  /** How many they count as, and how much work they are; absent: as many as they are. */
  count?: number;
  size?: number;
  /** About how many bytes they had in the request. */
  bytes: number;
  /** Whether the call has ended, so that a part that is still queued is not stored. */
  abandoned?(): boolean;
}

/** Stores data that comes in, gathered by tenant and kind. */
export interface IngestQueue {
  /** Before a body is read. @throws code 8 when it would wait too long, 14 while the server stops. */
  check(tenantId: string, kindName: string): void;
  /**
   * Stores a part; resolves after the commit with the places of the items that could not be stored, and why.
   * `first`: of a request's parts only the first is refused.
   * @throws code 8 when it would wait too long, 14 when the outcome is unknown or the server stops; retrying is safe.
   */
  put<Item>(
    kind: LaneKind<Item>,
    tenantId: string,
    part: IngestPart<Item>,
    first: boolean,
  ): Promise<Map<number, string>>;
  /** Resolves when a stream may be read on: what waits would take less than half of what is too long. */
  room(tenantId: string, kindName: string): Promise<void>;
  /** By kind: what was stored, and what waits and runs now. */
  stats(): Map<string, LaneStats>;
  /** Admits nothing more; resolves when what was accepted is stored, or has failed after 10 s. */
  stop(): Promise<void>;
}

interface LanesOptions {
  /** How many transactions at once: the connections of `sql`. */
  batchesMax: number;
  /** How long data may wait before more of it is refused. */
  waitMsMax: number;
  /** Hears of an item that was checked and that PostgreSQL did not take all the same, and of batches that failed. */
  report?(error: unknown): void;
}

/** A batch is at most this large, but for a part that alone is larger. */
export const batchItemsMax = 1000;
export const batchBytesMax = 4 * 1024 * 1024;
const attemptsMax = 8;
const stopMsMax = 10_000;

const sizeOf = ({ items, size = items.length }: IngestPart<unknown>) => size;

interface Waiting extends WaitingPart {
  attempts: number;
}

interface Lane {
  tenant: Tenant;
  tenantId: string;
  kindName: string;
  kind: LaneKind<unknown> | undefined;
  queue: Waiting[];
  items: number;
  bytes: number;
  running: { sinceMs: number; expectedMs: number }[];
  cost: CostEstimate;
}

interface Tenant {
  /** By kind. */
  lanes: Map<string, Lane>;
  running: number;
}

/** How many tenants' costs are remembered. */
const tenantsMax = 10_000;

/**
 * Group commit: the queued parts of one tenant and kind are stored in one transaction. A part that finds its lane idle starts at
 * once; a second transaction of a lane starts only when it would be full, and never a third. Lanes take turns by tenant,
 * then kind; a tenant leaves one connection to the others.
 */
export function ingestQueue(sql: Sql, { batchesMax, waitMsMax, report = () => {} }: LanesOptions): IngestQueue {
  const tenants = new Map<string, Tenant>();
  /** Lanes in which something waits, by tenant and kind. */
  const waiting = fairQueue<Lane>();
  const counted = ingestStats();
  let running = 0;
  let stopping = false;
  let idle = () => {};

  function laneOf(tenantId: string, kindName: string): Lane {
    let tenant = tenants.get(tenantId);
    if (tenant === undefined) {
      if (tenants.size >= tenantsMax) forgetIdle();
      tenant = { lanes: new Map(), running: 0 };
      tenants.set(tenantId, tenant);
    }
    let lane = tenant.lanes.get(kindName);
    if (lane === undefined) {
      const empty = { kind: undefined, queue: [], items: 0, bytes: 0, running: [] };
      lane = { tenant, tenantId, kindName, ...empty, cost: costEstimate() };
      tenant.lanes.set(kindName, lane);
    }
    return lane;
  }

  function forgetIdle() {
    for (const [id, { lanes, running: at }] of tenants) {
      if (at === 0 && [...lanes.values()].every(({ queue }) => queue.length === 0)) tenants.delete(id);
    }
  }

  const allLanes = () => [...tenants.values()].flatMap(({ lanes }) => [...lanes.values()]);
  const waitMs = (lane: Lane) => owedMs(lane) + expectedWaitMs(lane, waiting.size / batchesMax);

  function refuse(lane: Lane) {
    if (stopping) throw unavailable("the server is stopping; send the request again", ErrorReason.SERVER_STOPPING);
    const ms = waitMs(lane);
    if (ms <= waitMsMax) return;
    counted.of(lane.kindName).refused += 1;
    const afterSec = (Math.max(waitMsMax, ms) / 1000) * (1 + Math.random() / 2);
    throw exhausted("more data comes in than can be stored; send the request again", afterSec);
  }

  function take(lane: Lane): Waiting[] {
    const batch: Waiting[] = [];
    let items = 0;
    let bytes = 0;
    while (lane.queue.length > 0) {
      const next = lane.queue[0] as Waiting;
      const size = sizeOf(next);
      if (batch.length > 0 && (items + size > sizeMax(lane) || bytes + next.bytes > batchBytesMax)) break;
      lane.queue.shift();
      lane.items -= size;
      lane.bytes -= next.bytes;
      if (next.abandoned?.()) {
        next.fail(unavailable("the call has ended before it was stored"));
        continue;
      }
      items += size;
      bytes += next.bytes;
      batch.push(next);
    }
    if (lane.queue.length > 0) waiting.add([lane.tenantId, lane.kindName], lane);
    return batch;
  }

  /** Starts what may start. */
  function start() {
    while (running < batchesMax) {
      const lane = waiting.next((each) => each.tenant.running < Math.max(1, batchesMax - 1) && ready(each));
      if (lane === undefined) break;
      if (owes(lane)) continue;
      const batch = take(lane);
      if (batch.length > 0) void run(lane, batch);
    }
    if (running === 0 && stopping) idle();
  }

  /** Whether a lane may not start yet; it loses its place, so that nobody waits for it. */
  function owes(lane: Lane): boolean {
    const ms = owedMs(lane);
    if (ms <= 0) return false;
    setTimeout(() => {
      waiting.add([lane.tenantId, lane.kindName], lane);
      start();
    }, ms).unref();
    return true;
  }

  function add(lane: Lane, parts: readonly Waiting[], place: "front" | "back") {
    if (parts.length === 0) return;
    if (lane.queue.length === 0) waiting.add([lane.tenantId, lane.kindName], lane);
    if (place === "back") lane.queue.push(...parts);
    else lane.queue.unshift(...parts);
    for (const part of parts) {
      lane.items += sizeOf(part);
      lane.bytes += part.bytes;
    }
  }

  async function run(lane: Lane, batch: Waiting[]): Promise<void> {
    const items = batch.reduce((sum, part) => sum + sizeOf(part), 0);
    const sinceMs = performance.now();
    const mark = { sinceMs, expectedMs: lane.cost.expect(1, items) };
    lane.running.push(mark);
    lane.tenant.running += 1;
    running += 1;
    const storing = { sql, kind: lane.kind as LaneKind<unknown>, tenantId: lane.tenantId, report };
    // Outside of every call: what it stores belongs to many of them, and ends with none.
    const repeats = await withHolder(noHolder(), () => storeParts(storing, batch));
    const endedMs = performance.now();
    lane.cost.note(items, endedMs - sinceMs);
    counted.of(lane.kindName).commitSec.note((endedMs - sinceMs) / 1000);
    lane.running.splice(lane.running.indexOf(mark), 1);
    lane.tenant.running -= 1;
    running -= 1;
    // What PostgreSQL asks to be run again is queued again, at the front: it is the oldest.
    add(lane, patient(repeats.flatMap(({ parts }) => parts)), "front");
    start();
  }

  return {
    check: (tenantId, kindName) => refuse(laneOf(tenantId, kindName)),
    async put(kind, tenantId, part, first) {
      const lane = laneOf(tenantId, kind.name);
      lane.kind ??= kind as LaneKind<unknown>;
      if (first || stopping) refuse(lane);
      return await new Promise((done, fail) => {
        const told = counted.counting(kind.name, part.count ?? sizeOf(part), done);
        add(lane, [{ ...part, attempts: 0, done: told, fail }], "back");
        start();
      });
    },
    async room(tenantId, kindName) {
      const lane = laneOf(tenantId, kindName);
      while (!stopping && waitMs(lane) > waitMsMax / 2) await new Promise((resolve) => setTimeout(resolve, 20));
    },
    stats: () => counted.stats(allLanes()),
    async stop() {
      stopping = true;
      const late = Promise.withResolvers<void>();
      idle = late.resolve;
      const timer = setTimeout(late.resolve, stopMsMax);
      start();
      await late.promise;
      clearTimeout(timer);
      const stopped = unavailable("the server is stopping; send the request again", ErrorReason.SERVER_STOPPING);
      for (const { queue } of allLanes()) for (const part of queue.splice(0)) part.fail(stopped);
    },
  };
}

const sizeMax = ({ kind }: Lane) => kind?.sizeMax ?? batchItemsMax;
const owedMs = ({ kind, tenantId }: Lane) => kind?.owedMs?.(tenantId) ?? 0;
const full = (lane: Lane) => lane.items >= sizeMax(lane) || lane.bytes >= batchBytesMax;
const ready = (lane: Lane) =>
  lane.queue.length > 0 && (lane.running.length === 0 || (lane.running.length === 1 && full(lane)));

/** How long a part that is added now would wait for its transaction to start, ms. */
function expectedWaitMs(lane: Lane, lanesPerBatch: number): number {
  if (lane.queue.length === 0) return 0;
  const nowMs = performance.now();
  // A batch that takes longer than expected may take much longer.
  const rest = lane.running.map(({ sinceMs, expectedMs }) =>
    Math.max(sinceMs + expectedMs - nowMs, (nowMs - sinceMs) / 2),
  );
  const transactions = Math.ceil(Math.max(lane.items / sizeMax(lane), lane.bytes / batchBytesMax));
  const queued = lane.cost.expect(transactions, lane.items);
  const sum = rest.reduce((all, each) => all + each, queued);
  // Two that run share what is queued, while it would fill another.
  const atOnce = full(lane) ? Math.max(1, rest.length) : 1;
  const ownMs = atOnce > 1 ? sum / atOnce : queued + (rest.length > 0 ? Math.min(...rest) : 0);
  return ownMs * Math.max(1, lanesPerBatch);
}

function patient(parts: readonly Waiting[]): Waiting[] {
  for (const part of parts) {
    part.attempts += 1;
    if (part.attempts >= attemptsMax) part.fail(givenUp());
  }
  return parts.filter(({ attempts }) => attempts < attemptsMax);
}
