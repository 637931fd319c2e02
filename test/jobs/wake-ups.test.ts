import { expect, onTestFinished, test, vi } from "vitest";
import { listener } from "../../src/db/listen.ts";
import { alarms, otherServers } from "../../src/jobs/wake-ups.ts";
import { testDatabase } from "../support/database.ts";

const { pool, url } = await testDatabase();

test("others are called once, however often a server finds more than it takes on", async () => {
  const heard: string[] = [];
  const replicas = listener(url);
  onTestFinished(() => replicas.stop());
  const call = otherServers(pool, replicas, "belfry_wake_test", () => void heard.push("called"));
  await vi.waitFor(() => expect(heard).toHaveLength(1)); // when listening begins
  for (let i = 0; i < 100; i++) call();
  await vi.waitFor(() => expect(heard.length).toBeGreaterThan(1));
  expect(heard).toHaveLength(2);
});

test("an alarm rings once for each key, at the earliest time that was asked for", async () => {
  const rang: string[] = [];
  const later = alarms<string>(Date.now, (key) => rang.push(key));
  onTestFinished(later.stop);
  later.set("a", Date.now() + 3_600_000);
  later.set("a", Date.now());
  later.set("a", Date.now() + 1);
  later.set("b", Date.now());
  later.set("cleared", Date.now());
  later.clear("cleared");
  await vi.waitFor(() => expect(rang).toHaveLength(2));
  later.set("a", Date.now());
  await vi.waitFor(() => expect(rang).toHaveLength(3));
  expect(rang).toEqual(["a", "b", "a"]);
});
