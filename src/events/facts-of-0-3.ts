import { columnKeys } from "./columns.ts";
import type { Fact, PlaceOf, TextAt } from "./facts.ts";
import type { FeedState } from "./feed.ts";
import { fromMore, moreOf } from "./fields.ts";
import type { Occurrence } from "./lifecycle.ts";

/*
 * Facts as 0.3 reads and writes them, apart from `feed.changes`, and 0.2 with them: written while one of 0.3 may read them, read as long as
 * rows and jobs of them may be left. Goes with the last server that writes them.
 */

const textKeys = ["type", "summary", "body", "metadata"] as const;
const timeKeys = ["startMs", "lastSeenMs", "endMs", "instanceCount", "expiresMs", "keptOpenMs"] as const;
/** What they do not hold is unknown where they are read. */
const unstored = Object.fromEntries(columnKeys.map((key) => [key, null]));

type StoredState = readonly [severity: number, status: number, acknowledged: boolean];

/** Ids in base64, whole numbers as texts where they may be large; numbers of `texts`. */
export type Row03 = readonly [
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
  texts: readonly number[],
  /** Fewer in rows of before. */
  times: readonly (string | null)[],
];

const stateOf = ({ severity, status, acknowledged }: FeedState): StoredState => [severity, status, acknowledged];

/** Returns a fact as they store it. */
export function rowOf03({ event, before, after, reported, news, chain, root }: Fact, placeOf: PlaceOf): Row03 {
  const more = moreOf(event).map((each) => (typeof each === "object" && each !== null ? placeOf(each) : each));
  return [
    [event.id.toString("base64"), event.entityId.toString("base64"), ...more],
    [placeOf(event.name), after.number, before === undefined ? null : stateOf(before), reported, news],
    [chain, root],
    stateOf(after),
    textKeys.map((key) => placeOf(after[key])),
    timeKeys.map((key) => (after[key] === null ? null : `${after[key]}`)),
  ];
}

/** Returns the fact that they have stored. @throws RangeError for a text that is not there, TypeError for what is none */
export function factOf03(
  [ids, [name, number, stored, reported, news], [chain, root], [severity, status, acknowledged], places, times]: Row03,
  at: TextAt,
): Fact {
  const [event, entity, ...more] = ids;
  const made: Partial<Record<keyof Occurrence, unknown>> = { ...unstored, number, severity, status, acknowledged };
  for (const [i, key] of textKeys.entries()) made[key] = key === "metadata" ? JSON.parse(at(places[i])) : at(places[i]);
  for (const [i, key] of timeKeys.entries()) made[key] = times[i] == null ? null : BigInt(times[i]);
  const after = made as Occurrence;
  const identity = {
    id: Buffer.from(event, "base64"),
    entityId: Buffer.from(entity, "base64"),
    name: at(name),
    ...fromMore(more.map((each) => (typeof each === "number" ? JSON.parse(at(each)) : each))),
  };
  return { event: identity, before: stateBefore(stored, after), after, reported, news, chain, root };
}

function stateBefore(stored: StoredState | null | boolean, after: Occurrence): FeedState | undefined {
  if (stored === null || stored === true) return undefined;
  if (stored === false) return after;
  const [severity, status, acknowledged] = stored;
  return { severity, status, acknowledged };
}
