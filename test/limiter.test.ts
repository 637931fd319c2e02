import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Holder, type LimiterShare, limiter, networkOf } from "../src/limiter.ts";

const refusal = (reason: string) =>
  expect.objectContaining({ code: 8, rawMessage: `too many calls are in work${reason}; send the request again` });
const make = (max: number, more: Partial<Parameters<typeof limiter>[0]> = {}) =>
  limiter({ max, what: "calls are in work", ...more });

/** Takes one after the other until it is refused; how many it got. */
function takeAll(take: () => unknown): { taken: number; error: unknown } {
  for (let taken = 0; ; taken++) {
    try {
      take();
    } catch (error) {
      return { taken, error };
    }
  }
}

describe("what is used at once", () => {
  test("has one bound for all", () => {
    const calls = make(10);
    const { taken, error } = takeAll(() => calls.take({}));
    expect(taken).toBe(10);
    expect(error).toEqual(refusal(""));
  });

  test("leaves a part that no tenant, key or address alone can take", () => {
    for (const [who, most, least, reason] of [
      [{ tenant: "a" }, 889, 880, " of this tenant"],
      [{ tenant: "a", key: "k" }, 801, 790, " of this API key"],
      [{ address: "192.0.2.1" }, 801, 790, " from this address"],
    ] as const) {
      const calls = make(1000);
      const { taken, error } = takeAll(() => calls.take(who));
      expect(taken).toBeLessThanOrEqual(most);
      expect(taken).toBeGreaterThanOrEqual(least);
      expect(error).toEqual(refusal(reason));
      calls.take({ tenant: "b", key: "l", address: "192.0.2.2" });
    }
  });

  test("leaves a part after several that take all they can, too", () => {
    const calls = make(1000);
    for (let round = 0; round < 1000; round++) {
      for (const tenant of ["a", "b", "c"]) {
        try {
          calls.take({ tenant });
        } catch {}
      }
    }
    expect(calls.used).toBeGreaterThan(900);
    expect(takeAll(() => calls.take({ tenant: "d" })).taken).toBeGreaterThan(20);
  });

  test("leaves the last of a few places to one that has none", () => {
    const calls = make(2);
    expect(takeAll(() => calls.take({ tenant: "a" })).taken).toBe(1);
    calls.take({ tenant: "b" });
    expect(() => calls.take({ tenant: "c" })).toThrow(refusal("").rawMessage);
  });

  test("may be larger than all of it while nothing else is used", () => {
    const bytes = make(100);
    const large = bytes.take({ tenant: "a" }, 60);
    large.more(60);
    expect(() => bytes.take({ tenant: "b" })).toThrow();
    large.release(110);
    expect(large.amount()).toBe(10);
    expect(() => bytes.take({ tenant: "b" }, 91)).toThrow();
    bytes.take({ tenant: "b" }, 60);
    expect(() => large.more(60)).toThrow();
    expect(large.amount()).toBe(10);
    large.release();
    large.release();
    expect(bytes.used).toBe(60);
  });
});

describe("what waits for its turn", () => {
  test("is let in tenant by tenant, within one key by key, within one in order", async () => {
    const turns = make(1, { waitingMax: 100, shares: {} });
    const first = await turns.turn({});
    const order: string[] = [];
    const waits = ["a1 x", "a1 y", "a1 z", "a2 x", "b1 x", "b1 y", "c1 x"].map(async (name) => {
      const [key = ""] = name.split(" ");
      const hold = await turns.turn({ tenant: name.charAt(0), key });
      order.push(name);
      hold.release();
    });
    first.release();
    await Promise.all(waits);
    expect(order).toEqual(["a1 x", "b1 x", "c1 x", "a2 x", "b1 y", "a1 y", "a1 z"]);
    expect(turns).toMatchObject({ used: 0, waiting: 0 });
  });

  test("without a key is let in address by address", async () => {
    const turns = make(1, { waitingMax: 100, shares: {} });
    const first = await turns.turn({});
    const order: string[] = [];
    const calls = ["a1", "a2", "a3", "b1"].map(async (name) => {
      const hold = await turns.turn({ address: name.charAt(0) });
      order.push(name);
      hold.release();
    });
    first.release();
    await Promise.all(calls);
    expect(order).toEqual(["a1", "b1", "a2", "a3"]);
  });

  test("does not wait behind those of a tenant whose share is used up", async () => {
    const turns = make(4, { waitingMax: 100 });
    for (let i = 0; i < 3; i++) await turns.turn({ tenant: "a" });
    const leaving = new AbortController();
    const blocked = turns.turn({ tenant: "a" }, leaving.signal);
    expect(turns.waiting).toBe(1);
    await turns.turn({ tenant: "b" });
    leaving.abort(new Error("gone"));
    await expect(blocked).rejects.toThrow("gone");
    expect(turns.waiting).toBe(0);
  });

  test("is bounded, with the same shares; without places to wait it is refused at once", async () => {
    const turns = make(1, { waitingMax: 10 });
    await turns.turn({});
    const stop = new AbortController();
    const outcomes = Array.from({ length: 12 }, () => turns.turn({ tenant: "a" }, stop.signal));
    outcomes.push(turns.turn({ tenant: "b" }, stop.signal));
    const settled = Promise.allSettled(outcomes);
    expect(turns.waiting).toBe(10);
    stop.abort(new Error("stop"));
    const refused = (await settled).map((outcome) => (outcome as PromiseRejectedResult).reason.message);
    expect(refused.slice(9, 12).every((message: string) => message.includes("and wait of this tenant"))).toBe(true);
    expect(refused[12]).toBe("stop");
    const none = make(1);
    none.take({});
    await expect(none.turn({})).rejects.toMatchObject({ code: 8 });
  });

  test("loses no place, whatever comes, goes and gives up", async () => {
    const who = fc.record({ tenant: fc.constantFrom("a", "b"), key: fc.constantFrom("1", "2", "3") });
    const steps = fc.array(
      fc.oneof(fc.record({ come: who }), fc.record({ go: fc.nat(20) }), fc.record({ end: fc.nat(20) })),
    );
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const turns = make(3, { waitingMax: 5 });
        const held: { hold: LimiterShare; who: Holder }[] = [];
        const waiting: AbortController[] = [];
        const outcomes: Promise<void>[] = [];
        for (const step of all) {
          if ("come" in step) {
            const leave = new AbortController();
            waiting.push(leave);
            outcomes.push(
              turns.turn(step.come, leave.signal).then(
                (hold) => void held.push({ hold, who: step.come }),
                () => {},
              ),
            );
          } else if ("go" in step) waiting[step.go]?.abort();
          else held.splice(step.end % (held.length || 1), 1)[0]?.hold.release();
          await new Promise((resolve) => setImmediate(resolve));
          expect(turns.used).toBe(held.length);
          expect(turns.used).toBeLessThanOrEqual(3);
        }
        for (const leave of waiting) leave.abort();
        await Promise.all(outcomes);
        for (const { hold } of held) hold.release();
        expect(turns).toMatchObject({ used: 0, waiting: 0 });
      }),
      { numRuns: 50 },
    );
  });
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:1:2::6", "2001:db8:1:2::/64"],
  ["2001:db8::6", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("%s counts as %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});
