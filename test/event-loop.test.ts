import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { paced } from "../src/event-loop.ts";

/** Uses up a slice. */
function work() {
  const untilMs = performance.now() + 6;
  while (performance.now() < untilMs);
}

/** Counts turns of the event loop. */
function countTurns() {
  let turn = 0;
  let going = true;
  void (async () => {
    while (going) {
      await nextTurn();
      turn += 1;
    }
  })();
  return { count: () => turn, stop: () => (going = false) };
}

describe("long work in slices", () => {
  test("goes on without waiting until its slice is used up", () => {
    expect(paced()()).toBeUndefined();
  });

  test("of many at once, one slice runs in a turn of the event loop", async () => {
    const turns: number[] = [];
    const turn = countTurns();
    await Promise.all(
      Array.from({ length: 10 }, async () => {
        const pace = paced();
        for (let slice = 0; slice < 3; slice += 1) {
          work();
          await pace();
          if (slice < 2) turns.push(turn.count());
        }
      }),
    );
    turn.stop();
    expect(new Set(turns).size).toBe(turns.length);
  });

  test("short pieces share a slice", async () => {
    const turn = countTurns();
    const before = turn.count();
    work(); // none begins with a slice of its own
    const begun = paced();
    work();
    await Promise.all(
      Array.from({ length: 1000 }, async () => {
        const pace = paced();
        await begun();
        await pace();
      }),
    );
    expect(turn.count() - before).toBeLessThan(200);
    turn.stop();
  });

  test("pieces that begin in one turn share its slice", async () => {
    const paces = Array.from({ length: 3 }, () => paced());
    work();
    const waits = paces.map((pace) => pace());
    expect(waits.every((wait) => wait !== undefined)).toBe(true);
    const later = paced();
    expect(later()).toBeDefined();
    await Promise.all(waits);
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
