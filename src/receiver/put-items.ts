import { paced } from "../event-loop.ts";
import { batchBytesMax, batchItemsMax, type LaneKind } from "./ingest-queue.ts";
import type { Sender } from "./put.ts";

/**
 * Stores items that were no messages of ours, which their reader has checked, part by part: the next follows the commit of
 * the one before. May be repeated. Returns the places of those that were not stored, and why.
 * @param bytes how large the request was
 * @throws code 8 when the first part would wait too long, 14 when the outcome is unknown; sending again is safe
 */
export async function putItems<Item>(
  lane: LaneKind<Item>,
  { lanes, tenantId, abandoned }: Sender,
  items: readonly Item[],
  bytes: number,
): Promise<Map<number, string>> {
  const each = bytes / Math.max(1, items.length);
  const size = Math.max(1, Math.min(batchItemsMax, Math.floor(batchBytesMax / Math.max(1, each))));
  const refused = new Map<number, string>();
  const pace = paced(() => {}, tenantId);
  for (let from = 0; from < items.length; from += size) {
    const part = items.slice(from, from + size);
    const wait = pace();
    if (wait !== undefined) await wait;
    const left = await lanes.put(lane, tenantId, { items: part, bytes: each * part.length, abandoned }, from === 0);
    for (const [place, reason] of left) refused.set(from + place, reason);
  }
  return refused;
}
