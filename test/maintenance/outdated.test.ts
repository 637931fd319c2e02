import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
const path = "/v1/modelcontext/maintwindows";
const hourMs = 3_600_000;

const specification = {
  name: "from before",
  schedule: {
    start: Date.now() + hourMs,
    duration: hourMs,
    timeZone: "UTC",
    recurrence: { type: 7, cronMinutes: "0" },
  },
  maintenanceState: 300,
  withIds: { ids: ["unknown"] },
};

/** A tenant with a window that an earlier version has stored, whose years take 200 KB. */
async function storedBefore() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const { id } = (await call("POST", path, { specification })).body;
  const year = `${"*/1,".repeat(50_000)}1970`;
  await sql`
    update maintenance_windows set schedule = jsonb_set(schedule, '{recurrence,year}', to_jsonb(${year}::text))
    where tenant_id = ${tenant.id}`;
  const shown = async () => (await call("POST", `${path}:list`, {})).body.maintWindows[0];
  const withStatus = async (value: string) => {
    const clause = { filter: { field: "status", operation: "OP_EQUALS", value } };
    return (await call("POST", `${path}:search`, { search_input: { query: { clause } } })).body.maintWindows.length;
  };
  return { tenant, call, id: id as string, year, shown, withStatus };
}

test("a window with a longer cron than is taken now stands disabled, as it is stored", async () => {
  const { call, id, year, shown, withStatus } = await storedBefore();
  const window = await shown();
  expect(window).toMatchObject({ id, status: "DISABLED" });
  expect(window.schedule.recurrence.year).toBe(year);
  expect(window).not.toHaveProperty("nextStart");
  expect([await withStatus("DISABLED"), await withStatus("ENABLED")]).toEqual([1, 0]);
  const started = await call("POST", `${path}:start`, { id });
  expect(started.body.message).toBe(
    `maintenance window "${id}" is disabled: schedule.recurrence.year must be at most 1024 bytes`,
  );
});

test("its time comes: nothing runs, and others of the tenant do", async () => {
  const { tenant, call, shown } = await storedBefore();
  const start = Date.now() - 1000;
  await call("POST", path, {
    specification: { ...specification, name: "other", schedule: { start, duration: hourMs } },
  });
  await sql`
    update jobs set due_ms = ${start} where tenant_id = ${tenant.id} and kind = 'maintenance.runs' and due_ms > ${Date.now()}`;
  await sql`update due_work set due_ms = ${start} where tenant_id = ${tenant.id} and kind = 'maintenance.runs'`;
  const left = async () =>
    await sql`select kind, failures from jobs where tenant_id = ${tenant.id} and due_ms < ${Date.now()}`;
  await expect.poll(left, { timeout: 10_000, interval: 50 }).toEqual([]);
  expect(await shown()).toMatchObject({ status: "DISABLED", runState: "SCHEDULED" });
  const { maintWindows } = (await call("POST", `${path}:list`, {})).body;
  expect(maintWindows[1]).toMatchObject({ name: "other", runState: "IN_PROGRESS" });
});

test("an update of other fields passes; a schedule that is sent again is held to the bound, and a good one runs", async () => {
  const { call, id, shown } = await storedBefore();
  const { schedule } = await shown();
  const put = (more: object) => call("PUT", path, { id, specification: { ...specification, ...more } });
  expect((await put({ schedule, description: "kept" })).body).toEqual({});
  expect(await shown()).toMatchObject({ status: "DISABLED", description: "kept", schedule });
  const { body } = await put({ schedule: { ...schedule, duration: "1" } });
  expect(body.message).toMatch(/schedule\.recurrence\.year: must .* at most 1024 bytes/);
  expect((await put({})).status).toBe(200);
  expect(await shown()).toMatchObject({ status: "ENABLED", nextStart: expect.any(String) });
});
