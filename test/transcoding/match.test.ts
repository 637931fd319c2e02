import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Route } from "../../src/transcoding/routes/binding.ts";
import { findConflicts } from "../../src/transcoding/routes/conflicts.ts";
import { routeMatcher } from "../../src/transcoding/routes/match.ts";
import { MANY, ONE, parsePathTemplate } from "../../src/transcoding/routes/template.ts";
import { cases } from "../support/cases.ts";
import { libraryService } from "./schema.ts";

const [method] = libraryService().methods as [Route["method"]];

function route(line: string): Route {
  const [verb = "", template = ""] = line.split(" ");
  const { segments, custom, variables } = parsePathTemplate(template.replaceAll("{}", "{x}"));
  return { method, verb, template, segments, custom, variables, body: "", responseBody: "" };
}

/** Which of these routes answers, by its template. */
function winner(lines: string[], request: string): string | undefined {
  const [verb = "", url = ""] = request.split(" ");
  return routeMatcher(lines.map(route)).find(verb, url)?.template;
}

test("a template is segments, a custom verb and variables over them", () => {
  expect(parsePathTemplate("/v1/{a.b=x/*/y}/{c=**}:do:it")).toEqual({
    segments: ["v1", "x", ONE, "y", MANY],
    custom: "do:it",
    variables: [
      { path: ["a", "b"], start: 1, end: 4, many: true },
      { path: ["c"], start: 4, end: -1, many: true },
    ],
  });
  expect(parsePathTemplate("/a%20b/*").segments).toEqual(["a b", ONE]);
});

describe("precedence", () => {
  const cases: [lines: string[], request: string, winner: string | undefined][] = [
    [["GET /a/{}", "GET /a/b"], "GET /a/b", "/a/b"],
    [["GET /{x=**}", "GET /{}", "GET /a"], "GET /a", "/a"],
    [["GET /{x=**}", "GET /{}", "GET /a"], "GET /b", "/{}"],
    [["GET /{x=**}", "GET /{}", "GET /a"], "GET /b/c", "/{x=**}"],
    // Segment by segment: the literal comes first though the other has more of them.
    [["GET /a/*/*", "GET /*/b/c"], "GET /a/b/c", "/a/*/*"],
    // Full backtracking: the literal leads nowhere.
    [["GET /a/x", "GET /*/b"], "GET /a/b", "/*/b"],
    [["GET /a/b/c/x", "GET /a/*/c/y", "GET /*/b/**"], "GET /a/b/c/y", "/a/*/c/y"],
    [["GET /a/b/c/x", "GET /a/*/c/y", "GET /*/b/**"], "GET /a/b/c/z", "/*/b/**"],
    // A literal that knows another method does not hide a route that knows this one.
    [["POST /a/b", "GET /a/*"], "GET /a/b", "/a/*"],
    [["GET /a", "* /a"], "GET /a", "/a"],
    // Verbs: before none, the longest first, and only raw colons.
    [["GET /{}", "GET /{}:v"], "GET /x:v", "/{}:v"],
    [["GET /{}:b", "GET /{}:a:b"], "GET /x:a:b", "/{}:a:b"],
    [["GET /{}:b", "GET /{}:a:b"], "GET /x:c:b", "/{}:b"],
    [["GET /{}:v"], "GET /:v", undefined],
    [["GET /{}:v"], "GET /x%3Av", undefined],
    [["GET /a/**:v", "GET /a/*"], "GET /a/x:v", "/a/*"],
    [["GET /a/**:v", "GET /a/**"], "GET /a/x:v", "/a/**:v"],
    [["GET /a/**:v"], "GET /a:v", "/a/**:v"],
    [["GET /a:v/b"], "GET /a:v/b", "/a:v/b"],
  ];
  test.for(cases)("%j %s → %s", ([lines, request, expected]) => expect(winner(lines, request)).toBe(expected));
});

