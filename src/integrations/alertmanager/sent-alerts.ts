import { Code } from "@connectrpc/connect";
import { passScalar, passText, passValue } from "../../transcoding/json/pass-value.ts";
import { key } from "../../transcoding/json/read-string.ts";
import { colon, endOf, enter, next, type Scan, takeNull, unexpected } from "../../transcoding/json/scan.ts";
import { refusalOf } from "../../wire/status.ts";
import type { SentMembers } from "./alerts.ts";

/** Bounds the labels and annotations of an alert, together. */
export const pairsMax = 2000;
/** Bounds the JSON of an alert, in bytes. */
export const alertBytesMax = 1024 * 1024;

/** A list of alerts in a text. */
export interface AlertList {
  /** How errors name an alert, by its place in the list. */
  nameOf(place: number): string;
  /** Makes the error that refuses the request because of its form. */
  malformed(what: string): Error;
  alertsMax: number;
}

/** An alert of a request: the members that are read of it, `null`, or why it is refused before they are read. */
export type SentAlert =
  | { readonly place: number; readonly bytes: number; readonly members: SentMembers | null }
  | { readonly place: number; readonly error: string };

const pairLists: ReadonlySet<string> = new Set(["labels", "annotations"]);
const texts: ReadonlySet<string> = new Set(["startsAt", "endsAt", "generatorURL"]);
/** Read where it is a text: only webhooks have it. */
const status = "status";

const portionPairs = 5000;

/**
 * Finds the alerts of a list, at its place in the text, and counts each before it is read; stops now and then.
 * @throws JsonError, and what `list` makes
 */
export function* alertsIn(s: Scan, list: AlertList): Generator<SentAlert | undefined, void> {
  if (next(s) !== 91) throw list.malformed(`cannot unmarshal ${kindAt(s)} into a list`);
  let place = 0;
  for (let more = begins(s, 93); more; more = !endOf(s, 93, "]")) {
    if (place === list.alertsMax)
      throw refusalOf(Code.ResourceExhausted, 413, `a request may have at most ${list.alertsMax} alerts`);
    yield yield* alert(s, list, place);
    place += 1;
  }
}

/** Goes into an object or list; returns whether there is anything in it. */
export function begins(s: Scan, close: number): boolean {
  enter(s);
  if (next(s) !== close) return true;
  s.at++;
  s.depth--;
  return false;
}

function* alert(s: Scan, list: AlertList, place: number): Generator<undefined, SentAlert> {
  next(s);
  const from = s.at;
  if (takeNull(s)) return { place, bytes: 0, members: null };
  const name = list.nameOf(place);
  if (s.codes[s.at] !== 123) throw list.malformed(`cannot unmarshal ${kindAt(s)} into ${name}`);
  /** Where the members stand that are read. */
  const extents = new Map<string, [from: number, to: number]>();
  let pairs = 0;
  let count = 0;
  for (let more = begins(s, 125); more; more = !endOf(s, 125, "}")) {
    count += 1;
    if (count % portionPairs === 0) yield;
    next(s);
    const member = key(s);
    colon(s);
    const memberAt = s.at;
    const memberName = `${name}.${member}`;
    const isText = s.codes[s.at] === 34;
    const isNull = s.codes[s.at] === 110;
    if (pairLists.has(member) && !isNull) pairs += yield* pairsOf(s, list, memberName);
    else if (texts.has(member) && !isText && !isNull)
      throw list.malformed(`cannot unmarshal ${kindAt(s)} into ${memberName}`);
    else if (!passScalar(s)) yield* passValue(s);
    if (pairLists.has(member) || texts.has(member) || (member === status && isText))
      extents.set(member, [memberAt, s.at]);
  }
  if (pairs > pairsMax)
    return { place, error: `${name}: an alert may have at most ${pairsMax} labels and annotations` };
  const bytes = bytesOf(s, from);
  if (bytes > alertBytesMax) return { place, error: `${name}: an alert may be at most ${alertBytesMax} bytes of JSON` };
  // The form of each has been checked.
  const members = Object.fromEntries(
    [...extents].map(([member, [at, to]]) => [member, JSON.parse(s.text.slice(at, to))]),
  ) as SentMembers;
  return { place, bytes, members };
}

/** How many bytes the text has from there to where the scan stands. */
function bytesOf({ text, bytes, at }: Scan, from: number): number {
  return bytes === undefined ? Buffer.byteLength(text.slice(from, at)) : at - from;
}

/** Passes over labels or annotations; returns how many there are. */
function* pairsOf(s: Scan, list: AlertList, name: string): Generator<undefined, number> {
  if (s.codes[s.at] !== 123) throw list.malformed(`cannot unmarshal ${kindAt(s)} into ${name}`);
  let count = 0;
  for (let more = begins(s, 125); more; more = !endOf(s, 125, "}")) {
    count += 1;
    if (count % portionPairs === 0) yield;
    next(s);
    passText(s);
    colon(s);
    if (s.codes[s.at] === 34) passText(s);
    else if (!takeNull(s)) throw list.malformed(`cannot unmarshal ${kindAt(s)} into ${name}`);
  }
  return count;
}

/** What kind of value stands here, as errors name it. */
export function kindAt(s: Scan): string {
  const c = next(s);
  if (c === 34) return "string";
  if (c === 123) return "object";
  if (c === 91) return "array";
  if (c === 116 || c === 102) return "boolean";
  if (c === 110) return "null";
  if (c === 45 || (c >= 48 && c <= 57)) return "number";
  return unexpected(s, "a value");
}
