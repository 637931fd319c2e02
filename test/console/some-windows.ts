import { expect } from "vitest";
import type { TestServer } from "../support/server.ts";
import type { TestTenant } from "../support/tenant.ts";
import { v1 } from "./json-call.ts";

const hourMs = 3_600_000;

/**
 * Windows as they are in use: nightly ones, one that runs now and holds its entities, one by hand. Returns the ids of "Patch night"
 * and of the one that runs, as paths have them.
 */
export async function someWindows(server: TestServer, tenant: TestTenant) {
  const call = v1(server, tenant);
  const timeZone = "Europe/Berlin";
  const start = Temporal.Now.zonedDateTimeISO(timeZone)
    .add({ days: 1 })
    .with({ hour: 22, minute: 0, second: 0, millisecond: 0 }).epochMilliseconds;
  const weekly = { type: 4, interval: 2, dayOfWeek: "TUE,SAT" };
  const forms = [
    [
      "Patch night",
      { start, duration: 4 * hourMs, timeZone, recurrence: weekly },
      { owner: "Storage team", tags: ["shop"] },
    ],
    ["Backups", { start, duration: hourMs, timeZone, recurrence: { type: 3, interval: 1 } }, {}],
    [
      "Last day of the month",
      { start, duration: 24 * hourMs, recurrence: { type: 5, interval: 1, dayOfMonth: -1 } },
      {},
    ],
    ["Move of the data centre", { start: Date.now(), duration: 3 * hourMs, timeZone: "America/New_York" }, {}],
    ["Emergency", { start, duration: hourMs }, { runMode: "MANUAL" }],
    ["Old", { start, duration: hourMs, recurrence: { type: 2, interval: 6 } }, { status: "DISABLED" }],
  ] as const;
  const clause = { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } };
  const ids = [];
  for (const [name, schedule, more] of forms) {
    const description = `${name}, as agreed with all who are on call`;
    const specification = { name, description, schedule, maintenanceState: 300, query: { clause }, ...more };
    ids.push((await call("/v1/modelcontext/maintwindows", { specification })).id);
  }
  const running = ids[3];
  const held = async () => {
    const { windows } = await call("/v1/modelcontext/maintwindows:runs", { ids: [running] });
    return windows[0].heldCount;
  };
  await expect.poll(held, { timeout: 30_000 }).toBe("2");
  return { planned: encodeURIComponent(ids[0]), running: encodeURIComponent(running) };
}
