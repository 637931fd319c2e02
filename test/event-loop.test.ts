import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { paced } from "../src/event-loop.ts";

/** Uses up a slice. */
function work() {
  const untilMs = performance.now() + 6;
  while (performance.now() < untilMs);
}

describe("long work in slices", () => {
  test("goes on without waiting until its slice is used up", () => {
    expect(paced()()).toBeUndefined();
  });

  test("of many at once, one slice runs in a turn of the event loop", async () => {
    const turns: number[] = [];
    let turn = 0;
    let going = true;
    const counting = (async () => {
      while (going) {
        await nextTurn();
        turn += 1;
      }
    })();
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const pace = paced();
        for (let slice = 0; slice < 3; slice += 1) {
          work();
          await pace();
          turns.push(turn);
        }
      }),
    );
    going = false;
    await counting;
    expect(new Set(turns).size).toBe(turns.length);
  });

  test("takes turns tenant by tenant: one piece of work waits for one slice of each other tenant, not for all that they have", async () => {
    const order: string[] = [];
    async function slices(tenantId: string, count: number) {
      const pace = paced(() => {}, tenantId);
      for (let slice = 0; slice < count; slice += 1) {
        work();
        await pace();
        order.push(tenantId);
      }
    }
    await Promise.all([...Array.from({ length: 20 }, () => slices("many", 2)), slices("one", 2)]);
    expect(order.indexOf("one")).toBeLessThanOrEqual(2);
    expect(order.lastIndexOf("one")).toBeLessThanOrEqual(5);
  });

  test("ends with what its check throws", async () => {
    const pace = paced(() => {
      throw new Error("the client has gone");
    });
    work();
    await expect(pace()).rejects.toThrow("the client has gone");
  });
});
