import { isDeepStrictEqual } from "node:util";
import type { Db, Sql } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import type { Change } from "./changes.ts";
import type { Fact, FactsText } from "./facts.ts";
import { CLOSED, type Occurrence } from "./lifecycle.ts";

/** The members of an occurrence that change and that queries filter by. */
export type FeedState = Pick<Occurrence, "severity" | "status" | "acknowledged">;

/** One change as the feed keeps it: of an occurrence within one transaction, several reports that only update it are one. */
export interface FeedChange {
  eventId: Buffer;
  number: number;
  kind: "created" | "updated" | "closed";
  /** Undefined when it was created. */
  before: FeedState | undefined;
  after: FeedState;
  lastSeenMs: bigint;
  instanceCount: bigint;
  /** What else was different before it; absent when it was created, and in rows of servers that did not keep it. */
  earlier?: Earlier;
}

/** What an occurrence was like before a change, beside its state. */
export interface Earlier {
  lastSeenMs: bigint;
  instanceCount: bigint;
  /** Those members that the change replaced; undefined: none, "unknown": they were too large to keep. */
  replaced: Replaced | "unknown" | undefined;
}

/** Members of an occurrence before a change that replaced them; `added`: keys that the metadata did not have. */
export interface Replaced {
  startMs?: number;
  endMs?: number | null;
  type?: string;
  summary?: string;
  body?: string;
  metadata?: Record<string, unknown>;
  added?: string[];
}

/** What one transaction changed; with much text, further rows have the rest of its facts. Positions of a tenant have no gap and follow the commits. */
export interface FeedRow {
  position: bigint;
  createdMs: bigint;
  changes: FeedChange[];
  /** What consumers look at; absent: none had a cursor, or it was read without them. */
  facts?: readonly Fact[];
}

/** How long changes are kept. */
export const feedMs = 3_600_000n;

function kindOf({ before, after }: Change): FeedChange["kind"] {
  if (before === undefined) return "created";
  return after.status === CLOSED && before.status !== CLOSED ? "closed" : "updated";
}

const stateOf = ({ severity, status, acknowledged }: FeedState): FeedState => ({ severity, status, acknowledged });

function replacedBy(before: Occurrence, after: Occurrence): Replaced | undefined {
  const replaced: Replaced = {};
  if (before.startMs !== after.startMs) replaced.startMs = Number(before.startMs);
  if (before.endMs !== after.endMs) replaced.endMs = before.endMs === null ? null : Number(before.endMs);
  for (const key of ["type", "summary", "body"] as const) if (before[key] !== after[key]) replaced[key] = before[key];
  if (before.metadata !== after.metadata) {
    const keys = Object.keys(before.metadata).filter((key) => {
      return !Object.hasOwn(after.metadata, key) || !isDeepStrictEqual(before.metadata[key], after.metadata[key]);
    });
    const added = Object.keys(after.metadata).filter((key) => !Object.hasOwn(before.metadata, key));
    if (keys.length > 0) replaced.metadata = Object.fromEntries(keys.map((key) => [key, before.metadata[key]]));
    if (added.length > 0) replaced.added = added;
  }
  for (const _ in replaced) return replaced;
  return undefined;
}

/** How much a row keeps of replaced members, characters of JSON: rows are read and held in memory by the dozen. */
const replacedCharsMax = 512 * 1024;

/** Adds to changes what they replaced; `firsts`: what their occurrences were like before them, `lasts`: after them. */
function addEarlier(firsts: ReadonlyMap<FeedChange, Occurrence>, lasts: ReadonlyMap<FeedChange, Occurrence>): void {
  let chars = 0;
  for (const [change, before] of firsts) {
    const { lastSeenMs, instanceCount } = before;
    const all = chars > replacedCharsMax ? "unknown" : replacedBy(before, lasts.get(change) as Occurrence);
    const size = typeof all === "object" ? JSON.stringify(all).length : 0;
    chars += size;
    change.earlier = { lastSeenMs, instanceCount, replaced: chars > replacedCharsMax && size > 0 ? "unknown" : all };
  }
}

