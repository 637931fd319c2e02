import type { HeldBody } from "../rpc/bodies.ts";
import { batches } from "./batches.ts";
import type { Failed } from "./item.ts";

const ITEMS_MAX = 1000;
const WAIT_MS_MAX = 20;
const BATCH_BYTES_MAX = 4 * 1024 * 1024;

/** Stores up to 1,000 items in one transaction; `pathOf` tells an item's path, for errors, by its place among them. */
export type Put<Item> = (
  items: readonly Item[],
  pathOf: (index: number) => string,
) => Promise<{ succeeded: number; failed: Failed<Item>[] }>;

/** What became of a batch or a stream. */
export interface Outcome<Item> {
  succeeded: number;
  failedCount: number;
  /** The first failures in the order sent, as many as were asked for. */
  failed: Failed<Item>[];
}

async function putEach<Item>(
  portions: Iterable<readonly Item[]> | AsyncIterable<readonly Item[]>,
  put: Put<Item>,
  pathOf: (index: number) => string,
  failedMax: number,
): Promise<Outcome<Item>> {
  const outcome: Outcome<Item> = { succeeded: 0, failedCount: 0, failed: [] };
  for await (const items of portions) {
    const before = outcome.succeeded + outcome.failedCount;
    const { succeeded, failed } = await put(items, (index) => pathOf(before + index));
    outcome.succeeded += succeeded;
    outcome.failedCount += failed.length;
    outcome.failed.push(...failed.slice(0, failedMax - outcome.failed.length));
  }
  return outcome;
}

function* portionsOf<Item>(items: readonly Item[]) {
  for (let from = 0; from < items.length; from += ITEMS_MAX) yield items.slice(from, from + ITEMS_MAX);
}

async function* itemsOf<Request, Item>(requests: AsyncIterable<Request>, itemOf: (request: Request) => Item) {
  for await (const request of requests) yield itemOf(request);
}

/**
 * Stores the list of a request in portions, so that the largest one neither holds the process up for long nor runs into
 * the time limit of a statement.
 * @param name the list's name, for the paths in errors.
 * @param detailed whether the failures are listed.
 */
export function putList<Item>(items: readonly Item[], put: Put<Item>, name: string, detailed: boolean) {
  return putEach(portionsOf(items), put, (index) => `${name}[${index}]`, detailed ? items.length : 0);
}

/**
 * Stores a stream as it comes, and frees of its body what is stored. It lists the first 1,000 failures: an endless one must
 * not fill the memory.
 */
export function putStream<Request, Item>(
  requests: AsyncIterable<Request>,
  itemOf: (request: Request) => Item,
  put: Put<Item>,
  body: HeldBody,
) {
  async function* freed(batches: AsyncIterable<Item[]>) {
    for await (const batch of batches) {
      const bytes = body.bytes();
      yield batch;
      body.free(bytes);
    }
  }
  const full = () => body.bytes() >= BATCH_BYTES_MAX;
  const portions = freed(batches(itemsOf(requests, itemOf), { itemsMax: ITEMS_MAX, waitMsMax: WAIT_MS_MAX, full }));
  return putEach(portions, put, (index) => `[${index}]`, 1000);
}
