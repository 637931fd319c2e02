import { expect, test } from "vitest";
import { consumed } from "../support/consumed.ts";
import { testDatabase } from "../support/database.ts";
import { endWait, grouping, taken, waiting } from "./grouped-tenant.ts";
import { drained } from "./notifications.ts";
import { namesOf, startedServer } from "./notified-tenant.ts";

const { sql, url } = await testDatabase();

test("500 alerts are one message over a death in the wait, in the flush and in the send", async () => {
  const server = await startedServer(url, 1);
  const { tenant, put, arrived, unnamed } = await grouping(sql, server, 3600);
  const expected: string[] = [];
  const all: string[] = [];
  for (const at of ["wait", "groups:flushed", "deliveries:claimed", "deliveries:sent", "deliveries:recorded"]) {
    const host = at.replace(":", "-");
    const own = namesOf(host, 500);
    all.push(...own);
    await put(host, own.slice(0, 250));
    await put(host, own.slice(250));
    await consumed(sql, tenant.id);
    await waiting(sql, tenant.id, 1);
    if (at === "wait") {
      // A job that takes in some of them may die with it.
      await server.kill();
      await endWait(sql, tenant.id, Date.now());
    } else {
      await taken(sql, tenant.id);
      await server.arm({ points: { [at]: { act: "die" } } });
      await endWait(sql, tenant.id, Date.now());
      await server.ended();
    }
    await server.start();
    expected.push(`${host} 500`);
    await expect.poll(arrived).toEqual(expected.toSorted());
  }
  await drained(sql);
  expect(arrived()).toEqual(expected.toSorted());
  expect(await unnamed(all)).toEqual([]);
});

test("500 alerts that any of three processes takes are one message", async () => {
  const server = await startedServer(url, 3);
  const { put, arrived, unnamed } = await grouping(sql, server, 15);
  const all = namesOf("h", 500);
  await Promise.all(Array.from({ length: 50 }, (_, i) => put("h", all.slice(i * 10, i * 10 + 10))));
  await expect.poll(arrived).toEqual(["h 500"]);
  await drained(sql);
  expect(arrived()).toEqual(["h 500"]);
  expect(await unnamed(all)).toEqual([]);
});
