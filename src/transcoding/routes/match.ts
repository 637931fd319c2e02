import type { Route } from "./binding.ts";
import { MANY, ONE, type Variable } from "./template.ts";

/** Finds routes on raw URLs. One answer at a time: `captured` and `pathEnd` speak of the last `find`. */
export interface RouteMatcher {
  /** The route of a request, HEAD going to GET; undefined when no route has both path and method. */
  find(verb: string, url: string): Route | undefined;
  /** The raw text that a variable of the found route took. */
  captured(variable: Variable): string;
  /** Where the path of the last URL ends: at the `?` or at its end. */
  pathEnd(): number;
  /** The methods that a path knows, for Allow; empty for an unknown path. */
  allowed(url: string): string[];
}

const usualVerbs = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

type ByVerb = Map<string, Route>;

interface Node {
  readonly literals: { readonly text: string; readonly node: Node }[];
  one: Node | undefined;
  /** Routes that end here, and those that end here with `**`: by custom verb, "" for none. */
  readonly ends: Map<string, ByVerb>;
  readonly many: Map<string, ByVerb>;
  /** The custom verbs of `ends` and `many`, longest first. */
  customs: string[];
}

/** Compiles routes into a trie; segment by segment a literal wins over `*`, that over `**`, then a verb over none. */
export function routeMatcher(routes: readonly Route[]): RouteMatcher {
  const root = node();
  for (const route of routes) insert(root, route);

  let url = "";
  let verb = "";
  let count = 0;
  let end = 0;
  let last = 0;
  let escaped = false;
  let colon = false;
  let allow: Set<string> | undefined;
  let starts = new Int32Array(64);

  function find(method: string, target: string): Route | undefined {
    verb = method;
    allow = undefined;
    split(target);
    return count === 0 ? undefined : walk(root, 0);
  }

  /** Notes where the segments start; segment i ends one before the start of i + 1. */
  function split(target: string): void {
    url = target;
    count = 0;
    escaped = false;
    let at = 0;
    let lastColon = -1;
    const length = target.length;
    for (; at < length; at++) {
      const c = target.charCodeAt(at);
      if (c === 47) {
        if (count + 2 >= starts.length) grow();
        starts[count++] = at + 1;
      } else if (c === 63) break;
      else if (c === 37) escaped = true;
      else if (c === 58) lastColon = at;
    }
    end = at;
    last = at;
    if (target.charCodeAt(0) !== 47) count = 0;
    starts[count] = at + 1;
    colon = count > 0 && lastColon >= (starts[count - 1] as number);
  }

  function grow(): void {
    const wider = new Int32Array(starts.length * 2);
    wider.set(starts);
    starts = wider;
  }

  function walk(from: Node, i: number): Route | undefined {
    if (i === count) return accept(from.ends.get(""), end) ?? accept(from.many.get(""), end);
    const s = starts[i] as number;
    const e = (starts[i + 1] as number) - 1;
    if (s === e) return undefined;
    const splits = colon && i === count - 1;
    for (const child of from.literals) {
      if (splits) {
        const found = cut(child.node, child.text, s, e);
        if (found !== undefined) return found;
      }
      if (same(child.text, s, e)) {
        const found = walk(child.node, i + 1);
        if (found !== undefined) return found;
      }
    }
    if (from.one !== undefined) {
      const found = (splits ? cut(from.one, undefined, s, e) : undefined) ?? walk(from.one, i + 1);
      if (found !== undefined) return found;
    }
    return from.many.size === 0 ? undefined : rest(from, i);
  }

  /** The last segment with a custom verb cut off: tries each colon from the left, so the longest verb first. */
  function cut(to: Node, text: string | undefined, s: number, e: number): Route | undefined {
    if (to.customs.length === 0) return undefined;
    for (let at = url.indexOf(":", s + 1); at !== -1 && at < e; at = url.indexOf(":", at + 1)) {
      if (text !== undefined && !same(text, s, at)) continue;
      for (const custom of to.customs) {
        if (!same(custom, at + 1, e)) continue;
        const found = accept(to.ends.get(custom), at) ?? accept(to.many.get(custom), at);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  }

  function rest(from: Node, i: number): Route | undefined {
    for (let k = i; k < count; k++) if (starts[k] === (starts[k + 1] as number) - 1) return undefined;
    if (colon) {
      const s = starts[count - 1] as number;
      for (let at = url.indexOf(":", s + 1); at !== -1 && at < end; at = url.indexOf(":", at + 1)) {
        for (const custom of from.customs) {
          if (!same(custom, at + 1, end)) continue;
          const found = accept(from.many.get(custom), at);
          if (found !== undefined) return found;
        }
      }
    }
    return accept(from.many.get(""), end);
  }

  function accept(routes: ByVerb | undefined, to: number): Route | undefined {
    if (routes === undefined) return undefined;
    if (allow !== undefined) {
      for (const known of routes.keys()) allow.add(known);
      return undefined;
    }
    const route = routes.get(verb) ?? (verb === "HEAD" ? routes.get("GET") : undefined) ?? routes.get("*");
    if (route !== undefined) last = to;
    return route;
  }

  function same(text: string, s: number, e: number): boolean {
    if (escaped) {
      const raw = url.slice(s, e);
      if (raw.includes("%")) return decoded(raw) === text;
    }
    return e - s === text.length && url.startsWith(text, s);
  }

  return {
    find,
    pathEnd: () => end,
    captured: ({ start, end: to }) => {
      if (start >= count) return "";
      return url.slice(starts[start], to === -1 || to === count ? last : (starts[to] as number) - 1);
    },
    allowed(target) {
      verb = "";
      allow = new Set();
      split(target);
      if (count > 0) walk(root, 0);
      if (allow.size === 0) return [];
      if (allow.has("GET")) allow.add("HEAD");
      const usual = usualVerbs.filter((known) => allow?.has("*") || allow?.has(known));
      const others = [...allow].filter((known) => known !== "*" && known !== "OPTIONS" && !usualVerbs.includes(known));
      return [...usual, ...others, "OPTIONS"];
    },
  };
}

function node(): Node {
  return { literals: [], one: undefined, ends: new Map(), many: new Map(), customs: [] };
}

function insert(root: Node, route: Route): void {
  let at = root;
  for (const segment of route.segments) {
    if (segment === MANY) break;
    if (segment === ONE) {
      at.one ??= node();
      at = at.one;
      continue;
    }
    let child = at.literals.find(({ text }) => text === segment);
    if (child === undefined) {
      child = { text: segment, node: node() };
      at.literals.push(child);
    }
    at = child.node;
  }
  const ends = route.segments.at(-1) === MANY ? at.many : at.ends;
  let byVerb = ends.get(route.custom);
  if (byVerb === undefined) {
    byVerb = new Map();
    ends.set(route.custom, byVerb);
  }
  // The first declaration stays; generation refuses a second.
  if (!byVerb.has(route.verb)) byVerb.set(route.verb, route);
  const customs = new Set([...at.ends.keys(), ...at.many.keys()]);
  customs.delete("");
  at.customs = [...customs].sort((a, b) => b.length - a.length);
}

function decoded(raw: string): string | undefined {
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}
