import { beforeAll, describe, expect, vi } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { ordinaryDay, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);
const hourMs = 3_600_000;

const silent = (page: DomPage) => page.getByRole("region", { name: "Kept silent" });

/** A window over the entities whose names begin so, which runs when it is started. */
async function manualWindow(name: string, value: string): Promise<string> {
  const clause = { filter: { field: "name", operation: "OP_STARTS_WITH", value } };
  const schedule = { start: Date.now(), duration: hourMs };
  const specification = { name, maintenanceState: 300, query: { clause }, schedule, runMode: "MANUAL" };
  return (await call("/v1/modelcontext/maintwindows", { specification })).id;
}

/** Reads the page of a window again until a list of what was kept silent names an event and a rule. Returns the line. */
async function lineOf(page: DomPage, list: string, event: string, rule = "silent") {
  const both = new RegExp(`^${event} on .*, by the rule ${rule}\\b`);
  const line = silent(page).getByRole("list", { name: list }).getByRole("listitem").filter({ hasText: both });
  const look = async () => {
    await page.reload();
    await silent(page)
      .getByText(/^Looked at/)
      .waitFor();
    await silent(page).and(page.locator(':not([aria-busy="true"])')).waitFor();
    return await line.count();
  };
  await expect.poll(look, { timeout: 60_000 }).toBe(1);
  return line;
}

let webs = "";
let databases = "";
beforeAll(async () => {
  await ordinaryDay(server, tenant);
  webs = await manualWindow("webs", "web-");
  databases = await manualWindow("databases", "db-");
  const rule = { triggerNames: ["critical"], destinationNames: ["on call"], message: "{{event.name}}" };
  const silences = { enabled: true, muteDuringMaintenance: true, ...rule };
  await call("/v1/notification/rules", { name: "silent", ...silences });
  // Nothing else was tried there, so no breaker holds its deliveries.
  await call("/v1/notification/destinations", {
    name: "later",
    type: { webhook: { url: "https://later.example.invalid" } },
  });
  await call("/v1/notification/rules", { name: "patient", ...silences, destinationNames: ["later"], delaySec: 10 });
  // Its delay ends within the maintenance that begins after it.
  await sendEvents(server, tenant, [{ name: "slow disk", source: "db-2", severity: Severity.CRITICAL }]);
  await vi.waitFor(async () => expect(await outcome()).toBe("WAITING"), { timeout: 60_000 });
  await call("/v1/modelcontext/maintwindows:start", { id: databases });
});

describe("a window that runs", () => {
  onPage("holds its entities, says what rules keep silent about because of it, and ends by hand", async (page) => {
    await page.logIn(tenant, `#/windows/${webs}`);
    await page.getByText("Runs when it is started, for 1 h.").waitFor();
    await silent(page).getByText("It does not run now, so nothing is kept silent because of it.").waitFor();
    await page.getByRole("button", { name: "Start now" }).click();
    await page.getByRole("status", { name: "Done" }).getByText('"webs" runs now.').waitFor();
    const entities = page.getByRole("region", { name: "Entities" });
    await expect
      .poll(
        async () => {
          await page.reload();
          await page.getByRole("button", { name: "End now" }).waitFor();
          return await entities.getByRole("heading", { name: "Held now: 2" }).count();
        },
        { timeout: 30_000 },
      )
      .toBe(1);
    const held = entities.getByRole("list", { name: "Entities that it holds now" });
    await held.getByRole("link", { name: "web-1" }).waitFor();
    await sendEvents(server, tenant, [{ name: "kept back", source: "web-1", severity: Severity.CRITICAL }]);
    const line = await lineOf(page, "Kept silent now", "kept back");
    expect(await line.textContent()).toMatch(/^kept back on web-1, by the rule silent, since .+, until /);
    await line.getByRole("link", { name: "web-1" }).waitFor();
    await line.getByRole("link", { name: "silent" }).click();
    await page.getByRole("heading", { level: 1, name: "silent" }).waitFor();
  });

  onPage("lists what was over before it, among what rules never sent, once it has ended, too", async (page) => {
    const short = { name: "came and went", source: "web-2", severity: Severity.CRITICAL };
    await sendEvents(server, tenant, [short]);
    await page.logIn(tenant, `#/windows/${webs}`);
    await lineOf(page, "Kept silent now", "came and went");
    await sendEvents(server, tenant, [{ ...short, status: Status.CLOSED }]);
    const over = await lineOf(page, "Never sent", "came and went");
    const says =
      /^came and went on web-2, by the rule silent: it matched at .+, and was over before the maintenance ended$/;
    expect(await over.textContent()).toMatch(says);
    await page.getByRole("button", { name: "End now" }).click();
    await page.getByRole("button", { name: "Start now" }).waitFor();
    // Its entities leave it a moment later.
    const held = async () =>
      (
        await server.database
          .sql`select 1 from maintenance_members where tenant_id = ${tenant.id} and window_id = ${webs}`
      ).length;
    await expect.poll(held, { timeout: 60_000 }).toBe(0);
    await page.reload();
    await silent(page).getByText("It does not run now, so nothing is kept silent because of it.").waitFor();
    await lineOf(page, "Never sent", "came and went");
    expect(await silent(page).getByRole("link", { name: "kept back" }).count()).toBe(0);

    // Ten events later it is beyond the first page.
    const later = Array.from({ length: 10 }, (_, at) => ({
      name: `noise ${at}`,
      source: "web-1",
      severity: Severity.INFO,
    }));
    await sendEvents(server, tenant, later);
    await page.reload();
    await silent(page).getByText("Nothing was left out.").waitFor();
    await silent(page).getByRole("button", { name: "Look at earlier occurrences" }).click();
    await over.getByRole("link", { name: "came and went" }).click();
    await page.getByRole("heading", { level: 1, name: "came and went" }).waitFor();
  });

  onPage("lists what was dropped because a delay ended in it", async (page) => {
    await page.logIn(tenant, `#/windows/${databases}`);
    await expect.poll(outcome, { timeout: 60_000 }).toBe("MUTED");
    // Silent still, and not sent.
    await lineOf(page, "Kept silent now", "slow disk", "patient");
    await sendEvents(server, tenant, [
      { name: "slow disk", source: "db-2", severity: Severity.CRITICAL, status: Status.CLOSED },
    ]);
    const dropped = await lineOf(page, "Never sent", "slow disk", "patient");
    expect(await dropped.textContent()).toMatch(
      /^slow disk on db-2, by the rule patient: decided at .+, and dropped because its delay ended in maintenance$/,
    );
  });
});

/** What has become of the event whose notification waits for a delay. */
async function outcome() {
  const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "slow disk" } };
  const { results } = await call("/v1/events:search", { query: { clause } });
  const occurrenceId = results[0]?.occurrences[0].id;
  return occurrenceId && (await call("/v1/notification/rules/patient:explain", { occurrenceId })).outcome;
}