test("whatever the routes, the routeMatcher finds what a plain search by the rules finds", () => {
  const segment = fc.constantFrom("a", "b", "*", "*");
  const template = fc
    .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.boolean(), fc.constantFrom("", "", ":v", ":w:v"))
    .map(([parts, rest, custom]) => `GET /${parts.join("/")}${rest ? "/**" : ""}${custom}`);
  const path = fc
    .array(fc.constantFrom("a", "b", "c", "a:v", "b:w:v", "c:x", ""), { minLength: 1, maxLength: 4 })
    .map((parts) => `/${parts.join("/")}`);
  fc.assert(
    fc.property(fc.uniqueArray(template, { minLength: 1, maxLength: 8 }), path, (lines, url) => {
      expect(winner(lines, `GET ${url}`)).toBe(plainly(lines.map(route), url)?.template);
    }),
    { numRuns: cases(1500) },
  );
});

/** The rules in the plainest words: of all routes that match, the first in the order of precedence. */
function plainly(routes: Route[], url: string): Route | undefined {
  const parts = url.slice(1).split("/");
  if (parts.includes("")) return undefined;
  const found: { route: Route; rank: number[] }[] = [];
  for (const one of routes) {
    const verb = one.custom === "" ? "" : `:${one.custom}`;
    const last = parts.at(-1) as string;
    if (!last.endsWith(verb) || last.length === verb.length) continue;
    const base = [...parts.slice(0, -1), last.slice(0, last.length - verb.length)];
    const many = one.segments.at(-1) === MANY;
    const fixed = many ? one.segments.slice(0, -1) : one.segments;
    if (many ? base.length < fixed.length : base.length !== fixed.length) continue;
    if (!fixed.every((segment, i) => segment === ONE || segment === base[i])) continue;
    // Each segment: literal, *, **; then the longest verb; then the route that ends here before a ** without segments.
    const rank = base.map((_, i) => (typeof fixed[i] === "string" ? 0 : fixed[i] === ONE ? 1 : 3));
    found.push({ route: one, rank: [...rank, -verb.length, many ? 1 : 0] });
  }
  found.sort((a, b) => compare(a.rank, b.rank));
  return found[0]?.route;
}

function compare(a: number[], b: number[]): number {
  for (const [i, x] of a.entries()) if (x !== b[i]) return x - (b[i] ?? 0);
  return 0;
}

test("a route is not refused, nor another warned of, for the sake of the text that stands for a wildcard", () => {
  for (const lines of [
    ["GET /v1/things/any", "GET /v1/things/{}"],
    ["GET /v1/things/any", "GET /v1/things/anyx", "GET /v1/*/*"],
    ["GET /v1/things/any1", "GET /v1/things/{x=**}"],
    ["POST /v1/things/{}:archive", "POST /v1/things/{}:un:archive"],
    ["POST /v1/things/{}:un:archive", "POST /v1/things/{}:archive"],
    ["POST /v1/things:un:archive", "POST /v1/{}:archive"],
  ]) {
    const { errors, warnings } = findConflicts(lines.map(route));
    expect([...errors, ...warnings].map(({ message }) => message)).toEqual([]);
  }
});

test("a warning's example is a path that both routes match, and no error is found where each route has a request", () => {
  const template = fc
    .tuple(
      fc.array(fc.constantFrom("a", "b", "*"), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      fc.constantFrom("", ":v", ":w:v"),
    )
    .map(([parts, rest, custom]) => `GET /${parts.join("/")}${rest ? "/**" : ""}${custom}`);
  fc.assert(
    fc.property(fc.uniqueArray(template, { minLength: 2, maxLength: 5 }), (lines) => {
      const routes = lines.map(route);
      for (const { message, example } of findConflicts(routes).warnings) {
        const [mine = "", theirs = ""] = /^(\S+): overlaps with (\S+) /.exec(message)?.slice(1) ?? [];
        for (const one of [mine, theirs]) expect(winner([`GET ${one}`], example), message).toBe(one);
      }
    }),
    { numRuns: cases(1000) },
  );
});
