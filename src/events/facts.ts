import { randomUUIDv7 } from "node:crypto";
import type { Pace } from "../event-loop.ts";
import type { Change } from "./changes.ts";
import { marked } from "./columns.ts";
import { factOf03, type Row03, rowOf03 } from "./facts-of-0-3.ts";
import { decodeEntries, type FeedEntry, type FeedState, isOf03 } from "./feed.ts";
import { type EventIdentity, fromMore, moreOf } from "./fields.ts";
import { isExpired, type Occurrence } from "./lifecycle.ts";

/** One report or change of an occurrence, as consumers of the feed look at it: never merged with another. */
export interface Fact {
  readonly event: EventIdentity;
  /** Undefined when it opened the occurrence. */
  readonly before: FeedState | undefined;
  readonly after: Occurrence;
  /** Whether a report caused it. */
  readonly reported: boolean;
  /** Whether it was reported once more; late reports are no news. */
  readonly news: boolean;
  /** The names of the rules that made the report, the latest last; none: it came from outside. */
  readonly chain: readonly string[];
  /** Names what set off all that follows from it. */
  readonly root: string;
}

/** Names what sets off notifications: a report from outside, a call, a crossing. They sort by time. */
export const newRoot = (): string => randomUUIDv7();

/** The facts of changes. Those of one management call have one root. */
export function factsOf(changes: readonly Change[]): Fact[] {
  const ofCall = newRoot();
  return changes.map(({ event, before, after, instance }) => ({
    event,
    before,
    after,
    reported: instance !== undefined,
    news: instance !== undefined && (before === undefined || instance.timeMs >= before.lastSeenMs),
    chain: instance?.chain ?? [],
    root: instance?.root ?? (isOfCall({ before, after, instance }) ? ofCall : newRoot()),
  }));
}

/** Set by management, not by ageing, which says so in the metadata, nor by expiry. */
const isOfCall = ({ before, after, instance }: Pick<Change, "before" | "after" | "instance">) =>
  instance === undefined && before?.metadata === after.metadata && !isExpired(after);

/** The entries of a row of the feed beyond what `feed.changes` holds of them, a line of JSON each portion; a text that several share is there once. */
interface Stored {
  readonly texts: readonly string[];
  readonly changes: readonly (Row | Row03)[];
}

/** Texts, and values as JSON, as numbers of `texts`. */
type Row = readonly [
  /** The rest is `moreOf` the event. */
  event: readonly [entity: number, name: number, ...more: (string | number | null)[]],
  texts: readonly number[],
  /** Fewer in rows of before. */
  rest: readonly (number | null)[],
  report: readonly [reported: boolean, news: boolean, chain: readonly string[], root: string],
];

const textKeys = marked({ feed: "texts" });
const restKeys = marked({ feed: "rest" });
const bigints: ReadonlySet<string> = new Set(marked({ type: "bigint" }));

/** Returns the number of a text in its line; of a value that of its JSON. */
export type PlaceOf = (value: string | object) => number;
/** Returns the text of a number. @throws RangeError where there is none */
export type TextAt = (place: number | undefined) => string;

/** A line has at most this many facts, and about this many characters: it is parsed at once. */
const lineFactsMax = 200;
const lineCharsMax = 128 * 1024;
/** A row of the feed has about this many characters of facts: it is sent and read at once. */
const rowCharsMax = 4 * 1024 * 1024;

/** The facts of one row of the feed, as text. */
export interface FactsText {
  readonly count: number;
  readonly text: string;
}

/** Facts as texts, in their order: mostly one, several where there is too much text for one row of the feed. */
export async function encodeFacts(facts: readonly Fact[], pace: Pace, oldForm = false): Promise<FactsText[]> {
  const rows: FactsText[] = [];
  const encode = lineEncoder(oldForm ? rowOf03 : rowOf);
  let lines: string[] = [];
  let chars = 0;
  let count = 0;
  for (let from = 0; from < facts.length; ) {
    await pace();
    const line = encode(facts, from);
    from += line.count;
    if (count > 0 && chars + line.text.length > rowCharsMax) {
      rows.push({ count, text: lines.join("\n") });
      [lines, chars, count] = [[], 0, 0];
    }
    lines.push(line.text);
    chars += line.text.length;
    count += line.count;
  }
  if (count > 0) rows.push({ count, text: lines.join("\n") });
  return rows;
}