/** Changes as the feed keeps them, in their order. */
export function feedChanges(changes: readonly Change[]): FeedChange[] {
  const found: FeedChange[] = [];
  const latest = new Map<Occurrence, FeedChange>();
  const firsts = new Map<FeedChange, Occurrence>();
  const lasts = new Map<FeedChange, Occurrence>();
  for (const change of changes) {
    const { event, before, after } = change;
    const { number, lastSeenMs, instanceCount } = after;
    const earlier = before && latest.get(before);
    const kind = kindOf(change);
    if (earlier !== undefined && kind === "updated") {
      Object.assign(earlier, { after: stateOf(after), lastSeenMs, instanceCount });
      latest.set(after, earlier);
      lasts.set(earlier, after);
    } else {
      const state = { before: before && stateOf(before), after: stateOf(after) };
      const made: FeedChange = { eventId: event.id, number, kind, ...state, lastSeenMs, instanceCount };
      found.push(made);
      latest.set(after, made);
      lasts.set(made, after);
      if (before !== undefined) firsts.set(made, before);
    }
  }
  addEarlier(firsts, lasts);
  return found;
}

const VERSION = 1;
const CHANGE_BYTES = 47;
const NONE = 255;
const kinds = ["created", "updated", "closed"] as const;

/** Writes what the changes of an occurrence begin with, as the feed stores them. */
export function changeKey(eventId: Buffer, number: number, into = Buffer.allocUnsafe(24), at = 0): Buffer {
  eventId.copy(into, at);
  into.writeUInt32BE(number, at + 20);
  return into;
}

/** Changes as the feed stores them: docs/formats/feed.md. */
export function encodeChanges(changes: readonly FeedChange[]): Buffer {
  const bytes = Buffer.allocUnsafe(1 + changes.length * CHANGE_BYTES);
  bytes[0] = VERSION;
  let at = 1;
  const state = (of: FeedState | undefined, place: number) => {
    bytes[place] = of?.severity ?? NONE;
    bytes[place + 1] = of?.status ?? NONE;
    bytes[place + 2] = of === undefined ? NONE : Number(of.acknowledged);
  };
  for (const { eventId, number, kind, before, after, lastSeenMs, instanceCount } of changes) {
    changeKey(eventId, number, bytes, at);
    bytes[at + 24] = kinds.indexOf(kind);
    state(before, at + 25);
    state(after, at + 28);
    bytes.writeBigInt64BE(lastSeenMs, at + 31);
    bytes.writeBigInt64BE(instanceCount, at + 39);
    at += CHANGE_BYTES;
  }
  return bytes;
}

type StoredEarlier = 0 | [lastSeenMs: number, instanceCount: number, replaced?: Replaced | 1];

/** What changes replaced, as the feed stores it beside them: docs/formats/feed.md. Null when they replaced nothing. */
export function encodeEarlier(changes: readonly FeedChange[]): Buffer | null {
  if (changes.every(({ earlier }) => earlier === undefined)) return null;
  const stored = changes.map(({ earlier }): StoredEarlier => {
    if (earlier === undefined) return 0;
    const { lastSeenMs, instanceCount, replaced } = earlier;
    const rest = replaced === undefined ? [] : [replaced === "unknown" ? 1 : replaced];
    return [Number(lastSeenMs), Number(instanceCount), ...rest] as StoredEarlier;
  });
  return Buffer.from(JSON.stringify(stored));
}

function addStored(changes: readonly FeedChange[], bytes: Buffer): void {
  const stored: StoredEarlier[] = JSON.parse(bytes.toString());
  for (const [i, change] of changes.entries()) {
    const each = stored[i];
    if (each === undefined || each === 0) continue;
    const [lastSeenMs, instanceCount, replaced] = each;
    change.earlier = {
      lastSeenMs: BigInt(lastSeenMs),
      instanceCount: BigInt(instanceCount),
      replaced: replaced === 1 ? "unknown" : replaced,
    };
  }
}

