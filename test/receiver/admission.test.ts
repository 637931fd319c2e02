import { setTimeout as sleep } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { admission } from "../../src/receiver/admission.ts";

const exhausted = expect.objectContaining({ code: Code.ResourceExhausted });

/** One request with one transaction of `ms`. */
const send = (ingest: ReturnType<typeof admission>, ms: number) =>
  ingest.request(1, () => ingest.turn(() => sleep(ms, "stored")));

test("transactions take turns, first come first served, and never more than allowed", async () => {
  const ingest = admission({ turnsMax: 3 });
  let running = 0;
  let most = 0;
  const order: number[] = [];
  await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      ingest.turn(async () => {
        order.push(i);
        most = Math.max(most, ++running);
        await sleep(2);
        running -= 1;
        if (i % 5 === 0) throw new Error("it failed");
      }),
    ).map((each) => each.catch(() => undefined)),
  );
  expect(most).toBe(3);
  expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
});

test("a burst waits, however large", async () => {
  const ingest = admission({ turnsMax: 4 });
  const burst = Array.from({ length: 400 }, () => send(ingest, 1));
  expect(new Set(await Promise.all(burst))).toEqual(new Set(["stored"]));
});

test("a flood is refused from the moment that its queue stands; after it all is well at once", async () => {
  const ingest = admission({ turnsMax: 4, standingMs: 50 });
  const answers: Promise<string>[] = [];
  const endMs = performance.now() + 400;
  let refused = 0;
  while (performance.now() < endMs) {
    for (let i = 0; i < 20; i++) {
      try {
        ingest.check();
        answers.push(send(ingest, 5));
      } catch (error) {
        expect(error).toEqual(exhausted);
        refused += 1;
      }
    }
    await sleep(2);
  }
  expect(refused).toBeGreaterThan(0);
  // What was let in is stored; nobody who was let in is refused later.
  const startMs = performance.now();
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["stored"]));
  expect(performance.now() - startMs).toBeLessThan(1000);
  ingest.check();
  expect(await send(ingest, 1)).toBe("stored");
});

describe("under a flood", () => {
  /** Its queue has stood for long enough, and has just become empty. */
  async function flooded() {
    const ingest = admission({ turnsMax: 2, standingMs: 50 });
    const first = Array.from({ length: 12 }, () => send(ingest, 20));
    await sleep(60);
    expect(() => ingest.check()).toThrow(exhausted);
    await Promise.all(first);
    return ingest;
  }

  test("a queue that is empty by chance is kept short all the same", async () => {
    const ingest = await flooded();
    const again = Array.from({ length: 20 }, () => send(ingest, 5).catch(() => "refused"));
    expect((await Promise.all(again)).filter((answer) => answer === "stored")).toHaveLength(4);
  });

  test("those count who were let in and have not come as far as their turn", async () => {
    const ingest = await flooded();
    const slow = () => ingest.request(1, () => sleep(5).then(() => ingest.turn(() => sleep(5, "stored"))));
    const again = await Promise.all(Array.from({ length: 20 }, () => slow().catch(() => "refused")));
    expect(again.filter((answer) => answer === "stored")).toHaveLength(4);
  });

  test("when turns are free most of the time, a burst waits again, although some are refused now and then", async () => {
    const ingest = await flooded();
    let refused = 0;
    const endMs = performance.now() + 600;
    for (let turn = 0; performance.now() < endMs; turn++) {
      // Five at once are one too many, now and then; else nobody comes for a while.
      await sleep(10);
      const sent = Array.from({ length: turn % 4 === 0 ? 5 : 0 }, () => send(ingest, 2).catch(() => "refused"));
      for (const answer of await Promise.all(sent)) if (answer === "refused") refused += 1;
    }
    expect(refused).toBeGreaterThan(0);
    const burst = Array.from({ length: 50 }, () => send(ingest, 1));
    expect(new Set(await Promise.all(burst))).toEqual(new Set(["stored"]));
  });

  test("when nobody has come for a while, a burst waits again", async () => {
    const ingest = await flooded();
    await sleep(500);
    const burst = Array.from({ length: 50 }, () => send(ingest, 1));
    expect(new Set(await Promise.all(burst))).toEqual(new Set(["stored"]));
  });
});

describe("items in work", () => {
  test("are bounded over all requests; a request that is alone may have any number", async () => {
    const ingest = admission({ turnsMax: 4, itemsMax: 100 });
    expect(await ingest.request(1000, () => sleep(1, "stored"))).toBe("stored");
    const first = ingest.request(60, () => sleep(50, "stored"));
    await expect(ingest.request(41, () => sleep(1, "stored"))).rejects.toEqual(exhausted);
    expect(await ingest.request(40, () => sleep(1, "stored"))).toBe("stored");
    await first;
    const failing = ingest.request(100, () => Promise.reject(new Error("it failed")));
    await expect(failing).rejects.toThrow("it failed");
    expect(await ingest.request(100, () => sleep(1, "stored"))).toBe("stored");
  });
});
