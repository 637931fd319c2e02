import { describe, expect, test } from "vitest";
import {
  allowance,
  type DestinationBounds,
  type DestinationState,
  freshState,
  heldBack,
  judged,
  taken,
} from "../../src/notifications/queue/destination-state.ts";
import { sendSlots } from "../../src/notifications/queue/send-slots.ts";

const t0 = 1_800_000_000_000;
const unbound: DestinationBounds = { pace: undefined, maxPerMinute: 0 };
const fail = (state: DestinationState, count: number, nowMs: number) =>
  judged(state, Array(count).fill("temporary"), nowMs);

describe("the breaker", () => {
  test("opens after five temporary failures in a row, for 30 s, and then lets one try pass", () => {
    const four = fail(freshState, 4, t0);
    expect(four.opened).toBe(0);
    expect(fail(judged(four, ["alive"], t0), 4, t0).opened).toBe(0);
    const open = fail(four, 1, t0);
    expect(allowance(open, unbound, t0 + 29_999)).toMatchObject({ max: 0, againMs: t0 + 30_000 });
    expect(allowance(open, unbound, t0 + 30_000)).toMatchObject({ max: 1 });
    const probing = taken(open, unbound, 1, t0 + 30_000);
    expect(allowance(probing, unbound, t0 + 30_001).max).toBe(0);
  });

  test("doubles to ten minutes while its probes fail, and closes when one does not", () => {
    let state = fail(freshState, 5, t0);
    let nowMs = t0;
    const waits: number[] = [];
    for (let i = 0; i < 7; i++) {
      waits.push((state.openUntilMs - nowMs) / 1000);
      nowMs = state.openUntilMs;
      state = fail(taken(state, unbound, 1, nowMs), 1, nowMs);
    }
    expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
    expect(judged(state, ["alive"], nowMs)).toMatchObject({ failures: 0, opened: 0, openUntilMs: 0 });
  });

  test("tries that were under way when it opened do not keep it open for longer", () => {
    const open = fail(freshState, 5, t0);
    expect(fail(open, 20, t0 + 100).openUntilMs).toBe(t0 + 30_000);
  });
});

describe("a product's own pace", () => {
  test.each([
    { tries: 1, perMs: 1000 },
    { tries: 60, perMs: 30_000 },
    { tries: 120, perMs: 60_000 },
  ])("$tries in $perMs ms are never passed, wherever the time begins, and are nearly used", (pace) => {
    const bounds = { pace, maxPerMinute: 0 };
    let state = freshState;
    const timesMs: number[] = [];
    for (let nowMs = t0; nowMs < t0 + 3 * pace.perMs; nowMs += 50) {
      const { max } = allowance(state, bounds, nowMs);
      state = taken(state, bounds, max, nowMs);
      for (let i = 0; i < max; i++) timesMs.push(nowMs);
    }
    for (const from of timesMs) {
      expect(timesMs.filter((ms) => ms >= from && ms < from + pace.perMs).length).toBeLessThanOrEqual(pace.tries);
    }
    expect(timesMs.length).toBeGreaterThanOrEqual(Math.floor(1.4 * pace.tries));
  });
});

describe("maxPerMinute", () => {
  const bounds = { pace: undefined, maxPerMinute: 3 };

  test("this many go, the others are held until the minute ends, and are then one", () => {
    expect(allowance(freshState, bounds, t0)).toMatchObject({ max: 3, summary: false });
    let state = taken(freshState, bounds, 2, t0);
    expect(allowance(state, bounds, t0 + 10).max).toBe(1);
    state = taken(state, bounds, 1, t0 + 10);
    expect(allowance(state, bounds, t0 + 20)).toMatchObject({ max: 0, held: true, againMs: t0 + 60_000 });
    state = heldBack(state);
    expect(allowance(state, bounds, t0 + 60_000)).toMatchObject({ summary: true });
    state = taken(state, bounds, 1, t0 + 60_000);
    expect(allowance(state, bounds, t0 + 60_001)).toMatchObject({ max: 2, summary: false });
  });

  test("a minute without any that were held back starts again", () => {
    const state = taken(freshState, bounds, 3, t0);
    expect(allowance(state, bounds, t0 + 60_000)).toMatchObject({ max: 3, summary: false });
  });
});

describe("the places of sending", () => {
  test("a destination alone gets a third, a tenant two thirds, and there is always one for the next", () => {
    const places = sendSlots(256);
    expect(places.take("a", "slow", 1000)).toBe(86);
    for (let i = 0; i < 1000; i++) places.take("a", `d${i}`, 1);
    expect(places.used).toBeLessThanOrEqual(172);
    for (let i = 0; i < 200; i++)
      expect([i, places.take(`t${i}`, "d", 1)]).toEqual([i, i < 256 - 172 ? 1 : expect.any(Number)]);
  });

  test("what is given back can be taken again", () => {
    const places = sendSlots(4);
    const got = places.take("a", "d", 10);
    expect(places.take("a", "d", 1)).toBe(0);
    places.free("a", "d", got);
    expect(places.used).toBe(0);
    expect(places.take("a", "d", 1)).toBe(1);
  });
});
