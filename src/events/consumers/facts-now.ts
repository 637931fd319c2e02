import type { Db } from "../../db/connect.ts";
import { type Fact, newRoot } from "../facts.ts";
import { decodeChanges } from "../feed.ts";
import { keyText, readOccurrences } from "../occurrences.ts";

/**
 * The facts of a row that has none: its occurrences as they are now. A server of 0.2 wrote it, which has matched its changes by itself:
 * what changed here before, and was matched after it, is looked at once more.
 */
export async function factsNow(tx: Db, tenantId: string, changes: Buffer | null): Promise<Fact[]> {
  if (changes === null) return [];
  const keys = new Map(decodeChanges(changes, null).map((change) => [keyText(change), change]));
  if (keys.size === 0) return [];
  const found = await readOccurrences(tx, tenantId, [...keys.values()]);
  return [...found.values()].map(({ event, occurrence }) => {
    const seen = { before: occurrence, after: occurrence, reported: false, news: false };
    return { event, ...seen, chain: [], root: newRoot() };
  });
}
