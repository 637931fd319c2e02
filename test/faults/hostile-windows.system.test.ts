import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { heldMs, turnMsMax } from "../support/loop-turns.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({});
const { sql } = server.database;
const path = "/v1/modelcontext/maintwindows";
const hourMs = 3_600_000;
const attacker = await testTenant(sql);
const attack = v1(server.url, attacker.headers);
const neighbour = v1(server.url, (await testTenant(sql)).headers);

/** Does what an attacker does while a neighbour sends single events; returns the longest turn of the loop, ms. */
async function beside(work: () => Promise<unknown>) {
  let going = true;
  async function send() {
    for (let i = 0; going; i++, await sleep(20)) {
      const event = {
        name: "cpu",
        severity: "SEVERITY_ERROR",
        timestamp: `${Date.now()}`,
        dimensions: { host: `${i}` },
      };
      const { body } = await neighbour("POST", "/v1/data-receiver/events", { events: [event] });
      expect(body).toMatchObject({ succeeded: 1 });
    }
  }
  const sending = send();
  await sleep(500);
  const { turn } = await heldMs(async () => {
    await work();
    await sleep(100);
  });
  going = false;
  await sending;
  return turn;
}

const specification = (name: string, recurrence: object, more: object = {}) => ({
  name,
  schedule: { start: Date.now() + hourMs, duration: hourMs, timeZone: "Europe/Berlin", recurrence, ...more },
  maintenanceState: 300,
  withIds: { ids: ["unknown"] },
});
const cron = (fields: object) => ({ type: 7, cronMinutes: "0", ...fields });

test("a cron of up to 800 KB is refused in each of its fields, and holds no one up", async () => {
  const turnMs = await beside(async () => {
    for (const bytes of [20_000, 200_000, 800_000]) {
      for (const field of ["cronMinutes", "cronHours", "dayOfMonth", "month", "year"]) {
        const recurrence = cron({ [field]: `${"*/1,".repeat(bytes / 4)}*/1` });
        const { body } = await attack("POST", path, { specification: specification("long", recurrence) });
        expect(body).toMatchObject({ code: 3 });
      }
    }
  });
  expect(turnMs).toBeLessThan(turnMsMax);
});

test("crons that are as costly as they may be are stored, listed and run beside others", async () => {
  const years = Array.from({ length: 145 }, (_, i) => `${1970 + i}/2`).join(",");
  const costly = [
    cron({ year: years, month: 2, dayOfMonth: 29 }),
    cron({ cronMinutes: "*", year: `${"*/1,".repeat(255)}*/1` }),
    cron({ year: "2400-9999/400", month: 2, dayOfMonth: 29 }),
    { type: 6, interval: 1, month: 2, dayOfMonth: 29 },
    { type: 5, interval: 13, dayOfMonth: 31 },
  ];
  let stored = 0;
  const turnMs = await beside(async () => {
    for (let i = 0; i < 40; i++, stored++) {
      const recurrence = costly[i % costly.length] as object;
      const sent = specification(`costly ${stored}`, recurrence, { skipNext: 1000, start: 1_000_000_000_000 });
      expect((await attack("POST", path, { specification: sent })).body).toMatchObject({ id: expect.any(String) });
    }
    await sql`update jobs set due_ms = 0 where tenant_id = ${attacker.id} and kind = 'maintenance.runs'`;
    await sql`update due_work set due_ms = 0 where tenant_id = ${attacker.id} and kind = 'maintenance.runs'`;
    const list = await attack("POST", `${path}:list`, { page_input: { limit: 1000 } });
    expect(list.body.maintWindows).toHaveLength(stored);
    const due = async () =>
      (await sql`select payload from jobs where tenant_id = ${attacker.id} and due_ms <= ${Date.now()}`).count;
    await expect.poll(due).toBe(0);
  });
  expect(turnMs).toBeLessThan(turnMsMax);
});

test("windows that were stored with a cron of 800 KB hold no one up when their time comes", async () => {
  const year = `${"*/1,".repeat(200_000)}1970`;
  const turnMs = await beside(async () => {
    await sql`
      update maintenance_windows set schedule = jsonb_set(schedule, '{recurrence}', ${sql.json({ type: "7", cronMinutes: "0", year } as never)})
      where tenant_id = ${attacker.id} and name like 'costly 1%'`;
    await sql`update jobs set due_ms = 0 where tenant_id = ${attacker.id} and kind = 'maintenance.runs'`;
    await sql`update due_work set due_ms = 0 where tenant_id = ${attacker.id} and kind = 'maintenance.runs'`;
    const due = async () =>
      (await sql`select payload from jobs where tenant_id = ${attacker.id} and due_ms <= ${Date.now()}`).count;
    await expect.poll(due).toBe(0);
  });
  expect(turnMs).toBeLessThan(turnMsMax);
});
