/** The beginnings of terms that cover numbers within bounds. */
export interface NumberTerms {
  terms: { text: string; prefix: boolean }[];
  /** Whether they cover no other number. */
  exact: boolean;
}

const DIGITS = 16;
/** With more of these a search takes longer than with a wider bound that also reads rows which do not match. */
const TERMS_MAX = 48;

const bytes = new DataView(new ArrayBuffer(8));

/** The bits of a number from 0: they order as the numbers do. */
function bitsOf(number: number): bigint {
  bytes.setFloat64(0, Math.abs(number));
  return bytes.getBigUint64(0);
}

/** The next number above; above the greatest it is Infinity. */
export function nextAbove(number: number): number {
  if (number === 0) return Number.MIN_VALUE;
  bytes.setFloat64(0, number);
  bytes.setBigUint64(0, bytes.getBigUint64(0) + (number > 0 ? 1n : -1n));
  return bytes.getFloat64(0);
}

/** Adds the shortest beginnings, of at most `digits` digits, that cover all from `low` to `high`, which have `digits` digits. */
function cover(low: bigint, high: bigint, digits: number, found: string[]): void {
  let from = low;
  while (from <= high && found.length <= TERMS_MAX) {
    let free = 0;
    while (free < digits && (from & ((16n << BigInt(4 * free)) - 1n)) === 0n) {
      if (from + (16n << BigInt(4 * free)) - 1n > high) break;
      free += 1;
    }
    found.push((from >> BigInt(4 * free)).toString(16).padStart(digits - free, "0"));
    from += 1n << BigInt(4 * free);
  }
}

/** How many digits give a bound exactly: the others are all `rest`. */
function digitsOf(hex: string, rest: "0" | "f"): number {
  let digits = DIGITS;
  while (digits > 1 && hex[digits - 1] === rest) digits -= 1;
  return digits;
}

/** The beginnings that cover magnitudes from `low` to `high`: as exact as the bound on their number allows. */
function coverMagnitudes(low: number, high: number): { beginnings: string[]; exact: boolean } {
  const from = bitsOf(low);
  // Above the greatest number stands nothing, so that a range without an end is short.
  const to = high === Number.MAX_VALUE ? (1n << 63n) - 1n : bitsOf(high);
  const [first, last] = [from, to].map((bits) => bits.toString(16).padStart(DIGITS, "0")) as [string, string];
  const needed = Math.max(digitsOf(first, "0"), digitsOf(last, "f"));
  const common = [...first].findIndex((digit, i) => digit !== last[i]);
  // Each digit beyond those in common takes some fifteen beginnings.
  for (let digits = common < 0 ? needed : Math.min(needed, common + 4); ; digits--) {
    const shift = BigInt(4 * (DIGITS - digits));
    const beginnings: string[] = [];
    cover(from >> shift, to >> shift, digits, beginnings);
    if (beginnings.length <= TERMS_MAX || digits === 1) return { beginnings, exact: digits === needed };
  }
}

/**
 * The terms of numbers from `low` to `high`, both included: n and N for numbers, with `texts` also x and X for texts that
 * read as one; the capitals are those below zero, by their magnitude.
 */
export function numberTerms(low: number, high: number, texts: boolean): NumberTerms {
  if (low > high) return { terms: [], exact: true };
  const sides: { letters: string; beginnings: string[]; exact: boolean }[] = [];
  if (high >= 0) sides.push({ letters: "nx", ...coverMagnitudes(Math.max(low, 0), high) });
  // Zero has no sign in a term; it may be in this cover all the same.
  if (low < 0) sides.push({ letters: "NX", ...coverMagnitudes(high < 0 ? -high : 0, -low) });
  const terms = sides.flatMap(({ letters, beginnings }) =>
    [...letters.slice(0, texts ? 2 : 1)].flatMap((letter) =>
      beginnings.map((digits) => ({ text: letter + digits, prefix: digits.length < DIGITS })),
    ),
  );
  return { terms, exact: sides.every(({ exact }) => exact) };
}
