import type { Db } from "../../db/connect.ts";
import { type Fact, newRoot } from "../facts.ts";
import { decodeChanges } from "../feed.ts";
import { lockEvents } from "../lock.ts";
import { keyText, type OccurrenceKey, readOccurrences } from "../occurrences.ts";

/** Reads occurrences by `keyText` as they are now, under the locks of their events: nothing comes between this and what is decided of them. */
export async function occurrencesNow(tx: Db, tenantId: string, keys: readonly OccurrenceKey[]) {
  const eventIds = new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  await lockEvents(tx, tenantId, [...eventIds.values()]);
  return await readOccurrences(tx, tenantId, keys);
}

/**
 * Makes the facts of a row that has none: its occurrences as they are now, for this transaction alone. A server of 0.2 wrote it, which has
 * matched its changes by itself: what changed here before, and was matched after it, is looked at once more.
 */
export async function factsNow(tx: Db, tenantId: string, changes: Buffer): Promise<Fact[]> {
  const keys = new Map(decodeChanges(changes, null).map((change) => [keyText(change), change]));
  if (keys.size === 0) return [];
  const found = await occurrencesNow(tx, tenantId, [...keys.values()]);
  return [...found.values()].map(({ event, occurrence }) => {
    const seen = { before: occurrence, after: occurrence, reported: false, news: false };
    return { event, ...seen, chain: [], root: newRoot() };
  });
}
