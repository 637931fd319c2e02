import { expect, test } from "vitest";
import { tenantRounds } from "../../src/jobs/tenant-rounds.ts";
import { testDatabase } from "../support/database.ts";

const { sql: db } = await testDatabase();

test("each tenant is done until the end, and those whose work fails keep no other one back and are reported once", async () => {
  const done: string[] = [];
  const over = Promise.withResolvers<unknown[]>();
  const rounds = tenantRounds({
    db,
    name: "rounds",
    ms: 20,
    tenantIds: async () => (done.length === 0 ? ["a", "b", "c", "d"] : []),
    async portion(id) {
      if (id === "b" || id === "d") throw new Error(`${id} is away`);
      done.push(id);
      return done.length === 1;
    },
    log: { warn: (...said: unknown[]) => over.resolve(said) } as never,
    failed: "it was not done",
  });
  expect(await over.promise).toEqual([{ tenantId: "b", err: new Error("b is away"), tenants: 2 }, "it was not done"]);
  expect(done).toEqual(["a", "a", "c"]);
  await rounds.stop();
});

test("one that has much to do keeps no other one back", async () => {
  const done: string[] = [];
  const over = Promise.withResolvers<void>();
  const rounds = tenantRounds({
    db,
    name: "turns",
    ms: 20,
    tenantIds: async () => (done.length === 0 ? ["a", "b"] : []),
    async portion(id) {
      done.push(id);
      const count = done.filter((each) => each === id).length;
      if (count === 25) over.resolve();
      return count < (id === "a" ? 25 : 2);
    },
    log: { warn: console.warn },
    failed: "it was not done",
  });
  await over.promise;
  expect(done.join("")).toBe(`${"a".repeat(10)}bb${"a".repeat(15)}`);
  await rounds.stop();
});
