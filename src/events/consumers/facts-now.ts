import type { Db } from "../../db/connect.ts";
import { type Fact, newRoot } from "../facts.ts";
import { decodeChanges } from "../feed.ts";
import { lockEvents } from "../lock.ts";
import { type OccurrenceKey, occurrenceText, readOccurrences } from "../occurrences.ts";

/**
 * Reads occurrences by `occurrenceText` as they are now, under the locks of their events: nothing comes between this and what is decided of them;
 * with the version of the tenant's rules.
 */
export async function occurrencesNow(tx: Db, tenantId: string, keys: readonly OccurrenceKey[]) {
  const eventIds = new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  const { rulesVersion = 0n } = await lockEvents(tx, tenantId, [...eventIds.values()]);
  return { found: await readOccurrences(tx, tenantId, keys), rulesVersion };
}

/**
 * Makes the facts of a row that has none, since its writer did not see the cursor that another transaction made: its occurrences as they
 * are now, for this transaction alone.
 */
export async function factsNow(tx: Db, tenantId: string, changes: Buffer): Promise<Fact[]> {
  const keys = new Map(decodeChanges(changes, null).map((change) => [occurrenceText(change), change]));
  if (keys.size === 0) return [];
  const { found } = await occurrencesNow(tx, tenantId, [...keys.values()]);
  return [...found.values()].map(({ event, occurrence }) => {
    const seen = { before: occurrence, after: occurrence, reported: false, news: false };
    return { event, ...seen, chain: [], root: newRoot() };
  });
}
