import { describe, expect } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

async function withEvents() {
  const tenant = await testTenant(sql);
  await sendEvents(server, tenant, [
    { name: "disk full", source: "web-1", severity: Severity.CRITICAL },
    { name: "slow", source: "web-2", severity: Severity.WARNING },
  ]);
  return tenant;
}

describe("the way back from a thing to its list", () => {
  onPage("keeps filters, columns and order of events; the navigation leads to all of them", async (page) => {
    const tenant = await withEvents();
    await page.logIn(tenant, "#/events?severity=5&columns=type&sort=-name");
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await page.getByRole("row").getByText("disk full").click();
    await page.getByText("Life cycle").waitFor();
    await page.locator("main").getByRole("link", { name: "Events", exact: true }).click();
    await page.waitForHash(/^#\/events\?severity=5&columns=type&sort=-name$/);
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: "Events" }).click();
    await page.getByText("2 occurrences").waitFor();
  });

  onPage("keeps the filters of other lists, and is another session's own", async (page) => {
    const tenant = await withEvents();
    const clause = { greaterAndEquals: { field: "severity", value: { numberVal: Severity.CRITICAL } } };
    const trigger = { name: "critical", type: { event: { query: { clause } } } };
    await v1(server, tenant)("/v1/notification/triggers", trigger);
    await page.logIn(tenant, "#/rules/triggers?text=crit");
    await page.getByText("1 trigger", { exact: true }).waitFor();
    await page.getByRole("grid", { name: "Triggers" }).press("Enter");
    await page.waitForHash(/triggers\/critical$/);
    const back = page.locator("main p").getByRole("link", { name: "Triggers", exact: true });
    await back.click();
    await page.waitForHash(/^#\/rules\/triggers\?text=crit$/);
    await page.getByRole("row").getByText("critical").waitFor();
    await page.getByRole("grid", { name: "Triggers" }).press("Enter");
    await back.waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.logIn(tenant, "#/rules/triggers/critical");
    expect(await back.getAttribute("href")).toBe("#/rules/triggers");
  });
});

describe("the title of the page", () => {
  onPage("names the occurrence and its entity, and the screen", async (page) => {
    const tenant = await withEvents();
    await page.logIn(tenant);
    await page.getByRole("row").getByText("disk full").click();
    await page.getByText("Life cycle").waitFor();
    await eventually(page.title).toMatch(/disk full on web-1 · Events · Belfry$/);
    await page.goto("#/rules/triggers");
    await eventually(page.title).toMatch(/Triggers · Rules · Belfry$/);
    await page.goto("#/entities");
    await eventually(page.title).toMatch(/Entities · Belfry$/);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    await eventually(page.title).toBe("Belfry");
  });

  onPage("counts what is open and nobody has acknowledged, on every screen, and follows what happens", async (page) => {
    const tenant = await withEvents();
    const ended = [Status.CLOSED, Status.SUPPRESSED].map((status) => ({
      name: `ended ${status}`,
      source: "a",
      status,
    }));
    await sendEvents(server, tenant, ended);
    await page.logIn(tenant, "#/events?severity=5");
    await eventually(page.title).toBe("(2) Events · Belfry");
    await page.getByText("Live", { exact: true }).waitFor();
    await page.goto("#/rules");
    await eventually(page.title).toBe("(2) Rules · Belfry");
    await sendEvents(server, tenant, [{ name: "new", source: "b" }]);
    await eventually(page.title).toBe("(3) Rules · Belfry");
    await v1(server, tenant)("/v1/event-management/status:matching", {
      query: { statuses: ["STATUS_OPEN"] },
      acknowledged: true,
    });
    await eventually(page.title).toBe("Rules · Belfry");
  });

  onPage("shows characters that change the direction of reading", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "annex\u202Etxt.exe", source: "a" }]);
    await page.logIn(tenant);
    await page.getByRole("row").getByText("annex[U+202E]txt.exe").click();
    await eventually(page.title).toMatch(/annex\[U\+202E\]txt\.exe on a · Events/);
  });
});
