import { vi } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import type { TestServer } from "../support/server.ts";
import type { TestTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
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
  await vi.waitUntil(async () => (await held()) === "2", { timeout: 30_000 });
  return { planned: encodeURIComponent(ids[0]), running: encodeURIComponent(running) };
}

/** A rule that keeps silent about an event in the window that runs, and has kept silent about one that is over. */
export async function someSilence(server: TestServer, tenant: TestTenant): Promise<void> {
  const call = v1(server, tenant);
  const rule = { triggerNames: ["critical"], destinationNames: ["on call"], message: "{{event.name}}" };
  const name = "working hours";
  await call("/v1/notification/rules", { name, enabled: true, muteDuringMaintenance: true, ...rule });
  const sent = ["checkout slow", "restarts"].map((event) => ({
    name: event,
    source: "web-2",
    severity: Severity.CRITICAL,
    summary: "after the deployment",
  }));
  await sendEvents(server, tenant, sent);
  const clause = { filter: { field: "summary", operation: "OP_EQUALS", value: "after the deployment" } };
  const { results } = await call("/v1/events:search", { query: { clause } });
  for (const { occurrences } of results) {
    const asked = { occurrenceId: occurrences[0].id };
    const outcome = async () => (await call("/v1/notification/rules/working%20hours:explain", asked)).outcome;
    await vi.waitUntil(async () => (await outcome()) === "MUTED", { timeout: 30_000 });
  }
  await sendEvents(server, tenant, [{ ...sent[1], name: "restarts", source: "web-2", status: Status.CLOSED }]);
}
