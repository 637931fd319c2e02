import { expect, test, vi } from "vitest";
import type { Db } from "../../src/db/connect.ts";
import { leadership } from "../../src/jobs/leader.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();

const until = (holds: () => boolean | Promise<boolean>) => vi.waitUntil(holds, { timeout: 10_000, interval: 5 });

test("one of many leads, never two; when it goes another one does", async () => {
  const all = Array.from({ length: 5 }, () => leadership(sql, "one", 1000));
  const leaders = () => all.filter((each) => each.held());
  await until(() => leaders().length > 0);
  const watch = setInterval(() => expect(leaders().length).toBeLessThanOrEqual(1), 1);
  const [first] = leaders();
  const leases = new Set<string>();
  await until(async () => {
    const [row] = await sql<{ until: string }[]>`select until_ms::text as until from leases where name = 'one'`;
    return leases.add(row?.until ?? "").size > 3;
  });
  expect(leaders()).toEqual([first]);
  await first?.stop();
  expect(first?.held()).toBe(false);
  await until(() => leaders().length === 1);
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
  await until(() => paused.held());
  silent = true;
  const other = leadership(sql, "two", 300);
  await until(() => other.held());
  expect(paused.held()).toBe(false);
  silent = false;
  await Promise.all([paused.stop(), other.stop()]);
});
