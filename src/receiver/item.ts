import type { DescMessage, JsonObject, JsonValue, Message, MessageShape } from "@bufbuild/protobuf";
import type { Pace } from "../event-loop.ts";
import type { Broken } from "../rpc/constraint-rules.ts";
import { plausibleMs } from "../rpc/times.ts";
import { rulesText, validateItem } from "../rpc/validate.ts";

// A key is a row of an index, which takes 2.7 KB.
const METADATA_KEY_BYTES_MAX = 1024;
// Readers of protobuf give up at 100 messages within each other, and a level of JSON takes two or three.
const METADATA_LEVELS_MAX = 30;

/** How old and how far ahead of now a timestamp may be. */
export interface TimeBounds {
  ageSecMax: number;
  aheadSecMax: number;
}

/** What one kind of item must hold to. */
export interface ItemRules<S extends DescMessage> {
  schema: S;
  bounds: TimeBounds;
  /** What of an item the rules are about, and its schema; absent: all of it. */
  within?: (item: MessageShape<S>) => { schema: DescMessage; item: Message };
  /** Rules that neither the schema nor the other kinds have. */
  more?: (item: MessageShape<S>, path: string) => Broken[];
}

/** An item that was not taken, and why. */
export interface Failed<T> {
  error: string;
  item: T;
  /** Its place among those that were looked at together. */
  index: number;
}

/** What the receiver's items have in common. */
type Item = Message & { timestamp?: bigint; metadataFields?: JsonObject };

/** The first and the last time that is taken now, ms. */
export function timesTaken({ ageSecMax, aheadSecMax }: TimeBounds, nowMs: number): [number, number] {
  return [Math.max(Number(plausibleMs), nowMs - ageSecMax * 1000), nowMs + aheadSecMax * 1000];
}

function finerUnit(timestamp: bigint): "micro" | "nano" | undefined {
  if (timestamp / 1_000_000n >= plausibleMs) return "nano";
  return timestamp / 1000n >= plausibleMs ? "micro" : undefined;
}

/** Why a time is not taken; undefined: it is. */
export function brokenTimeRule(timestamp: bigint, bounds: TimeBounds, nowMs: number): string | undefined {
  if (timestamp > 0n && timestamp < plausibleMs)
    return `must be in ms since the epoch; ${timestamp} looks like seconds`;
  if (timestamp < BigInt(nowMs - bounds.ageSecMax * 1000)) {
    return `must not be more than ${bounds.ageSecMax / 3600} h old; it is ${timestamp} and now is ${nowMs}`;
  }
  if (timestamp > BigInt(nowMs + bounds.aheadSecMax * 1000)) {
    const finer = finerUnit(timestamp);
    if (finer !== undefined) return `must be in ms since the epoch; ${timestamp} looks like ${finer}seconds`;
    return `must not be more than ${bounds.aheadSecMax} s ahead; it is ${timestamp} and now is ${nowMs}`;
  }
  return undefined;
}

function brokenTime(timestamp: bigint | undefined, bounds: TimeBounds, nowMs: number, itemPath: string): Broken[] {
  const rule = timestamp === undefined ? undefined : brokenTimeRule(timestamp, bounds, nowMs);
  return rule === undefined ? [] : [{ path: `${itemPath}.timestamp`, rule }];
}

/** What PostgreSQL's JSON cannot hold (NUL and lone surrogates in a text, numbers that are not finite), or no client could read. */
function brokenJson(value: JsonValue, path: string, level = 1): Broken[] {
  if (typeof value === "string") return brokenText(value, path);
  if (typeof value === "number") return Number.isFinite(value) ? [] : [{ path, rule: "must be finite" }];
  if (typeof value !== "object" || value === null) return [];
  if (level > METADATA_LEVELS_MAX) return [{ path, rule: `must not lie deeper than ${METADATA_LEVELS_MAX} levels` }];
  if (Array.isArray(value)) return value.flatMap((item, i) => brokenJson(item, `${path}[${i}]`, level + 1));
  return Object.entries(value).flatMap(([key, member]) => {
    const own = `${path}[${JSON.stringify(key)}]`;
    if (key.length > METADATA_KEY_BYTES_MAX / 4 && Buffer.byteLength(key) > METADATA_KEY_BYTES_MAX) {
      return [{ path, rule: `must have keys of at most ${METADATA_KEY_BYTES_MAX} bytes` }];
    }
    const broken = brokenText(key, own);
    return broken.length > 0 ? broken : brokenJson(member, own, level + 1);
  });
}

function brokenText(text: string, path: string): Broken[] {
  if (text.includes("\0")) return [{ path, rule: "must not contain NUL" }];
  // Only Connect's JSON lets them through, and only within google.protobuf.Struct.
  return text.isWellFormed() ? [] : [{ path, rule: "must not contain a lone surrogate" }];
}

const inner = (rules: ItemRules<DescMessage>, item: Item): { schema: DescMessage; item: Item } =>
  rules.within?.(item) ?? { schema: rules.schema, item };

/** Why an item cannot be taken, each rule with its path below `path`; undefined when it can. */
function refusal(rules: ItemRules<DescMessage>, item: Item, path: string, nowMs: number): string | undefined {
  const own = inner(rules, item);
  const broken = validateItem(own.schema, own.item, path);
  const metadata = own.item.metadataFields;
  const metadataPath = `${path}.metadataFields`;
  // What is too large is not looked through.
  const tooLarge = broken.some((each) => each.path === metadataPath);
  const brokenMetadata = metadata === undefined || tooLarge ? [] : brokenJson(metadata, metadataPath);
  if (!tooLarge) broken.push(...brokenMetadata, ...(rules.more?.(item, path) ?? []));
  // Every protocol must be able to answer it, and JSON has no form for numbers that are not finite.
  if (metadata !== undefined && (tooLarge || brokenMetadata.length > 0))
    own.item.metadataFields = JSON.parse(JSON.stringify(metadata));
  broken.push(...brokenTime(own.item.timestamp, rules.bounds, nowMs, path));
  return broken.length === 0 ? undefined : rulesText(broken);
}

/** Parts the items of a batch that can be taken from those that cannot. `pathOf` gives an item's path by its place. */
export async function sift<S extends DescMessage>(
  rules: ItemRules<S>,
  items: readonly MessageShape<S>[],
  pathOf: (index: number) => string,
  { nowMs, pace }: { nowMs: number; pace: Pace },
): Promise<{ good: { item: MessageShape<S>; index: number }[]; failed: Failed<MessageShape<S>>[] }> {
  const good: { item: MessageShape<S>; index: number }[] = [];
  const failed: Failed<MessageShape<S>>[] = [];
  for (const [index, item] of items.entries()) {
    const wait = pace();
    if (wait !== undefined) await wait;
    const error = refusal(rules as ItemRules<DescMessage>, item, pathOf(index), nowMs);
    if (error === undefined) good.push({ item, index });
    else failed.push({ error, item, index });
  }
  return { good, failed };
}
