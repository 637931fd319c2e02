/**
 * Makes a function of source text, with these values in reach by name. Objects that one literal makes get their layout
 * at once; adding the same members in a loop takes five times as long, and JSON.stringify reads them more slowly (see
 * bench/transcoding.ts at 1516477). Everything in the text comes from descriptors and goes through `literal`.
 */
export function compile<T>(inReach: Record<string, unknown>, source: string): T {
  return new Function(...Object.keys(inReach), `"use strict"; return ${source};`)(...Object.values(inReach)) as T;
}

/** A name or text as source. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

/** The source of an object literal's key, own member also for `__proto__`. */
export function keyLiteral(name: string): string {
  return name === "__proto__" ? `[${literal(name)}]` : literal(name);
}
