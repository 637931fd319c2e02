import { randomUUIDv7 } from "node:crypto";
import type { Pace } from "../event-loop.ts";
import type { Change } from "./changes.ts";
import { columnKeys, marked } from "./columns.ts";
import type { FeedState } from "./feed.ts";
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

/** Facts as they are stored, a line of JSON each portion; a text that several of a portion share is there once. */
interface Stored {
  readonly texts: readonly string[];
  readonly changes: readonly Row[];
}

const textKeys = marked({ facts: "texts" });
const timeKeys = marked({ facts: "times" });
/** What facts do not hold is unknown where they are read. */
const unstored = Object.fromEntries(columnKeys.map((key) => [key, null]));

type StoredState = readonly [severity: number, status: number, acknowledged: boolean];

/** Ids in base64, whole numbers as texts where they may be large; numbers of `texts`. */
type Row = readonly [
  /** The rest is `moreOf` the event, maps as numbers of `texts`. */
  ids: readonly [event: string, entity: string, ...more: (string | number | null)[]],
  /** `before`: true and false in rows of 0.2: whether it opened the occurrence. */
  place: readonly [
    name: number,
    number: number,
    before: StoredState | null | boolean,
    reported: boolean,
    news: boolean,
  ],
  from: readonly [chain: readonly string[], root: string],
  state: StoredState,
  /** Of the columns that have them, and then the metadata. */
  texts: readonly number[],
  /** Fewer in rows of before. */
  times: readonly (string | null)[],
];

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
export async function encodeFacts(facts: readonly Fact[], pace: Pace): Promise<FactsText[]> {
  const rows: FactsText[] = [];
  const metadataTexts = new Map<object, string>();
  let lines: string[] = [];
  let chars = 0;
  let count = 0;
  for (let from = 0; from < facts.length; ) {
    await pace();
    const line = encodeLine(facts, from, metadataTexts);
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

function encodeLine(facts: readonly Fact[], from: number, metadataTexts: Map<object, string>): FactsText {
  const texts = new Map<string, number>();
  let chars = 0;
  const placeOf = (text: string) => {
    const there = texts.get(text);
    if (there !== undefined) return there;
    chars += text.length;
    texts.set(text, texts.size);
    return texts.size - 1;
  };
  const changes: Row[] = [];
  while (from + changes.length < facts.length && changes.length < lineFactsMax && chars < lineCharsMax) {
    changes.push(rowOf(facts[from + changes.length] as Fact, placeOf, metadataTexts));
  }
  const stored: Stored = { texts: [...texts.keys()], changes };
  return { count: changes.length, text: JSON.stringify(stored) };
}

const stateOf = ({ severity, status, acknowledged }: FeedState): StoredState => [severity, status, acknowledged];

function rowOf(
  { event, before, after, reported, news, chain, root }: Fact,
  placeOf: (text: string) => number,
  metadataTexts: Map<object, string>,
): Row {
  const metadata = metadataTexts.get(after.metadata) ?? JSON.stringify(after.metadata);
  metadataTexts.set(after.metadata, metadata);
  const timeOf = (ms: bigint | null) => (ms === null ? null : `${ms}`);
  return [
    [
      event.id.toString("base64"),
      event.entityId.toString("base64"),
      ...moreOf(event).map((more) =>
        typeof more === "object" && more !== null ? placeOf(JSON.stringify(more)) : more,
      ),
    ],
    [placeOf(event.name), after.number, before === undefined ? null : stateOf(before), reported, news],
    [chain, root],
    stateOf(after),
    [...textKeys.map((key) => placeOf(after[key])), placeOf(metadata)],
    timeKeys.map((key) => timeOf(after[key])),
  ];
}

/** What `encodeFacts` wrote. @throws an error for what is none, as only a file that was changed before its import has it */
export async function decodeFacts(text: string, pace: Pace): Promise<Fact[]> {
  const facts: Fact[] = [];
  for (const line of text.split("\n")) {
    await pace();
    const { texts, changes } = JSON.parse(line) as Stored;
    for (const row of changes) facts.push(factOf(row, texts));
  }
  return facts;
}

function factOf(
  [ids, [name, number, stored, reported, news], [chain, root], [severity, status, acknowledged], places, times]: Row,
  texts: readonly string[],
): Fact {
  const at = (place: number) => {
    const found: unknown = texts[place];
    if (typeof found !== "string") throw new RangeError(`a fact names a text ${place} that is not there`);
    return found;
  };
  const [event, entity, ...more] = ids;
  const msOf = (time: string | null = null) => (time === null ? null : BigInt(time));
  const after: Partial<Record<keyof Occurrence, unknown>> = { ...unstored, number, severity, status, acknowledged };
  for (const [i, key] of textKeys.entries()) after[key] = at(places[i] as number);
  after.metadata = JSON.parse(at(places[textKeys.length] as number));
  for (const [i, key] of timeKeys.entries()) after[key] = msOf(times[i]);
  const identity = {
    id: Buffer.from(event, "base64"),
    entityId: Buffer.from(entity, "base64"),
    name: at(name),
    ...fromMore(more.map((each) => (typeof each === "number" ? JSON.parse(at(each)) : each))),
  };
  return {
    event: identity,
    before: stateBefore(stored, after as Occurrence),
    after: after as Occurrence,
    reported,
    news,
    chain,
    root,
  };
}

function stateBefore(stored: StoredState | null | boolean, after: Occurrence): FeedState | undefined {
  if (stored === null || stored === true) return undefined;
  if (stored === false) return after;
  const [severity, status, acknowledged] = stored;
  return { severity, status, acknowledged };
}