function lineEncoder(rowOf: (fact: Fact, placeOf: PlaceOf) => Row | Row03) {
  const jsons = new Map<object, string>();
  return (facts: readonly Fact[], from: number): FactsText => {
    const texts = new Map<string, number>();
    let chars = 0;
    const placeOf = (value: string | object) => {
      const text = typeof value === "string" ? value : (jsons.get(value) ?? JSON.stringify(value));
      if (typeof value !== "string") jsons.set(value, text);
      const there = texts.get(text);
      if (there !== undefined) return there;
      chars += text.length;
      texts.set(text, texts.size);
      return texts.size - 1;
    };
    const changes: (Row | Row03)[] = [];
    while (from + changes.length < facts.length && changes.length < lineFactsMax && chars < lineCharsMax) {
      changes.push(rowOf(facts[from + changes.length] as Fact, placeOf));
    }
    const stored: Stored = { texts: [...texts.keys()], changes };
    return { count: changes.length, text: JSON.stringify(stored) };
  };
}

function rowOf({ event, after, reported, news, chain, root }: Fact, placeOf: PlaceOf): Row {
  const more = moreOf(event).map((each) => (typeof each === "object" && each !== null ? placeOf(each) : each));
  return [
    [placeOf(event.entityId.toString("base64")), placeOf(event.name), ...more],
    textKeys.map((key) => placeOf(after[key])),
    restKeys.map((key) => (after[key] === null ? null : Number(after[key]))),
    [reported, news, chain, root],
  ];
}

/**
 * Reads what `encodeFacts` wrote; `changes` is `feed.changes` of the same row, absent where facts stand alone, as 0.3 wrote them.
 * @throws an error for what is none, as only a file that was changed before its import has it
 */
export async function decodeFacts(text: string, changes: Buffer | undefined, pace: Pace): Promise<Fact[]> {
  const entries = changes === undefined || isOf03(changes) ? undefined : decodeEntries(changes);
  const facts: Fact[] = [];
  for (const line of text.split("\n")) {
    await pace();
    const { texts, changes: rows } = JSON.parse(line) as Stored;
    const at = (place: number | undefined) => {
      const found: unknown = texts[place as number];
      if (typeof found !== "string") throw new RangeError(`a fact names a text ${place} that is not there`);
      return found;
    };
    for (const row of rows)
      facts.push(entries ? factOf(row as Row, entries[facts.length], at) : factOf03(row as Row03, at));
  }
  if (entries && entries.length > facts.length)
    throw new RangeError(`${entries.length} changes have ${facts.length} facts`);
  return facts;
}

function factOf([[entity, name, ...more], places, rest, report]: Row, head: FeedEntry | undefined, at: TextAt): Fact {
  if (head === undefined) throw new RangeError("a fact has no change");
  const { eventId: id, number, before, lastSeenMs, instanceCount } = head;
  const after: Partial<Record<keyof Occurrence, unknown>> = { ...head.after, number, lastSeenMs, instanceCount };
  for (const [i, key] of textKeys.entries())
    after[key] = key === "metadata" ? JSON.parse(at(places[i])) : at(places[i]);
  for (const [i, key] of restKeys.entries()) {
    const value = rest[i] ?? null;
    after[key] = value !== null && bigints.has(key) ? BigInt(value) : value;
  }
  const [reported, news, chain, root] = report;
  const texts = fromMore(more.map((each) => (typeof each === "number" ? JSON.parse(at(each)) : each)));
  const event = { id, entityId: Buffer.from(at(entity), "base64"), name: at(name), ...texts };
  return { event, before, after: after as Occurrence, reported, news, chain, root };
}
