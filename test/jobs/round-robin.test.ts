import { expect, test } from "vitest";
import { type FailedTurns, inTurns } from "../../src/jobs/round-robin.ts";

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
    () => expect.fail(),
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
    () => expect.fail(),
  );
  expect(done).toEqual(["a", "b", "a"]);
});

test("tenants whose work fails keep no other one back, and are reported once", async () => {
  const done: string[] = [];
  const reported: FailedTurns[] = [];
  await inTurns(
    ["a", "b", "c", "d"],
    () => true,
    async (id) => {
      if (id === "b" || id === "d") throw new Error(`${id} is away`);
      done.push(id);
      return done.length < 3;
    },
    (turns) => reported.push(turns),
  );
  expect(done).toEqual(["a", "c", "a", "c"]);
  expect(reported).toEqual([{ tenantId: "b", err: new Error("b is away"), tenants: 2 }]);
});
