import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { every } from "../src/every.ts";

test("rounds do not overlap, a failed one is followed by another, and stopping waits for the one that runs", async () => {
  const rounds: string[] = [];
  let running = 0;
  const again = every(5, async () => {
    expect(++running).toBe(1);
    await sleep(20);
    running -= 1;
    rounds.push("done");
    if (rounds.length === 1) throw new Error("once");
  });
  while (rounds.length < 3) await sleep(5);
  while (running === 0) await sleep(1);
  await again.stop();
  expect(running).toBe(0);
  // By then another round would have begun: work that began later has had three.
  let turns = 0;
  const later = every(5, () => void turns++);
  while (turns < 3) await sleep(5);
  await later.stop();
  expect(running).toBe(0);
});

test("the first round may come earlier than the others", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const again = every(60_000, resolve, 1);
  await promise;
  await again.stop();
});
