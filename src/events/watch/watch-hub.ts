import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import type { WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Sql } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import { every } from "../../every.ts";
import type { FeedRow } from "../feed.ts";
import { type FeedPosition, isBehind } from "./cursor.ts";
import { changedRows, changesMax, feedEnd, rowsBehind } from "./feed-reader.ts";
import type { ChangedRow } from "./filter.ts";
import { type Past, pastReader } from "./past.ts";
import { endSlowest, type Queue } from "./queue.ts";
import { changeFor, type Held, messageMaker, type Told, type WatchedQuery } from "./shared-messages.ts";

/** How many rows that this process has written wait in memory; beyond them they are read from the feed. */
const rowsMax = 100;
const pollMs = 1000;

/** What the watches of a tenant may have waiting, each row counted once, bytes; beyond it the slowest are ended. */
const heldBytesMax = 64 * 1024 * 1024;
/** How long the feed waits for clients of which much waits, ms; then it goes on without them. */
const patienceMs = 200;
const lookMs = 5;

/** One watch that follows the feed as it grows. */
export interface Watcher {
  /** Gets changes behind this place only. */
  after: FeedPosition;
  queue: Queue;
}

interface Group {
  query: WatchedQuery;
  watchers: Set<Watcher>;
}

/** Changes that are being reported, in slices. */
interface Telling {
  changed: readonly (ChangedRow | undefined)[];
  placeOf(i: number): FeedPosition;
}

interface Tenant {
  /** After the last changes that all were reported. */
  place: FeedPosition;
  /** By the digest of the query: a change is judged once for all that ask the same. */
  groups: Map<string, Group>;
  /** Rows that this process has stored and that are not reported yet. */
  waiting: FeedRow[];
  telling: Telling | undefined;
  /** Those that came meanwhile. */
  late: { group: Group; watcher: Watcher }[];
  following: boolean;
  more: boolean;
  held: Held;
  message(told: Told): WatchEventsResponse;
}

/** All watches of this process. */
export interface WatchHub {
  /** Delivers a row that this process has stored itself. */
  stored(tenantId: string, row: FeedRow): void;
  /** A hint that the feeds of these tenants, or of all, have grown. */
  wake(tenantIds?: readonly string[]): void;
  /** The place up to which a tenant's feed was reported to all; undefined when this process does not follow it. */
  toldUpTo(tenantId: string): FeedPosition | undefined;
  /** A watch of this tenant begins. Returns what ends it: without any the tenant's feed is followed no longer. */
  begin(tenantId: string): () => void;
  /** Adds a watcher that is at the place up to which all were reported, or after it; returns the function that removes it. */
  add(query: WatchedQuery, watcher: Watcher): () => void;
  /** The message of a change, made once for the watches of a query that are sent it one after the other. */
  messageOf(told: Told): WatchEventsResponse;
  /** What the watches of a tenant have not taken yet. Call `open` before. */
  heldOf(tenantId: string): Held;
  /** What happened before a watch follows the feed. */
  readonly past: Past;
  /** Makes sure that a tenant's feed is followed, within `begin` and its end. */
  open(tenantId: string): Promise<void>;
  /** Tenants whose feeds are followed, and watches of them. */
  stats(): { tenants: number; watchers: number };
  stop(): void;
}

/**
 * Follows the feeds of the tenants that are watched: rows of this process from memory when they are the next ones, all
 * others by one read for all watches of the tenant, woken by hints and each second.
 */
