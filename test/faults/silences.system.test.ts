import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { consumed } from "../support/consumed.ts";
import { testDatabase } from "../support/database.ts";
import { notifying } from "./grouped-tenant.ts";
import { namesOf, startedServer } from "./notified-tenant.ts";

const { sql, url } = await testDatabase();

test("a server that dies when a silence ends sends what it held, each once", async () => {
  const server = await startedServer(url, 1);
  const { silence, put, arrived, tenant } = await notifying(sql, server);
  const all: string[] = [];
  for (const [i, at] of ["deliveries:claimed", "silences:released", "transaction:committed"].entries()) {
    const own = namesOf(`h${i}`, 30);
    all.push(...own);
    await silence(4000, `h${i}`);
    await put(`h${i}`, own);
    await consumed(sql, tenant.id);
    const held = async () =>
      (await sql`select from due_deliveries where tenant_id = ${tenant.id} and silence_id is not null`).count;
    await expect.poll(held).toBe(30);
    await server.arm({ points: { [at]: { act: "die" } } });
    await server.ended();
    await server.start();
    await expect.poll(() => arrived().length).toBe(all.length);
  }
  await sleep(500);
  expect(arrived().sort()).toEqual(all.sort());
});

test("a silence is in force on all of three processes for every event that is sent after its answer", async () => {
  const server = await startedServer(url, 3);
  const { silence, put, arrived, tenant } = await notifying(sql, server);
  for (let i = 0; i < 20; i++) {
    await silence(3_600_000, `h${i}`);
    // Each call is a connection of its own, which any of the processes may take.
    await Promise.all(namesOf(`h${i}`, 9).map((name) => put(`h${i}`, [name])));
  }
  await put("loud", ["loud"]);
  await consumed(sql, tenant.id);
  await expect.poll(arrived).toEqual(["loud"]);
  const [row] = await sql<{ held: number }[]>`
    select count(*)::int4 as held from due_deliveries where tenant_id = ${tenant.id} and silence_id is not null`;
  expect(row?.held).toBe(180);
});
