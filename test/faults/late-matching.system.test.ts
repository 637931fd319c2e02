import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { behindSinceMs } from "../../src/events/consumers/cursors.ts";
import { rulesName } from "../../src/notifications/deciding/deciding.ts";
import { ruleTenant } from "../notifications/rule-tenant.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { post } from "./notifications.ts";
import { clear, place } from "./place.ts";
import { serverProcess } from "./server-process.ts";

const { sql, url } = await testDatabase();
const dataDir = await place();
const server = await serverProcess({ BELFRY_DATA_DIR: dataDir, DATABASE_URL: url });
await server.start();
afterAll(async () => {
  await server.stop();
  await clear(dataDir);
});

const points = ["consumer:read", "consumer:consumed", "enqueue:written", "transaction:committed", "batch:stored"];

test("a server that dies between the commit and matching, or in it, leaves nothing untold and says nothing twice", async () => {
  const tenant = await testTenant(sql);
  const rules = ruleTenant(sql, undefined, tenant.id);
  await rules.trigger("t", { contains: { field: "name", value: "disk" } });
  await rules.destination("d");
  await rules.rule({ name: "r", triggers: ["t"] });
  await rules.engine.stop();

  let from = 0;
  async function put() {
    const events = Array.from({ length: 50 }, (_, i) => ({
      name: `disk ${from + i}`,
      timestamp: String(Date.now()),
      dimensions: { source: "a" },
    }));
    from += events.length;
    await post([server.url], tenant.headers, "data-receiver/events", { events });
  }
  for (const at of points) {
    await server.arm({ points: { [at]: { act: "die" } } });
    const putting = put();
    await server.ended();
    await server.start();
    await putting;
  }
  await put();
  const told = async () => {
    const rows = await sql<{ name: string }[]>`
      select e.name from (
        select event_id from due_deliveries where tenant_id = ${tenant.id}
        union all select event_id from delivery_history where tenant_id = ${tenant.id}
      ) as d join events e on e.tenant_id = ${tenant.id} and e.id = d.event_id`;
    return rows.map(({ name }) => name);
  };
  for (let i = 0; i < 300 && (await told()).length < from; i++) await sleep(100);
  await sleep(500);
  expect((await told()).sort()).toEqual(Array.from({ length: from }, (_, i) => `disk ${i}`).sort());
  expect(await behindSinceMs(sql, tenant.id, rulesName)).toBe(Infinity);
});
