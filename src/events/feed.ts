import type { Db, Sql } from "../db/connect.ts";
import type { Change } from "./changes.ts";
import { CLOSED, type Occurrence } from "./lifecycle.ts";

/** The members of an occurrence that change and that queries filter by. */
export type State = Pick<Occurrence, "severity" | "status" | "acknowledged">;

/** One change as the feed keeps it: of an occurrence within one transaction, several reports that only update it are one. */
export interface FeedChange {
  eventId: Buffer;
  number: number;
  kind: "created" | "updated" | "closed";
  /** Undefined when it was created. */
  before: State | undefined;
  after: State;
  lastSeenMs: bigint;
  instanceCount: bigint;
}

/** What one transaction changed. Positions of a tenant have no gap and follow the commits. */
export interface FeedRow {
  position: bigint;
  createdMs: bigint;
  changes: FeedChange[];
}

/** How long changes are kept. */
export const feedMs = 3_600_000n;

function kindOf({ before, after }: Change): FeedChange["kind"] {
  if (before === undefined) return "created";
  return after.status === CLOSED && before.status !== CLOSED ? "closed" : "updated";
}

const stateOf = ({ severity, status, acknowledged }: State): State => ({ severity, status, acknowledged });

/** Changes as the feed keeps them, in their order. */
export function feedChanges(changes: readonly Change[]): FeedChange[] {
  const found: FeedChange[] = [];
  const latest = new Map<Occurrence, FeedChange>();
  for (const change of changes) {
    const { event, before, after } = change;
    const { number, lastSeenMs, instanceCount } = after;
    const earlier = before && latest.get(before);
    const kind = kindOf(change);
    if (earlier !== undefined && kind === "updated") {
      Object.assign(earlier, { after: stateOf(after), lastSeenMs, instanceCount });
      latest.set(after, earlier);
    } else {
      const state = { before: before && stateOf(before), after: stateOf(after) };
      const made = { eventId: event.id, number, kind, ...state, lastSeenMs, instanceCount };
      found.push(made);
      latest.set(after, made);
    }
  }
  return found;
}

const VERSION = 1;
const CHANGE_BYTES = 47;
const NONE = 255;
const kinds = ["created", "updated", "closed"] as const;

/** Changes as the feed stores them: docs/formats/feed.md. */
export function encodeChanges(changes: readonly FeedChange[]): Buffer {
  const bytes = Buffer.allocUnsafe(1 + changes.length * CHANGE_BYTES);
  bytes[0] = VERSION;
  let at = 1;
  const state = (of: State | undefined, place: number) => {
    bytes[place] = of?.severity ?? NONE;
    bytes[place + 1] = of?.status ?? NONE;
    bytes[place + 2] = of === undefined ? NONE : Number(of.acknowledged);
  };
  for (const { eventId, number, kind, before, after, lastSeenMs, instanceCount } of changes) {
    eventId.copy(bytes, at);
    bytes.writeUInt32BE(number, at + 20);
    bytes[at + 24] = kinds.indexOf(kind);
    state(before, at + 25);
    state(after, at + 28);
    bytes.writeBigInt64BE(lastSeenMs, at + 31);
    bytes.writeBigInt64BE(instanceCount, at + 39);
    at += CHANGE_BYTES;
  }
  return bytes;
}

/** What `encodeChanges` wrote. @throws Error when it is of another version. */
export function decodeChanges(bytes: Buffer): FeedChange[] {
  if (bytes[0] !== VERSION) throw new Error(`a row of the feed is of version ${bytes[0]}, which is unknown here`);
  const state = (at: number): State => ({
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
  return changes;
}

/**
 * Sends the last statements of a transaction that changes occurrences. The lock lasts until the commit is durable, so that
 * positions follow the commits; an aborted transaction gives its position back, and the next one has waited for it. Not a
 * counter in a row: one rewritten by each transaction cannot be pruned while a snapshot is held. Answers a function that
 * returns the row once the transaction is committed.
 */
export function appendFeed(
  tx: Db,
  tenantId: string,
  changes: readonly Change[],
  { nowMs, firstOfTenant }: { nowMs: number; firstOfTenant: boolean },
): () => FeedRow {
  const row: FeedRow = { position: 0n, createdMs: BigInt(nowMs), changes: feedChanges(changes) };
  const statements: PromiseLike<unknown>[] = [];
  if (firstOfTenant) {
    statements.push(tx`insert into tenant_state (tenant_id) values (${tenantId}) on conflict do nothing`.execute());
  }
  statements.push(
    tx`select from tenant_state where tenant_id = ${tenantId} for no key update`.execute(),
    // A statement of its own: it must see what was committed while the lock waited.
    tx<[{ position: bigint }]>`
      insert into feed (tenant_id, position, created_ms, changes)
      values (
        ${tenantId},
        coalesce((select position from feed where tenant_id = ${tenantId} order by position desc limit 1), 0) + 1,
        ${row.createdMs},
        ${encodeChanges(row.changes)}
      )
      returning position`
      .execute()
      .then(([{ position }]) => {
        row.position = position;
      }),
  );
  Promise.all(statements).catch(() => undefined); // the transaction fails with it
  return () => row;
}

/** Removes rows that are older than `feedMs`, but never the newest: the next position follows it. May be repeated. */
export async function pruneFeed(sql: Sql, tenantId: string, nowMs: number): Promise<void> {
  await sql`
    delete from feed
    where tenant_id = ${tenantId} and created_ms < ${BigInt(nowMs) - feedMs}
      and position < (select max(position) from feed where tenant_id = ${tenantId})`;
}
