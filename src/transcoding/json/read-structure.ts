import { key } from "./read-string.ts";
import { colon, endOf, enter, fail, next, quotedKey, type Scan, unexpected } from "./scan.ts";

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
