import { colon, enter, next, numberText, type Scan, unexpected, word } from "./scan.ts";

/** How many values are passed over between two stops. */
const portionValues = 10_000;

const openObject = 123;
const closeObject = 125;
const openList = 91;
const closeList = 93;

/**
 * Passes over any value, keeping nothing of it, and stops now and then: for what is not read of texts of any length. Checks the
 * grammar, but not whether a key comes twice.
 */
export function* passValue(s: Scan): Generator<undefined, void> {
  if (passScalar(s)) return;
  /** The lists and objects around the place, by the signs that end them. */
  const around: number[] = [];
  for (let count = 1; ; count++) {
    if (count % portionValues === 0) yield;
    const c = next(s);
    if (c === openObject || c === openList) {
      enter(s);
      const close = c === openObject ? closeObject : closeList;
      if (next(s) !== close) {
        around.push(close);
        if (close === closeObject) passKey(s);
        continue;
      }
      s.at++;
      s.depth--;
    } else passScalar(s);
    if (closed(s, around)) return;
  }
}

/** Passes over any value at once. */
export function skip(s: Scan): void {
  for (const stop of passValue(s)) void stop;
}

/** After a value: leaves the lists and objects that end here, and goes on to the next value; true when there is none. */
function closed(s: Scan, around: number[]): boolean {
  for (;;) {
    const close = around.at(-1);
    if (close === undefined) return true;
    const c = next(s);
    if (c === 44) {
      s.at++;
      next(s);
      if (close === closeObject) passKey(s);
      return false;
    }
    if (c !== close) unexpected(s, `a comma or ${String.fromCharCode(close)}`);
    s.at++;
    s.depth--;
    around.pop();
  }
}

function passKey(s: Scan): void {
  passText(s);
  colon(s);
}

/** Passes over a value that is no object and no list; returns false where one of them stands. */
export function passScalar(s: Scan): boolean {
  const c = next(s);
  if (c === openObject || c === openList) return false;
  if (c === 34) passText(s);
  else if (c === 116) word(s, "true");
  else if (c === 102) word(s, "false");
  else if (c === 110) word(s, "null");
  else if (c === 45 || (c >= 48 && c <= 57)) numberText(s);
  else unexpected(s, "a value");
  return true;
}

/** Passes over a string, at its opening quote. */
export function passText(s: Scan): void {
  const { codes } = s;
  if (codes[s.at] !== 34) unexpected(s, "a string");
  let at = s.at + 1;
  for (let c = codes[at] as number; c !== 34; c = codes[at] as number) {
    const length = c === 92 ? escapeLength(s, at) : 1;
    if (c < 32 || length === 0) {
      s.at = at;
      unexpected(s, "the end of a string");
    }
    at += length;
  }
  s.at = at + 1;
}

const escapes = new Set([...'"\\/bfnrt'].map((sign) => sign.charCodeAt(0)));

/** How many characters the escape has that begins here; 0 when none does. */
function escapeLength({ codes, text }: Scan, at: number): number {
  const kind = codes[at + 1] as number;
  if (escapes.has(kind)) return 2;
  return kind === 117 && /^[\da-f]{4}$/i.test(text.slice(at + 2, at + 6)) ? 6 : 0;
}
