import { key, string } from "./read-string.ts";
import { colon, endOf, enter, fail, next, numberText, quotedKey, type Scan, unexpected, word } from "./scan.ts";

/** Reads past any value, checking its form: nesting, escapes, numbers, and that no object has a key twice. */
export function skip(s: Scan): void {
  const c = next(s);
  if (c === 34) string(s);
  else if (c === 123) members(s, () => skip(s));
  else if (c === 91) elements(s, () => skip(s));
  else if (c === 116) word(s, "true");
  else if (c === 102) word(s, "false");
  else if (c === 110) word(s, "null");
  else if (c === 45 || (c >= 48 && c <= 57)) numberText(s);
  else unexpected(s, "a value");
}

/** Reads an object, calling `value` at each value with its key; a key that occurs twice fails. */
export function members(s: Scan, value: (key: string, keyAt: number) => void): void {
  enter(s);
  const seen = new Set<string>();
  for (let c = next(s); c !== 125 || seen.size > 0; c = next(s)) {
    if (c !== 34) unexpected(s, seen.size === 0 ? "a key or }" : "a key");
    const keyAt = s.at;
    const name = key(s);
    if (seen.has(name)) fail(keyAt, `${quotedKey(name)} occurs twice`);
    seen.add(name);
    colon(s);
    value(name, keyAt);
    if (endOf(s, 125, "}")) return;
  }
  s.at++;
  s.depth--;
}

/** Reads a list, calling `value` at each element with its index. */
export function elements(s: Scan, value: (index: number) => void): void {
  enter(s);
  if (next(s) === 93) {
    s.at++;
    s.depth--;
    return;
  }
  for (let index = 0; ; index++) {
    next(s);
    value(index);
    if (endOf(s, 93, "]")) return;
  }
}
