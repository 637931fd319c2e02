import { expect, onTestFinished, test, vi } from "vitest";
import { databaseClock } from "../../src/db/clock.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();

test("the clock shows the database's time, whatever the time of this process", async () => {
  const clock = await databaseClock(sql);
  onTestFinished(() => clock.stop());
  vi.useFakeTimers({ toFake: ["Date"], now: 0 });
  onTestFinished(() => void vi.useRealTimers());
  const [row] = await sql<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  expect(Math.abs(clock.nowMs() - (row?.ms as number))).toBeLessThan(5000);
  expect(Number.isInteger(clock.nowMs())).toBe(true);
});

test("it never goes back, also while it is set again", async () => {
  const clock = await databaseClock(sql);
  onTestFinished(() => clock.stop());
  let last = 0;
  for (let i = 0; i < 20; i++) {
    await clock.refresh();
    for (let k = 0; k < 100; k++) {
      const now = clock.nowMs();
      expect(now).toBeGreaterThanOrEqual(last);
      last = now;
    }
  }
});
