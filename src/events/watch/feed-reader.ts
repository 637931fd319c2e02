import { byteaArray, int4Array } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { planWithoutValues } from "../../db/plans.ts";
import { transaction } from "../../db/transaction.ts";
import { decodeChanges, type FeedChange, type FeedRow } from "../feed.ts";
import type { EventRow } from "../fields.ts";
import { occurrenceText } from "../occurrences.ts";
import { lookedUp, occurrenceColumns } from "../rows.ts";
import { type FeedPosition, placeExpired } from "./cursor.ts";
import type { ChangedRow } from "./filter.ts";

/** How many rows of the feed are read at once. */
const rowsMax = 20;

interface StoredFeedRow {
  position: bigint;
  created_ms: bigint;
  changes: Buffer;
  earlier: Buffer | null;
}

const toFeedRow = ({ position, created_ms, changes, earlier }: StoredFeedRow): FeedRow => ({
  position,
  createdMs: created_ms,
  changes: decodeChanges(changes, earlier),
});

/** The place after the newest row of a tenant's feed. */
export async function feedEnd(db: Db, tenantId: string): Promise<FeedPosition> {
  const [row] = await db<{ position: bigint; created_ms: bigint; bytes: number }[]>`
    select position, created_ms from feed where tenant_id = ${tenantId} order by position desc limit 1`;
  return { position: row?.position ?? 0n, createdMs: row?.created_ms ?? 0n, passed: Number.MAX_SAFE_INTEGER };
}

/**
 * The rows of the feed after a place, a few at a time; the first of them without the changes that are passed. An empty list
 * means that there are none yet. @throws code 3 when rows after the place are no longer kept
 */
export async function rowsBehind(db: Db, tenantId: string, place: FeedPosition): Promise<FeedRow[]> {
  const rows = await db<StoredFeedRow[]>`
    select position, created_ms, changes, earlier from feed
    where tenant_id = ${tenantId} and position >= ${place.position}
    order by position limit ${rowsMax + 1}`;
  const found = rows.map(toFeedRow);
  const first = found[0];
  if (place.position === 0n) {
    if (first !== undefined && first.position > 1n) throw placeExpired();
    return found;
  }
  if (first?.position !== place.position || first.createdMs !== place.createdMs) throw placeExpired();
  if (place.passed < first.changes.length) return found;
  return found.slice(1);
}

/** How many positions of the feed are read together for all watches that catch up. */
export const blockRows = 20;

/** The rows of the feed from a position on, as many as a block has. */
export async function feedBlock(db: Db, tenantId: string, first: bigint): Promise<FeedRow[]> {
  const rows = await db<StoredFeedRow[]>`
    select position, created_ms, changes, earlier from feed
    where tenant_id = ${tenantId} and position >= ${first} and position < ${first + BigInt(blockRows)}
    order by position`;
  return rows.map(toFeedRow);
}

/** How many changes are read at once: their occurrences may be large, and the driver makes all rows of an answer in one go. */
export const changesMax = 64;

/** These changes with their occurrences as they are now; undefined for those that were deleted since. By primary keys alone. */
export async function changedRows(
  db: Db,
  tenantId: string,
  changes: readonly FeedChange[],
): Promise<(ChangedRow | undefined)[]> {
  const keys = [...new Map(changes.map((change) => [occurrenceText(change), change])).values()];
  const rows = await transaction(db, (tx) => {
    planWithoutValues(tx);
    return tx<EventRow[]>`
      select ${occurrenceColumns(tx)}, e.alert_labels,
        (select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = o.event_id) as count
      from unnest(
          ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
          ${int4Array(keys.map(({ number }) => number))}::int4[]
        ) as changed (event_id, number)
        cross join lateral (
          select * from occurrences
          where tenant_id = ${tenantId} and event_id = changed.event_id and number = changed.number offset 0
        ) as o
        ${lookedUp(tx, tenantId)}`;
  });
  const byKey = new Map(rows.map((row) => [occurrenceText({ eventId: row.event_id, number: row.number }), row]));
  return changes.map((change) => {
    const row = byKey.get(occurrenceText(change));
    return row && { change, row, bytes: bytesOf(row) + bytesOf(change.earlier), waiting: 0 };
  });
}

/** About how much memory a value takes. */
function bytesOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (value instanceof Uint8Array) return value.byteLength;
  let bytes = 32;
  for (const [key, member] of Object.entries(value)) bytes += key.length + bytesOf(member);
  return bytes;
}
