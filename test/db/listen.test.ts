import { expect, onTestFinished, test, vi } from "vitest";
import { listener } from "../../src/db/listen.ts";
import { sessionName } from "../../src/db/session-name.ts";
import { testDatabase } from "../support/database.ts";

const database = await testDatabase();
const { sql } = database;

function start() {
  const replicas = listener(database.url);
  onTestFinished(() => replicas.stop());
  const heard: Record<string, string[]> = { one: [], Two: [] };
  const listen = (channel: string) => replicas.listen(channel, (payload) => heard[channel]?.push(payload));
  return { replicas, heard, listen };
}

const connections = () => sql<{ pid: number }[]>`
  select pid from pg_stat_activity where application_name = ${sessionName("listener")} and datname = current_database()`;
const notify = (channel: string, payload: string) => sql`select pg_notify(${channel}, ${payload})`;

test("each channel hears its own notifications, over one connection", async () => {
  const { heard, listen } = start();
  listen("one");
  await vi.waitFor(() => expect(heard.one).toEqual([""]));
  listen("Two");
  await vi.waitFor(() => expect(heard.Two).toEqual([""]));
  expect(heard.one).toEqual([""]);
  await notify("one", "a");
  await notify("Two", "b");
  await notify("three", "c");
  await vi.waitFor(() => expect(heard).toEqual({ one: ["", "a"], Two: ["", "b"] }));
  expect(await connections()).toHaveLength(1);
});

test("a connection that breaks comes back, and each channel is told that it may have missed some", async () => {
  const { heard, listen } = start();
  listen("one");
  listen("Two");
  await vi.waitFor(() => expect(heard).toEqual({ one: [""], Two: [""] }));
  for (const { pid } of await connections()) await sql`select pg_terminate_backend(${pid})`;
  await notify("one", "missed");
  await vi.waitFor(() => expect(heard).toEqual({ one: ["", ""], Two: ["", ""] }), { timeout: 5000 });
  await notify("Two", "b");
  await vi.waitFor(() => expect(heard.Two).toEqual(["", "", "b"]));
  expect(await connections()).toHaveLength(1);
});

test("nothing is heard after its end", async () => {
  const { replicas, heard, listen } = start();
  listen("one");
  await vi.waitFor(() => expect(heard.one).toEqual([""]));
  await replicas.stop();
  await vi.waitFor(async () => expect(await connections()).toHaveLength(0));
  const other = start();
  other.listen("one");
  await vi.waitFor(() => expect(other.heard.one).toEqual([""]));
  await notify("one", "late");
  await vi.waitFor(() => expect(other.heard.one).toEqual(["", "late"]));
  expect(heard.one).toEqual([""]);
});
