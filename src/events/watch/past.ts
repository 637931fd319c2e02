import { setTimeout as sleep } from "node:timers/promises";
import type { WatchEventsResponse } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Sql } from "../../db/connect.ts";
import type { Pace } from "../../event-loop.ts";
import { type Limiter, limiter } from "../../limiter.ts";
import type { FeedRow } from "../feed.ts";
import { type FeedPosition, placeExpired } from "./cursor.ts";
import { blockRows, changedRows, changesMax, feedBlock, feedEnd } from "./feed-reader.ts";
import type { ChangedRow } from "./filter.ts";
import { changeFor, messageMaker, type Told, type WatchedQuery } from "./shared-messages.ts";

/** Changes of one row of the feed with their occurrences, as all watches of the tenant share them that catch up. */
export interface Portion {
  /** The place of its first change within the row. */
  readonly from: number;
  /** How many changes it has, with those that do not match and those whose occurrences are gone. */
  readonly count: number;
  /** What the watches of a query are sent of it. */
  told(query: WatchedQuery, pace: Pace): Promise<readonly Told[]>;
  message(told: Told): WatchEventsResponse;
  /** A watch needs it no longer. */
  release(): void;
}

/** Reads what happened before, for watches that begin or resume. */
export interface Past {
  /** A watch of the tenant catches up. Returns what ends it. */
  begin(tenantId: string): () => void;
  /** The next rows after a place, the first one whole. @throws code 3 when rows after the place are no longer kept */
  rows(tenantId: string, place: FeedPosition): Promise<FeedRow[]>;
  /** The portion of a row in which a change is. To be released. @throws the signal's reason */
  portion(tenantId: string, row: FeedRow, change: number, signal: AbortSignal): Promise<Portion>;
}

/** Reads at once of all tenants; one alone has half of them. */
const readsMax = 4;
/** What portions may take that are in use by watches of one tenant, and what is kept of others, bytes. */
const usedBytesMax = 64 * 1024 * 1024;
const keptBytesMax = 16 * 1024 * 1024;
const blocksMax = 4;
/** For how many queries what matches of a portion is kept. */
const queriesMax = 32;

interface Kept {
  read: Promise<(ChangedRow | undefined)[]>;
  users: number;
  bytes: number;
  told: Map<string, Promise<Told[]>>;
}

interface OfTenant {
  watches: number;
  blocks: Map<bigint, Promise<FeedRow[]>>;
  portions: Map<string, Kept>;
  bytes: number;
  /** Portions are read one after the other, so that no more than one is beyond the bound. */
  turns: Limiter;
  message(told: Told): WatchEventsResponse;
}

/** Many watches resume at once after a restart, most of them at the same places: each place is read once. */
export function pastReader(sql: Sql): Past {
  const tenants = new Map<string, OfTenant>();
  const turns = limiter({ max: readsMax, what: "reads of feeds", waitingMax: 1e6, shares: { tenant: 1 } });

  const ofTenant = (tenantId: string) => {
    const found = tenants.get(tenantId) ?? newTenant();
    tenants.set(tenantId, found);
    return found;
  };

  function block(tenantId: string, first: bigint): Promise<FeedRow[]> {
    const { blocks } = ofTenant(tenantId);
    const known = blocks.get(first);
    if (known !== undefined) return known;
    const read = turns.run({ tenant: tenantId }, () => feedBlock(sql, tenantId, first));
    blocks.set(first, read);
    read.then(
      (rows) => {
        // What may still grow is read again.
        const whole = rows.at(-1)?.position === first + BigInt(blockRows - 1);
        if (!whole && blocks.get(first) === read) blocks.delete(first);
        if (blocks.size > blocksMax) blocks.delete(blocks.keys().next().value as bigint);
      },
      () => blocks.get(first) === read && blocks.delete(first),
    );
    return read;
  }

  return {
    begin(tenantId) {
      const of = ofTenant(tenantId);
      of.watches += 1;
      return () => {
        of.watches -= 1;
        if (of.watches === 0) tenants.delete(tenantId);
      };
    },
    rows: (tenantId, place) =>
      rowsFrom(
        place,
        (first) => block(tenantId, first),
        () => feedEnd(sql, tenantId),
      ),
    async portion(tenantId, row, change, signal) {
      const of = ofTenant(tenantId);
      const from = change - (change % changesMax);
      const key = `${row.position}/${row.createdMs}/${from}`;
      const read = () => changedRows(sql, tenantId, row.changes.slice(from, from + changesMax));
      const kept = await use(of, key, () => keep(of, turns.run({ tenant: tenantId }, read)), signal);
      try {
        return portionOf(of, row, from, kept, await kept.read);
      } catch (error) {
        kept.users -= 1;
        if (of.portions.get(key) === kept) of.portions.delete(key);
        throw error;
      }
    },
  };
}

