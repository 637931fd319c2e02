import { expect, test } from "vitest";
import { lengthErrors, longFunctions, sizesOf } from "../scripts/sizes.ts";

const body = "\n".repeat(80);
const files = new Map([
  ["src/server.ts", "a\nb\n"],
  ["src/events/get.ts", `function get() {${body}}\nconst one = { put() {${body}} };\ntest("long", () => {${body}});\n`],
  ["src/events/put.ts", `const short = () => {${body.slice(1)}};\n`],
  ["src/rules/rule.ts", "a\n"],
  ["console/events/list.tsx", `const List = () => <b>{() => {${body}\n}}</b>;\n`],
]);
const long = longFunctions(files);

test("functions of more than 80 lines are found by their names; those without one do not count", () => {
  expect(long.map(({ place, lines }) => [place, lines])).toEqual([
    ["console/events/list.tsx List", 82],
    ["src/events/get.ts get", 81],
    ["src/events/get.ts put", 81],
  ]);
});

test("six sizes are measured", () => {
  const lock = JSON.stringify({ packages: { "": {}, "node_modules/a": {}, "node_modules/b": {} } });
  expect([...sizesOf(files, lock).values()]).toEqual([326, 323, 82, 0, 82, 2]);
});

test("a long function that is not listed fails, as does a listed one that is long no more, and a longer list", () => {
  const listed = long.map(({ place }) => place);
  expect(lengthErrors(long, listed)).toEqual([]);
  expect(lengthErrors(long, listed.slice(1))).toEqual(["console/events/list.tsx List: 82 lines, 80 allowed"]);
  expect(lengthErrors(long, [...listed, "src/a.ts gone"], listed)).toEqual([
    "src/a.ts gone: long no more, or gone: remove it from scripts/long-functions.json",
    "scripts/long-functions.json: 4 functions, 3 before: the list may only shrink",
  ]);
});
