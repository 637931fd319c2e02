import { batches } from "./batches.ts";
import type { Failed } from "./item.ts";

const bounds = { itemsMax: 1000, waitMsMax: 20 };
// An endless stream of bad items must not fill the memory; the count goes on.
const FAILED_LISTED_MAX = 1000;

/** Runs a client stream through `put`, batch by batch; answers the sums, and the first failures in the order sent. */
export async function putStream<Request, Item>(
  requests: AsyncIterable<Request>,
  itemOf: (request: Request) => Item,
  put: (items: Item[], pathOf: (index: number) => string) => Promise<{ succeeded: number; failed: Failed<Item>[] }>,
) {
  let succeeded = 0;
  let failedCount = 0;
  const failed: Failed<Item>[] = [];
  for await (const batch of batches(requests, bounds)) {
    const before = succeeded + failedCount;
    const result = await put(batch.map(itemOf), (index) => `[${before + index}]`);
    succeeded += result.succeeded;
    failedCount += result.failed.length;
    failed.push(...result.failed.slice(0, FAILED_LISTED_MAX - failed.length));
  }
  return { succeeded, failedCount, failed };
}
