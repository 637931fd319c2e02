import type { Problem, Route } from "./binding.ts";
import { routeMatcher } from "./match.ts";
import { MANY, ONE, type PathSegment } from "./template.ts";

/**
 * Routes that cannot live together. Errors: the same route twice, a route that no request reaches because others
 * always win. Warnings: two routes that share some requests though neither holds all of the other's.
 */
export function findConflicts(routes: readonly Route[]): { errors: Problem[]; warnings: Problem[] } {
  const errors: Problem[] = [];
  const warnings: Problem[] = [];
  const first = new Map<string, Route>();
  const distinct: Route[] = [];
  for (const route of routes) {
    const key = JSON.stringify([route.verb, route.segments, route.custom]);
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, route);
      distinct.push(route);
    } else errors.push(problem(route, `the same route as ${named(other)}`, generic(route, 1, "any")));
  }
  const filler = fillerOf(distinct);
  const match = routeMatcher(distinct);
  const longest = Math.max(0, ...distinct.map(({ segments }) => segments.length));
  for (const route of distinct) {
    const verb = verbOf(route);
    const winners = lengths(route, longest).map((rest) => match.find(verb, generic(route, rest, filler)));
    if (winners.includes(route)) continue;
    const by = [...new Set(winners)].flatMap((winner) => (winner === undefined ? [] : [named(winner)]));
    errors.push(problem(route, `no request reaches it, always won by ${by.join(" and ")}`, generic(route, 1, filler)));
  }
  for (const [i, a] of distinct.entries()) {
    for (const b of distinct.slice(i + 1)) {
      if (a.verb !== b.verb && a.verb !== "*" && b.verb !== "*") continue;
      const path = shared(a, b, filler);
      if (path === undefined || holds(a, b, longest, filler) || holds(b, a, longest, filler)) continue;
      const winner = match.find(verbOf(a.verb === "*" ? b : a), path);
      warnings.push(
        problem(b, `overlaps with ${named(a)}; ${winner === undefined ? "neither" : named(winner)} answers`, path),
      );
    }
  }
  return { errors, warnings };
}

function problem(route: Route, message: string, path: string): Problem {
  return { method: route.method, message: `${route.template}: ${message}`, example: `${verbOf(route)} ${path}` };
}

function named(route: Route): string {
  return `${route.template} of ${route.method.parent.typeName}.${route.method.name}`;
}

function verbOf(route: Route): string {
  return route.verb === "*" ? "ANY" : route.verb;
}

/** How many segments `**` may stand for so that every longer choice behaves as the longest of these. */
function lengths(route: Route, longest: number): number[] {
  return route.segments.at(-1) === MANY ? Array.from({ length: longest + 2 }, (_, i) => i) : [0];
}

/** A text that no literal equals, whatever follows it. */
function fillerOf(routes: readonly Route[]): string {
  const literals = routes.flatMap(({ segments }) => segments.filter((segment) => typeof segment === "string"));
  let filler = "any";
  while (literals.some((literal) => literal.startsWith(filler))) filler += "x";
  return filler;
}

/** A path of the route whose wildcards hold `filler`, `**` standing for `rest` segments. */
function generic(route: Route, rest: number, filler: string): string {
  const parts = route.segments.flatMap((segment) => {
    if (segment === MANY) return Array.from({ length: rest }, (_, i) => `${filler}${i + 1}`);
    return [segment === ONE ? filler : encodeURIComponent(segment)];
  });
  return `/${parts.join("/")}${customText(route)}`;
}

/** The custom verb as a URL has it: its colons are raw, an escaped one is data. */
function customText({ custom }: Route): string {
  return custom === "" ? "" : `:${encodeURIComponent(custom).replaceAll("%3A", ":")}`;
}

/** Whether every path of `inner` is one of `outer`. */
function holds(outer: Route, inner: Route, longest: number, filler: string): boolean {
  const match = routeMatcher([{ ...outer, verb: "*" }]);
  return lengths(inner, longest).every((rest) => match.find("ANY", generic(inner, rest, filler)) !== undefined);
}

/** A path that both routes match, if there is one. */
function shared(a: Route, b: Route, filler: string): string | undefined {
  // Only the last segment can hold a verb: the shorter verb's route sees the rest of the longer one as data.
  const [long, short] = a.custom.length >= b.custom.length ? [a, b] : [b, a];
  let extra = "";
  if (long.custom !== short.custom) {
    if (short.custom !== "" && !long.custom.endsWith(`:${short.custom}`)) return undefined;
    extra = long.custom.slice(0, short.custom === "" ? undefined : -short.custom.length - 1);
    extra = `:${extra}`;
  }
  const count = Math.max(fixed(a), fixed(b), a.segments.length === 0 ? 0 : 1);
  for (let length = count; length <= count + 1; length++) {
    const path = sharedOfLength(long, short, extra, length, filler);
    if (path !== undefined) return path;
  }
  return undefined;
}

function sharedOfLength(long: Route, short: Route, extra: string, length: number, filler: string): string | undefined {
  const parts: string[] = [];
  for (let i = 0; i < length; i++) {
    const [x, y] = [segmentAt(long, i), segmentAt(short, i)];
    if (x === undefined || y === undefined) return undefined;
    if (i === length - 1 && extra !== "") {
      const base = typeof x === "string" ? x : typeof y === "string" ? cutEnd(y, extra) : filler;
      if (base === undefined || (typeof y === "string" && y !== base + extra)) return undefined;
      parts.push(encodeURIComponent(base));
    } else {
      if (typeof x === "string" && typeof y === "string" && x !== y) return undefined;
      parts.push(
        typeof x === "string" ? encodeURIComponent(x) : typeof y === "string" ? encodeURIComponent(y) : filler,
      );
    }
  }
  if (fixed(long) > length || fixed(short) > length) return undefined;
  return `/${parts.join("/")}${customText(long)}`;
}

function cutEnd(text: string, end: string): string | undefined {
  return text.endsWith(end) && text.length > end.length ? text.slice(0, -end.length) : undefined;
}

function fixed(route: Route): number {
  return route.segments.at(-1) === MANY ? route.segments.length - 1 : route.segments.length;
}

function segmentAt(route: Route, i: number): PathSegment | undefined {
  const segment = route.segments[i];
  if (segment !== undefined && segment !== MANY) return segment;
  return route.segments.at(-1) === MANY ? ONE : undefined;
}
