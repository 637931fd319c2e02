import { kinds, ownerOf, setKey } from "../../metrics/series-key.ts";
import type { TenantSeries } from "../../metrics/series-memory.ts";
import { valueBytesMax } from "../series-rules.ts";
import { Unreadable } from "./message-walk.ts";
import { factBytesMax, factText } from "./metric-facts.ts";
import { shownText, strictText } from "./written-labels.ts";

/** The texts that the series of a request name by their places. Each is looked up, and made into a text, at most once. */
export interface Symbols {
  /** Adds the one that lies there. @throws Unreadable, code 8 */
  add(from: number, to: number): void;
  count(): number;
  /** Bytes of its text. */
  bytes(place: number): number;
  /** Its number in all requests, which is positive, or `tooLong`. */
  number(place: number): number;
  /** The same of what is read of it as a unit or description. */
  factNumber(place: number): number;
  /** Undefined: it is no UTF-8. */
  text(place: number): string | undefined;
  /** Its text, made to fit as a unit or description. */
  fact(place: number): string;
  /** The beginning of its text, for an answer. */
  shown(place: number): string;
}

interface Parts {
  known: TenantSeries;
  /** Takes more memory. @throws code 8 when there is no room */
  reserve(bytes: number): void;
}

const symbolsMax = 1_000_000;
const symbolsMin = 1024;
/** What a symbol takes: its places, its number, and the same once more while there are more of them. */
const symbolBytes = 32;

const unseen = 0;
/** Of a symbol that no label may have. */
export const tooLong = -1;
const owner = ownerOf(kinds.symbol);

/** Begins without any. */
export function symbolsOf(bytes: Uint8Array, { known, reserve }: Parts): Symbols {
  const texts = new Map<number, string | undefined>();
  const facts = new Map<number, string>();
  let count = 0;
  let begins = new Uint32Array();
  let ends = new Uint32Array();
  let found = new Float64Array();

  const from = (place: number) => begins[place] as number;
  const to = (place: number) => ends[place] as number;
  function idOf(begin: number, end: number): number {
    setKey(bytes, begin, end);
    return known.idOf(owner);
  }

  function grow() {
    const size = Math.max(symbolsMin, 2 * count);
    reserve((size - count) * symbolBytes);
    const before = { begins, ends, found };
    begins = new Uint32Array(size);
    ends = new Uint32Array(size);
    found = new Float64Array(size);
    begins.set(before.begins);
    ends.set(before.ends);
    found.set(before.found);
  }

  function numberOf(place: number): number {
    const before = found[place] as number;
    if (before !== unseen) return before;
    const number = to(place) - from(place) > valueBytesMax ? tooLong : idOf(from(place), to(place));
    found[place] = number;
    return number;
  }

  return {
    add(begin, end) {
      if (count === symbolsMax) throw new Unreadable(`there may be at most ${symbolsMax} symbols`);
      if (count === begins.length) grow();
      begins[count] = begin;
      ends[count] = end;
      count += 1;
    },
    count: () => count,
    bytes: (place) => to(place) - from(place),
    number: numberOf,
    factNumber(place) {
      const number = numberOf(place);
      return number === tooLong ? idOf(from(place), Math.min(to(place), from(place) + factBytesMax)) : number;
    },
    text(place) {
      if (!texts.has(place)) texts.set(place, strictText(bytes, from(place), to(place)));
      return texts.get(place);
    },
    fact(place) {
      const before = facts.get(place);
      if (before !== undefined) return before;
      const text = factText(bytes, from(place), to(place));
      facts.set(place, text);
      return text;
    },
    shown: (place) => shownText(bytes, from(place), to(place)),
  };
}
