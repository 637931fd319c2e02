import { isDeepStrictEqual } from "node:util";
import type { Db, Sql } from "../db/connect.ts";
import { home } from "../db/home-row.ts";
import type { Change } from "./changes.ts";
import type { Fact, FactsText } from "./facts.ts";
import { CLOSED, type Occurrence } from "./lifecycle.ts";
import { occurrenceText } from "./occurrences.ts";

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

/** A report or change as the feed keeps it. "again": with the latest entry of its occurrence before it, it is one change, which reports only update. */
export interface FeedEntry extends Omit<FeedChange, "kind"> {
  kind: FeedChange["kind"] | "again";
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
  changes: readonly FeedChange[];
  /** What consumers look at; absent: none had a cursor, or it was read without them. */
  facts?: readonly Fact[];
}

/** How long changes are kept. */
export const feedMs = 3_600_000n;

function kindOf({ before, after }: Pick<Fact, "before" | "after">): FeedChange["kind"] {
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
function addEarlier(firsts: ReadonlyMap<FeedEntry, Occurrence>, lasts: ReadonlyMap<FeedEntry, Occurrence>): void {
  let chars = 0;
  for (const [change, before] of firsts) {
    const { lastSeenMs, instanceCount } = before;
    const all = chars > replacedCharsMax ? "unknown" : replacedBy(before, lasts.get(change) as Occurrence);
    const size = typeof all === "object" ? JSON.stringify(all).length : 0;
    chars += size;
    change.earlier = { lastSeenMs, instanceCount, replaced: chars > replacedCharsMax && size > 0 ? "unknown" : all };
  }
}

/** Returns the entry of a report or change, as if it were the only one. */
export function entryOf({ event, before, after }: Pick<Fact, "event" | "before" | "after">): FeedEntry {
  const { number, lastSeenMs, instanceCount } = after;
  const state = { before: before && stateOf(before), after: stateOf(after) };
  return { eventId: event.id, number, kind: kindOf({ before, after }), ...state, lastSeenMs, instanceCount };
}

/** Returns the entries of reports and changes: the first of several that are one change has what all of them replaced. */
export function entriesOf(changes: readonly Change[]): FeedEntry[] {
  const latest = new Map<Occurrence, FeedEntry>();
  const firsts = new Map<FeedEntry, Occurrence>();
  const lasts = new Map<FeedEntry, Occurrence>();
  const entries = changes.map((change) => {
    const { before, after } = change;
    const entry = entryOf(change);
    const first = before && entry.kind === "updated" ? latest.get(before) : undefined;
    if (first !== undefined) entry.kind = "again";
    else if (before !== undefined) firsts.set(entry, before);
    latest.set(after, first ?? entry);
    lasts.set(first ?? entry, after);
    return entry;
  });
  addEarlier(firsts, lasts);
  return entries;
}

/** Tells whether all changes of a row are repeats, which change nothing but the time and the count. */
export function isRepeats({ changes }: FeedRow): boolean {
  return changes.every(
    ({ before, after, earlier }) =>
      isDeepStrictEqual(before, after) && earlier !== undefined && earlier.replaced === undefined,
  );
}

/** Returns the changes that entries are, in their order. */
export function merged(entries: readonly FeedEntry[]): readonly FeedChange[] {
  if (entries.every(({ kind }) => kind !== "again")) return entries as readonly FeedChange[];
  const changes: FeedChange[] = [];
  const latest = new Map<string, FeedChange>();
  for (const entry of entries) {
    const { kind, after, lastSeenMs, instanceCount } = entry;
    const first = kind === "again" ? latest.get(occurrenceText(entry)) : undefined;
    if (first !== undefined) Object.assign(first, { after, lastSeenMs, instanceCount });
    else {
      const change: FeedChange = { ...entry, kind: kind === "again" ? "updated" : kind };
      latest.set(occurrenceText(entry), change);
      changes.push(change);
    }
  }
  return changes;
}

const VERSION = 2;
const VERSION_OF_0_3 = 1;
const CHANGE_BYTES = 47;
const NONE = 255;
const kinds = ["created", "updated", "closed", "again"] as const;

/** Writes what the changes of an occurrence begin with, as the feed stores them. */
export function changeKey(eventId: Buffer, number: number, into = Buffer.allocUnsafe(24), at = 0): Buffer {
  eventId.copy(into, at);
  into.writeUInt32BE(number, at + 20);
  return into;
}

/** Entries as the feed stores them: docs/formats/feed.md. */
export function encodeChanges(changes: readonly FeedEntry[], oldForm = false): Buffer {
  const bytes = Buffer.allocUnsafe(1 + changes.length * CHANGE_BYTES);
  bytes[0] = oldForm ? VERSION_OF_0_3 : VERSION;
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
export function encodeEarlier(changes: readonly FeedEntry[]): Buffer | null {
  if (changes.every(({ earlier }) => earlier === undefined)) return null;
  const stored = changes.map(({ earlier }): StoredEarlier => {
    if (earlier === undefined) return 0;
    const { lastSeenMs, instanceCount, replaced } = earlier;
    const rest = replaced === undefined ? [] : [replaced === "unknown" ? 1 : replaced];
    return [Number(lastSeenMs), Number(instanceCount), ...rest] as StoredEarlier;
  });
  return Buffer.from(JSON.stringify(stored));
}

function addStored(changes: readonly FeedEntry[], bytes: Buffer): void {
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

/** Tells whether a row is as 0.3 writes it: its facts have entries of their own. */
export const isOf03 = (bytes: Buffer) => bytes[0] === VERSION_OF_0_3;

/** Reads the changes that `encodeChanges` and `encodeEarlier` wrote. @throws Error as `decodeEntries` */
export function decodeChanges(bytes: Buffer, earlier: Buffer | null): readonly FeedChange[] {
  const entries = decodeEntries(bytes);
  if (earlier !== null) addStored(entries, earlier);
  return merged(entries);
}

/** Reads the entries that `encodeChanges` wrote. @throws Error for what is none of them */
export function decodeEntries(bytes: Buffer): FeedEntry[] {
  if (bytes[0] !== VERSION && !isOf03(bytes))
    throw new Error(`a row of the feed is of version ${bytes[0]}, which is unknown here`);
  if (bytes.byteLength % CHANGE_BYTES !== 1)
    throw new Error(`a row of the feed is cut off after ${bytes.byteLength} bytes`);
  const state = (at: number): FeedState => ({
    severity: bytes[at] as number,
    status: bytes[at + 1] as number,
    acknowledged: bytes[at + 2] === 1,
  });
  const changes: FeedEntry[] = [];
  for (let at = 1; at < bytes.byteLength; at += CHANGE_BYTES) {
    const kind = kinds[bytes[at + 24] as number];
    if (kind === undefined)
      throw new Error(`a row of the feed has a change of kind ${bytes[at + 24]}, which is unknown here`);
    changes.push({
      eventId: bytes.subarray(at, at + 20),
      number: bytes.readUInt32BE(at + 20),
      kind,
      before: bytes[at + 25] === NONE ? undefined : state(at + 25),
      after: state(at + 28),
      lastSeenMs: bytes.readBigInt64BE(at + 31),
      instanceCount: bytes.readBigInt64BE(at + 39),
    });
  }
  return changes;
}

/** What is appended to the feed. */
interface ToAppend {
  changes: readonly Change[];
  /** Of all changes, or none. */
  facts: readonly Fact[];
  texts: readonly FactsText[];
  /** Whether a server of 0.3 may read it. */
  oldForm?: boolean;
}

/** A row with its columns. */
interface Stored {
  row: FeedRow;
  changes: Buffer;
  earlier: Buffer | null;
  text: FactsText | undefined;
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
  { changes, facts, texts, oldForm = false }: ToAppend,
  nowMs: number,
): () => FeedRow[] {
  const stored: Stored[] = [];
  for (let i = 0, from = 0; i === 0 || i < texts.length; i++) {
    const text = texts[i];
    const to = from + (text?.count ?? changes.length);
    // In the old form the first row has all changes.
    const entries = entriesOf(oldForm ? (i === 0 ? changes : []) : changes.slice(from, to));
    const row: FeedRow = { position: 0n, createdMs: BigInt(nowMs), changes: merged(entries) };
    if (text !== undefined) row.facts = facts.slice(from, to);
    const kept = oldForm || text === undefined ? row.changes : entries;
    stored.push({ row, changes: encodeChanges(kept, oldForm), earlier: encodeEarlier(kept), text });
    from = to;
  }
  const statements: Promise<unknown>[] = [
    tx`select from tenant_state where tenant_id = ${tenantId} for no key update`.execute(),
    // Statements of their own: they must see what was committed while the lock waited.
    ...stored.map((each) => insertRow(tx, tenantId, each)),
  ];
  Promise.all(statements).catch(() => undefined); // the transaction fails with it
  return () => stored.map(({ row }) => row);
}

async function insertRow(tx: Db, tenantId: string, { row, changes, earlier, text }: Stored): Promise<void> {
  const [made] = await tx<{ position: bigint }[]>`
    insert into feed (tenant_id, position, created_ms, changes, earlier, facts, fact_count)
    select home.tenant_id,
      coalesce((select position from feed where tenant_id = ${tenantId} order by position desc limit 1), 0) + 1,
      ${row.createdMs}::bigint, ${changes}::bytea, ${earlier}::bytea, ${text?.text ?? null}::text, ${text?.count ?? null}::int4
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
