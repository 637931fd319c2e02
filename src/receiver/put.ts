import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { paced } from "../event-loop.ts";
import type { HeldBody } from "../rpc/request-memory.ts";
import { batchBytesMax, batchItemsMax, type IngestQueue, type LaneKind } from "./ingest-queue.ts";
import { type Failed, type ItemRules, sift } from "./item.ts";
import { portions } from "./portions.ts";

/** A kind of items that the receiver takes: how they are checked, made and stored. */
export interface PutKind<S extends DescMessage, Item> {
  /** The member of a request that lists them, for the paths in errors. */
  list: string;
  rules: ItemRules<S>;
  toItem(message: MessageShape<S>): Item;
  lane: LaneKind<Item>;
}

/** Messages that are stored together, and how many bytes they came in. */
export interface PartOf<Message> {
  messages: readonly Message[];
  bytes: number;
}

/**
 * Checks and stores messages as a part; answers those that were not stored. `pathOf` gives a message's path, for errors, by
 * its place among them; `first`: it may be refused whole.
 */
export type PutPart<Message> = (
  sender: Sender,
  part: PartOf<Message>,
  pathOf: (index: number) => string,
  first: boolean,
) => Promise<Failed<Message>[]>;

/** What became of a batch or a stream. */
export interface PutOutcome<Item> {
  succeeded: number;
  failedCount: number;
  /** The first failures in the order sent, as many as were asked for. */
  failed: Failed<Item>[];
  /** Why the first of them failed, whether they were asked for or not. */
  firstError?: string;
}

const reasonCharsMax = 300;

/** What an answer says of an outcome: the first reason, and how to see all, where it lists none. */
export function counts({ succeeded, failedCount, failed, firstError = "" }: PutOutcome<unknown>, noun: string) {
  const processed = `${succeeded} of ${succeeded + failedCount} ${noun} processed`;
  const silent = failedCount > 0 && failed.length === 0;
  const reason = firstError.length > reasonCharsMax ? `${firstError.slice(0, reasonCharsMax)}…` : firstError;
  const message = silent ? `${processed}; ${reason} (detailedResponse: true lists every failure)` : processed;
  return { succeeded, failed: failedCount, message: message.toWellFormed() };
}

/** The tenant that sends, and where its data goes. */
export interface Sender {
  lanes: IngestQueue;
  tenantId: string;
  nowMs(): number;
  /** Whether the call has ended, so that no answer is needed. */
  abandoned(): boolean;
}

/** Stores up to 1,000 messages in one part. */
async function putPart<S extends DescMessage, Item>(
  kind: PutKind<S, Item>,
  sender: Sender,
  { messages, bytes }: PartOf<MessageShape<S>>,
  pathOf: (index: number) => string,
  first: boolean,
): Promise<Failed<MessageShape<S>>[]> {
  const { lanes, tenantId, abandoned } = sender;
  const checks = { nowMs: sender.nowMs(), pace: paced(() => {}, tenantId) };
  const { good, failed } = await sift(kind.rules, messages, pathOf, checks);
  if (good.length === 0) return failed;
  const items = good.map(({ item }) => kind.toItem(item));
  const refused = await lanes.put(kind.lane, tenantId, { items, bytes, abandoned }, first);
  if (refused.size === 0) return failed;
  const late = [...refused].map(([place, reason]) => {
    const { index, item } = good[place] as (typeof good)[number];
    return { index, item, error: `${pathOf(index)}: ${reason}` };
  });
  return [...failed, ...late].sort((a, b) => a.index - b.index);
}

/** Adds outcomes of parts up; lists this many failures. */
export function gather<T>(failedMax: number) {
  const outcome: PutOutcome<T> = { succeeded: 0, failedCount: 0, failed: [] };
  return {
    outcome,
    add(count: number, failed: readonly Failed<T>[]) {
      outcome.succeeded += count - failed.length;
      outcome.failedCount += failed.length;
      const [first] = failed;
      if (first !== undefined) outcome.firstError ??= first.error;
      outcome.failed.push(...failed.slice(0, failedMax - outcome.failed.length));
    },
  };
}

/**
 * Stores the list of a request, part by part: the next follows the commit of the one before, so that they apply in their
 * order. May be repeated; what it counts as succeeded is committed.
 * @param bytes how large the request was
 * @param detailed whether the failures are listed
 */
export async function putList<S extends DescMessage, Item>(
  kind: PutKind<S, Item>,
  sender: Sender,
  messages: readonly MessageShape<S>[],
  { bytes, detailed }: { bytes: number; detailed: boolean },
): Promise<PutOutcome<MessageShape<S>>> {
  const { outcome, add } = gather<MessageShape<S>>(detailed ? messages.length : 0);
  const each = bytes / Math.max(1, messages.length);
  const size = Math.max(1, Math.min(batchItemsMax, Math.floor(batchBytesMax / Math.max(1, each))));
  for (let from = 0; from < messages.length; from += size) {
    const part = messages.slice(from, from + size);
    const pathOf = (index: number) => `${kind.list}[${from + index}]`;
    const failed = await putPart(kind, sender, { messages: part, bytes: each * part.length }, pathOf, from === 0);
    add(part.length, failed);
  }
  return outcome;
}

/** Stores a stream as `putPortions` does. */
export async function putStream<S extends DescMessage, Item>(
  kind: PutKind<S, Item>,
  sender: Sender,
  messages: AsyncIterable<MessageShape<S>>,
  body: HeldBody,
): Promise<PutOutcome<MessageShape<S>>> {
  const put: PutPart<MessageShape<S>> = (...part) => putPart(kind, ...part);
  return await putPortions(put, kind.lane.name, sender, messages, body);
}

/**
 * Stores a stream as it comes, and frees of its body what is stored: a part is what has come while the one before was
 * stored. It lists the first 1,000 failures: an endless one must not fill the memory.
 */
export async function putPortions<Message>(
  put: PutPart<Message>,
  laneName: string,
  sender: Sender,
  messages: AsyncIterable<Message>,
  body: HeldBody,
): Promise<PutOutcome<Message>> {
  const { outcome, add } = gather<Message>(1000);
  const bounds = { itemsMax: batchItemsMax, full: () => body.bytes() >= batchBytesMax };
  for await (const part of portions(messages, bounds) as AsyncIterable<Message[]>) {
    const before = outcome.succeeded + outcome.failedCount;
    const bytes = body.bytes();
    const failed = await put(sender, { messages: part, bytes }, (index) => `[${before + index}]`, false);
    body.free(bytes);
    add(part.length, failed);
    await sender.lanes.room(sender.tenantId, laneName);
  }
  return outcome;
}