const newTenant = (): OfTenant => ({
  watches: 0,
  blocks: new Map(),
  portions: new Map(),
  bytes: 0,
  turns: limiter({ max: 1, what: "portions are read", waitingMax: Infinity, shares: {} }),
  message: messageMaker(),
});

/** A portion, read when there is room for it. */
async function use(of: OfTenant, key: string, read: () => Kept, signal: AbortSignal): Promise<Kept> {
  const known = of.portions.get(key);
  if (known !== undefined) {
    known.users += 1;
    return known;
  }
  const turn = await of.turns.turn({}, signal);
  try {
    while (!of.portions.has(key) && of.bytes > usedBytesMax) {
      signal.throwIfAborted();
      await sleep(20);
    }
    const kept = of.portions.get(key) ?? read();
    of.portions.set(key, kept);
    kept.users += 1;
    await kept.read.catch(() => undefined);
    return kept;
  } finally {
    turn.release();
  }
}

/** Forgets what no one uses, the oldest first, when much is kept. */
function evict(of: OfTenant) {
  for (const [key, kept] of of.portions) {
    if (of.bytes <= keptBytesMax) return;
    if (kept.users > 0) continue;
    of.portions.delete(key);
    of.bytes -= kept.bytes;
  }
}

function portionOf(of: OfTenant, row: FeedRow, from: number, kept: Kept, changed: (ChangedRow | undefined)[]) {
  const { position, createdMs } = row;
  let released = false;
  async function judge(query: WatchedQuery, pace: Pace): Promise<Told[]> {
    const found: Told[] = [];
    for (const [i, each] of changed.entries()) {
      const turn = pace();
      if (turn !== undefined) await turn;
      const told = each && (await changeFor(query, each, { position, createdMs, passed: from + i + 1 }, pace));
      if (told === undefined) continue;
      told.waiting = 1; // its message is kept for the others
      found.push(told);
    }
    return found;
  }
  return {
    from,
    count: changed.length,
    message: of.message,
    told(query: WatchedQuery, pace: Pace) {
      const key = Buffer.from(query.digest).toString("latin1");
      const known = kept.told.get(key);
      if (known !== undefined) return known;
      const told = judge(query, pace);
      if (kept.told.size < queriesMax) kept.told.set(key, told);
      return told;
    },
    release() {
      if (released) return;
      released = true;
      kept.users -= 1;
      evict(of);
    },
  };
}

/** The rows of a feed from a place on, those of one block. @throws when the place has expired */
async function rowsFrom(
  { position, createdMs, passed }: FeedPosition,
  block: (first: bigint) => Promise<FeedRow[]>,
  end: () => Promise<FeedPosition>,
): Promise<FeedRow[]> {
  const size = BigInt(blockRows);
  const first = position - (position % size);
  let rows = (await block(first)).filter((row) => row.position >= position);
  if (position === 0n) {
    const oldest = rows[0]?.position ?? (await end()).position;
    if (oldest > 1n && rows[0]?.position !== 1n) throw placeExpired();
  } else {
    if (rows[0]?.position !== position || rows[0].createdMs !== createdMs) throw placeExpired();
    if (passed >= rows[0].changes.length) rows = rows.slice(1);
  }
  return rows.length > 0 || position !== first + size - 1n ? rows : await block(first + size);
}

function keep(of: OfTenant, read: Kept["read"]): Kept {
  const kept: Kept = { read, users: 0, bytes: 0, told: new Map() };
  read.then(
    (changed) => {
      kept.bytes = changed.reduce((sum, each) => sum + (each?.bytes ?? 0), 0);
      of.bytes += kept.bytes;
    },
    () => {},
  );
  return kept;
}
