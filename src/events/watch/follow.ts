import { byteaArray, int4Array } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { decodeChanges, type FeedChange, type FeedRow } from "../feed.ts";
import type { EventRow } from "../fields.ts";
import { keyText } from "../occurrences.ts";
import { lookedUp, occurrenceColumns } from "../rows.ts";
import type { ChangedRow } from "./filter.ts";
import { type Place, placeExpired } from "./place.ts";

/** How many rows of the feed are read at once. */
const rowsMax = 20;

/** The place behind the newest row of a tenant's feed. */
export async function feedEnd(db: Db, tenantId: string): Promise<Place> {
  const [row] = await db<{ position: bigint; created_ms: bigint; bytes: number }[]>`
    select position, created_ms from feed where tenant_id = ${tenantId} order by position desc limit 1`;
  return { position: row?.position ?? 0n, createdMs: row?.created_ms ?? 0n, passed: Number.MAX_SAFE_INTEGER };
}

/**
 * The rows of the feed behind a place, a few at a time; the first of them without the changes that are passed. An empty list
 * means that there are none yet. @throws code 3 when rows behind the place are no longer kept
 */
export async function rowsBehind(db: Db, tenantId: string, place: Place): Promise<FeedRow[]> {
  const rows = await db<{ position: bigint; created_ms: bigint; changes: Buffer }[]>`
    select position, created_ms, changes from feed
    where tenant_id = ${tenantId} and position >= ${place.position}
    order by position limit ${rowsMax + 1}`;
  const found = rows.map((row) => ({
    position: row.position,
    createdMs: row.created_ms,
    changes: decodeChanges(row.changes),
  }));
  const first = found[0];
  if (place.position === 0n) {
    if (first !== undefined && first.position > 1n) throw placeExpired();
    return found;
  }
  if (first?.position !== place.position || first.createdMs !== place.createdMs) throw placeExpired();
  if (place.passed < first.changes.length) return found;
  return found.slice(1);
}

/** How many changes are in memory at once: their occurrences may be large. */
const changesMax = 250;

/**
 * The changes of a row of the feed from one on, in portions that begin at `from`, each with its occurrence as it is now; without
 * those that were deleted since.
 */
export async function* changedRows(
  db: Db,
  tenantId: string,
  { changes }: FeedRow,
  first = 0,
): AsyncGenerator<{ from: number; changed: (ChangedRow | undefined)[] }> {
  for (let from = first; from < changes.length; from += changesMax) {
    yield { from, changed: await portionOf(db, tenantId, changes.slice(from, from + changesMax)) };
  }
}

async function portionOf(db: Db, tenantId: string, changes: readonly FeedChange[]) {
  const keys = [...new Map(changes.map((change) => [keyText(change), change])).values()];
  // Primary keys alone.
  const rows = await db<EventRow[]>`
    select ${occurrenceColumns(db)},
      (select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = o.event_id) as count
    from unnest(
        ${byteaArray(keys.map(({ eventId }) => eventId))}::bytea[],
        ${int4Array(keys.map(({ number }) => number))}::int4[]
      ) as changed (event_id, number)
      cross join lateral (
        select * from occurrences
        where tenant_id = ${tenantId} and event_id = changed.event_id and number = changed.number limit 1
      ) as o
      ${lookedUp(db, tenantId)}`;
  const byKey = new Map(rows.map((row) => [keyText({ eventId: row.event_id, number: row.number }), row]));
  return changes.map((change) => {
    const row = byKey.get(keyText(change));
    return row && { change, row };
  });
}
