import { expect, test } from "vitest";
import { setBounded } from "../src/bounded-map.ts";

test("the entry that was set longest ago goes", () => {
  const map = new Map<string, number>();
  for (const [at, key] of ["a", "b", "a", "c"].entries()) setBounded(map, key, at, 2);
  expect([...map]).toEqual([
    ["a", 2],
    ["c", 3],
  ]);
});
