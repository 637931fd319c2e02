import { Code } from "@connectrpc/connect";
import type { WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Sql } from "../../db/connect.ts";
import type { FeedRow } from "../feed.ts";
import type { Filter } from "./filter.ts";
import { changedRows, feedEnd, rowsBehind } from "./follow.ts";
import type { Place } from "./place.ts";

/** How many rows that this process has written wait in memory; beyond them they are read from the feed. */
const rowsMax = 100;
const pollMs = 1000;

/** What a watch gets of the feed: a message, or only a place behind a row in which nothing matched. */
export interface Told {
  place: Place;
  message: WatchEventsResponse | undefined;
  /** About how much memory the message takes. */
  bytes: number;
}

/** One watch that follows the feed as it grows. */
export interface Watcher {
  /** Gets changes behind this position only. */
  after: bigint;
  /** Called in the order of the feed. */
  tell(told: Told): void;
  /** Called when the feed cannot be followed any further. */
  fail(error: unknown): void;
}

interface Group {
  filter: Filter;
  watchers: Set<Watcher>;
}

interface Tenant {
  /** Behind the last row that was delivered. */
  place: Place;
  /** By the digest of the query: a change is judged once for all that ask the same. */
  groups: Map<string, Group>;
  waiting: FeedRow[];
  following: boolean;
  more: boolean;
}

/** All watches of this process. */
export interface Watches {
  /** Delivers a row that this process has stored itself. */
  stored(tenantId: string, row: FeedRow): void;
  /** A hint that the feeds of these tenants, or of all, have grown. */
  wake(tenantIds?: readonly string[]): void;
  /** The position up to which a tenant's feed was delivered; undefined when this process does not follow it. */
  toldUpTo(tenantId: string): bigint | undefined;
  /** A watch of this tenant begins. Answers what ends it: without any the tenant's feed is followed no longer. */
  begin(tenantId: string): () => void;
  /** Adds a watcher; answers the function that removes it. Call `open` before. */
  add(tenantId: string, digest: string, filter: Filter, watcher: Watcher): () => void;
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
export function watches(sql: Sql): Watches {
  const tenants = new Map<string, Tenant>();
  const opening = new Map<string, Promise<void>>();
  /** How many watches of a tenant have begun and not ended. */
  const begun = new Map<string, number>();
  const timer = setInterval(() => wake(), pollMs).unref();

  function wake(tenantIds?: readonly string[]): void {
    for (const tenantId of tenantIds ?? tenants.keys()) {
      const tenant = tenants.get(tenantId);
      if (tenant !== undefined) follow(tenantId, tenant, true);
    }
  }

  function follow(tenantId: string, tenant: Tenant, more: boolean): void {
    tenant.more ||= more;
    if (tenant.following) return;
    tenant.following = true;
    advance(tenantId, tenant).catch((error) => {
      // Missing rows of the feed end its watches; while the database is unavailable the read is repeated later.
      if ((error as { code?: unknown }).code !== Code.InvalidArgument) return;
      tenants.delete(tenantId);
      for (const watcher of watchersOf(tenant)) watcher.fail(error);
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
    const { position, createdMs } = row;
    const first = position === tenant.place.position ? tenant.place.passed : 0;
    for await (const { from, changed } of changedRows(sql, tenantId, row, first)) {
      for (const { filter, watchers } of tenant.groups.values()) {
        const told = changed.flatMap((each, i): Told[] => {
          const message = each && filter(each);
          if (message === undefined) return [];
          return [{ place: { position, createdMs, passed: from + i + 1 }, message, bytes: bytesOf(message) }];
        });
        for (const watcher of [...watchers]) {
          if (position > watcher.after) for (const each of told) watcher.tell(each);
        }
      }
      tenant.place = { position, createdMs, passed: from + changed.length };
    }
    tenant.place = { position, createdMs, passed: Number.MAX_SAFE_INTEGER };
    for (const watcher of watchersOf(tenant)) {
      if (position > watcher.after) watcher.tell({ place: tenant.place, message: undefined, bytes: 0 });
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
    toldUpTo: (tenantId) => tenants.get(tenantId)?.place.position,
    async open(tenantId) {
      if (tenants.has(tenantId)) return;
      let made = opening.get(tenantId);
      if (made === undefined) {
        made = feedEnd(sql, tenantId)
          .then((place) => {
            if (begun.has(tenantId))
              tenants.set(tenantId, { place, groups: new Map(), waiting: [], following: false, more: false });
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
    add(tenantId, digest, filter, watcher) {
      const tenant = tenants.get(tenantId);
      if (tenant === undefined) throw new Error("the feed of this tenant is not followed");
      const group = tenant.groups.get(digest) ?? { filter, watchers: new Set() };
      tenant.groups.set(digest, group);
      group.watchers.add(watcher);
      follow(tenantId, tenant, true);
      return () => {
        group.watchers.delete(watcher);
        if (group.watchers.size === 0) tenant.groups.delete(digest);
      };
    },
    stats: () => ({
      tenants: tenants.size,
      watchers: [...tenants.values()].reduce((sum, tenant) => sum + watchersOf(tenant).length, 0),
    }),
    stop() {
      clearInterval(timer);
      tenants.clear();
    },
  };
}

function watchersOf({ groups }: Tenant): Watcher[] {
  return [...groups.values()].flatMap(({ watchers }) => [...watchers]);
}

function bytesOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 32;
  for (const [key, member] of Object.entries(value)) bytes += key.length + bytesOf(member);
  return bytes;
}