export function watchHub(sql: Sql): WatchHub {
  const tenants = new Map<string, Tenant>();
  const opening = new Map<string, Promise<void>>();
  /** How many watches of a tenant have begun and not ended. */
  const begun = new Map<string, number>();
  const past = pastReader(sql);
  const rounds = every(pollMs, () => wake());

  function wake(tenantIds?: readonly string[]): void {
    for (const tenantId of tenantIds ?? tenants.keys()) {
      const tenant = tenants.get(tenantId);
      if (tenant !== undefined) follow(tenantId, tenant, true);
    }
  }

  function followed(tenantId: string): Tenant {
    const tenant = tenants.get(tenantId);
    if (tenant === undefined) throw new Error("the feed of this tenant is not followed");
    return tenant;
  }

  function follow(tenantId: string, tenant: Tenant, more: boolean): void {
    tenant.more ||= more;
    if (tenant.following) return;
    tenant.following = true;
    advance(tenantId, tenant).catch((error) => {
      // Missing rows of the feed end its watches; while the database is unavailable the read is repeated later.
      if ((error as { code?: unknown }).code !== Code.InvalidArgument) return;
      tenants.delete(tenantId);
      for (const queue of queuesOf(tenant)) queue.fail(error);
    });
  }

  async function advance(tenantId: string, tenant: Tenant): Promise<void> {
    try {
      while (tenants.get(tenantId) === tenant) {
        const own = tenant.waiting.shift();
        // A row that was read in part, before the database was away, is read again from there.
        const whole = tenant.place.passed === Number.MAX_SAFE_INTEGER;
        if (whole && own?.position === tenant.place.position + 1n) {
          await tell(tenantId, tenant, own);
        } else if (own === undefined || own.position > tenant.place.position) {
          if (own === undefined && !tenant.more) return;
          tenant.more = false;
          const rows = await rowsBehind(sql, tenantId, tenant.place);
          for (const row of rows) await tell(tenantId, tenant, row);
          tenant.more ||= rows.length > 0;
        }
      }
    } finally {
      tenant.following = false;
    }
  }

  async function tell(tenantId: string, tenant: Tenant, row: FeedRow): Promise<void> {
    const { position, createdMs, changes } = row;
    const first = position === tenant.place.position ? tenant.place.passed : 0;
    for (let from = first; from < changes.length; from += changesMax) {
      const changed = await changedRows(sql, tenantId, changes.slice(from, from + changesMax));
      await tellPortion(tenantId, tenant, {
        changed,
        placeOf: (i) => ({ position, createdMs, passed: from + i + 1 }),
      });
      await taken(tenantId, tenant);
    }
    tenant.place = { position, createdMs, passed: Number.MAX_SAFE_INTEGER };
  }

  /** Until the watches have taken most of what they were notified, but for those whose clients are slow. */
  async function taken(tenantId: string, tenant: Tenant): Promise<void> {
    const long = () => queuesOf(tenant).filter((queue) => queue.long());
    for (let sinceMs = performance.now(); tenants.get(tenantId) === tenant; await sleep(lookMs)) {
      while (tenant.held.bytes > heldBytesMax && endSlowest(queuesOf(tenant)));
      const left = long();
      if (left.length === 0) return;
      if (performance.now() - sinceMs < patienceMs) continue;
      for (const queue of left) queue.lags ||= !queue.asking;
      sinceMs = performance.now();
    }
  }

  return {
    stored(tenantId, row) {
      const tenant = tenants.get(tenantId);
      if (tenant === undefined) return;
      if (tenant.waiting.length < rowsMax) tenant.waiting.push(row);
      follow(tenantId, tenant, tenant.waiting.length >= rowsMax);
    },
    wake,
    toldUpTo: (tenantId) => tenants.get(tenantId)?.place,
    past,
    messageOf: (told) => tenants.get(told.query.tenantId)?.message(told) ?? messageMaker()(told),
    heldOf: (tenantId) => followed(tenantId).held,
    async open(tenantId) {
      if (tenants.has(tenantId)) return;
      let made = opening.get(tenantId);
      if (made === undefined) {
        made = feedEnd(sql, tenantId)
          .then((place) => {
            if (begun.has(tenantId)) tenants.set(tenantId, newTenant(place));
          })
          .finally(() => opening.delete(tenantId));
        opening.set(tenantId, made);
      }
      await made;
    },
    begin(tenantId) {
      begun.set(tenantId, (begun.get(tenantId) ?? 0) + 1);
      return () => {
        const left = (begun.get(tenantId) ?? 1) - 1;
        if (left > 0) return void begun.set(tenantId, left);
        begun.delete(tenantId);
        tenants.delete(tenantId);
      };
    },
    add(query, watcher) {
      const { tenantId } = query;
      const tenant = followed(tenantId);
      const digest = Buffer.from(query.digest).toString("hex");
      const group = tenant.groups.get(digest) ?? { query, watchers: new Set() };
      tenant.groups.set(digest, group);
      const late = { group, watcher };
      if (tenant.telling === undefined) group.watchers.add(watcher);
      else tenant.late.push(late);
      follow(tenantId, tenant, true);
      return () => {
        group.watchers.delete(watcher);
        tenant.late = tenant.late.filter((each) => each !== late);
        if (group.watchers.size === 0 && tenant.late.every((each) => each.group !== group)) {
          if (tenant.groups.get(digest) === group) tenant.groups.delete(digest);
        }
      };
    },
    stats: () => ({
      tenants: tenants.size,
      watchers: [...tenants.values()].reduce((sum, tenant) => sum + queuesOf(tenant).length, 0),
    }),
    stop() {
      void rounds.stop();
      tenants.clear();
    },
  };
}

const newTenant = (place: FeedPosition): Tenant => ({
  place,
  groups: new Map(),
  waiting: [],
  telling: undefined,
  late: [],
  following: false,
  more: false,
  held: { bytes: 0 },
  message: messageMaker(),
});

/** Reports changes to all watchers, group by group, in slices. */
async function tellPortion(tenantId: string, tenant: Tenant, telling: Telling): Promise<void> {
  const pace = paced(() => {}, tenantId, { holdsNothing: true });
  tenant.telling = telling;
  for (const { query, watchers } of [...tenant.groups.values()]) {
    for (const [i, each] of telling.changed.entries()) {
      const turn = pace();
      if (turn !== undefined) await turn;
      const told = each && (await changeFor(query, each, telling.placeOf(i), pace));
      if (told !== undefined) for (const watcher of watchers) tellOne(watcher, told);
    }
  }
  // Further ones may come as long as these are reported.
  for (let late = tenant.late[0]; late !== undefined; late = tenant.late[0]) {
    const { group, watcher } = late;
    for (const [i, each] of telling.changed.entries()) {
      const turn = pace();
      if (turn !== undefined) await turn;
      const told = each && (await changeFor(group.query, each, telling.placeOf(i), pace));
      if (tenant.late[0] !== late) break; // it has left meanwhile
      if (told !== undefined) tellOne(watcher, told);
    }
    if (tenant.late[0] !== late) continue;
    tenant.late.shift();
    group.watchers.add(watcher);
  }
  tenant.telling = undefined;
  tenant.place = telling.placeOf(telling.changed.length - 1);
}

function tellOne({ after, queue }: Watcher, told: Told): void {
  if (isBehind(told.place, after)) queue.tell(told);
}

function queuesOf({ groups, late }: Tenant): Queue[] {
  const watchers = [...groups.values()].flatMap((group) => [...group.watchers]);
  return [...watchers, ...late.map(({ watcher }) => watcher)].map(({ queue }) => queue);
}
