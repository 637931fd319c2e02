import { expect, test } from "vitest";
import { recentMap } from "../../src/integrations/recent-map.ts";

test("what is used stays; what is not is forgotten when others have taken its room", () => {
  const map = recentMap<number>(2000, 99);
  map.set("a", 0);
  map.set("b", 0);
  for (let i = 0; i < 50; i++) {
    map.set(String(i % 10), i);
    map.get("a");
  }
  expect([map.get("a"), map.get("b")]).toEqual([0, undefined]);
});

test("an entry counts with its own weight, once however often it is set", () => {
  const map = recentMap<number>(2000, 1);
  map.set("a", 0);
  for (let i = 0; i < 5000; i++) map.set("b", i);
  expect(map.get("a")).toBe(0);
  for (const key of ["c", "d"]) map.set(key, 0, 1500);
  expect(map.get("a")).toBeUndefined();
});
