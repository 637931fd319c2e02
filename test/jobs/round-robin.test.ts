import { expect, test } from "vitest";
import { inTurns } from "../../src/jobs/round-robin.ts";

test("a tenant with much work does not keep the others waiting, and each is done until the end", async () => {
  const left = new Map([
    ["large", 4],
    ["small", 1],
    ["idle", 0],
  ]);
  const done: string[] = [];
  await inTurns(
    [...left.keys()],
    () => true,
    async (id) => {
      done.push(id);
      left.set(id, (left.get(id) ?? 0) - 1);
      return (left.get(id) ?? 0) > 0;
    },
  );
  expect(done).toEqual(["large", "small", "idle", "large", "large", "large"]);
});

test("ends where this process does not lead any more", async () => {
  const done: string[] = [];
  await inTurns(
    ["a", "b"],
    () => done.length < 3,
    async (id) => {
      done.push(id);
      return true;
    },
  );
  expect(done).toEqual(["a", "b", "a"]);
});