/** What `encodeChanges` and `encodeEarlier` wrote. @throws Error when it is of another version. */
export function decodeChanges(bytes: Buffer, earlier: Buffer | null): FeedChange[] {
  if (bytes[0] !== VERSION) throw new Error(`a row of the feed is of version ${bytes[0]}, which is unknown here`);
  const state = (at: number): FeedState => ({
    severity: bytes[at] as number,
    status: bytes[at + 1] as number,
    acknowledged: bytes[at + 2] === 1,
  });
  const changes: FeedChange[] = [];
  for (let at = 1; at < bytes.byteLength; at += CHANGE_BYTES) {
    changes.push({
      eventId: bytes.subarray(at, at + 20),
      number: bytes.readUInt32BE(at + 20),
      kind: kinds[bytes[at + 24] as number] as FeedChange["kind"],
      before: bytes[at + 25] === NONE ? undefined : state(at + 25),
      after: state(at + 28),
      lastSeenMs: bytes.readBigInt64BE(at + 31),
      instanceCount: bytes.readBigInt64BE(at + 39),
    });
  }
  if (earlier !== null) addStored(changes, earlier);
  return changes;
}

/**
 * Sends the last statements of a transaction that changes occurrences. The lock lasts until the commit is durable, so that
 * positions follow the commits; an aborted transaction gives its position back, and the next one has waited for it. Not a
 * counter in a row: one rewritten by each transaction cannot be pruned while a snapshot is held. Returns a function that
 * returns the rows once the transaction is committed.
 */
export function appendFeed(
  tx: Db,
  tenantId: string,
  { changes, facts, texts }: { changes: readonly Change[]; facts: readonly Fact[]; texts: readonly FactsText[] },
  nowMs: number,
): () => FeedRow[] {
  const createdMs = BigInt(nowMs);
  const rows: FeedRow[] = [{ position: 0n, createdMs, changes: feedChanges(changes) }];
  for (let i = 1; i < texts.length; i++) rows.push({ position: 0n, createdMs, changes: [] });
  let from = 0;
  for (const [i, { count }] of texts.entries()) {
    (rows[i] as FeedRow).facts = facts.slice(from, from + count);
    from += count;
  }
  const statements: Promise<unknown>[] = [
    tx`select from tenant_state where tenant_id = ${tenantId} for no key update`.execute(),
    // Statements of their own: they must see what was committed while the lock waited.
    ...rows.map((row, i) => insertRow(tx, tenantId, row, texts[i])),
  ];
  Promise.all(statements).catch(() => undefined); // the transaction fails with it
  return () => rows;
}

async function insertRow(tx: Db, tenantId: string, row: FeedRow, facts: FactsText | undefined): Promise<void> {
  const [made] = await tx<{ position: bigint }[]>`
    insert into feed (tenant_id, position, created_ms, changes, earlier, facts, fact_count)
    select home.tenant_id,
      coalesce((select position from feed where tenant_id = ${tenantId} order by position desc limit 1), 0) + 1,
      ${row.createdMs}::bigint, ${encodeChanges(row.changes)}::bytea, ${encodeEarlier(row.changes)}::bytea,
      ${facts?.text ?? null}::text, ${facts?.count ?? null}::int4
    from ${home(tx, tenantId)}
    returning position`.execute();
  row.position = made?.position ?? 0n;
}

/**
 * Removes rows that are older than `feedMs`, but none that a consumer still reads, and never the newest: the next position follows it.
 * May be repeated.
 */
export async function pruneFeed(sql: Sql, tenantId: string, nowMs: number): Promise<void> {
  await sql`
    delete from feed
    where tenant_id = ${tenantId} and created_ms < ${BigInt(nowMs) - feedMs}
      and position < (select max(position) from feed where tenant_id = ${tenantId})
      and position <= coalesce((select min(position) from feed_cursors where tenant_id = ${tenantId}), position)`;
}
