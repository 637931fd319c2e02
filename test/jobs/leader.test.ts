import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Db } from "../../src/db/connect.ts";
import { leadership } from "../../src/jobs/leader.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();

async function until(holds: () => boolean, withinMs: number) {
  const endMs = performance.now() + withinMs;
  while (!holds() && performance.now() < endMs) await sleep(5);
  return holds();
}

test("one of many leads, never two; when it goes another one does", async () => {
  const all = Array.from({ length: 5 }, () => leadership(sql, "one", 300));
  const leaders = () => all.filter((each) => each.held());
  expect(await until(() => leaders().length > 0, 5000)).toBe(true);
  const watch = setInterval(() => expect(leaders().length).toBeLessThanOrEqual(1), 1);
  const [first] = leaders();
  await sleep(700);
  expect(leaders()).toEqual([first]);
  await first?.stop();
  expect(first?.held()).toBe(false);
  expect(await until(() => leaders().length === 1, 5000)).toBe(true);
  clearInterval(watch);
  for (const each of all) await each.stop();
});

test("a leader that is heard of no more has stopped to believe so before another one leads", async () => {
  // What it would do to renew its lease does not arrive.
  let silent = false;
  const cut = ((...args: unknown[]) =>
    silent
      ? Promise.reject(new Error("cut"))
      : (sql as never as (...a: unknown[]) => unknown)(...args)) as unknown as Db;
  const paused = leadership(cut, "two", 300);
  expect(await until(() => paused.held(), 5000)).toBe(true);
  silent = true;
  const other = leadership(sql, "two", 300);
  expect(await until(() => other.held(), 5000)).toBe(true);
  expect(paused.held()).toBe(false);
  silent = false;
  await Promise.all([paused.stop(), other.stop()]);
});
