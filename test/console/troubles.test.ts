import { beforeAll, describe, expect } from "vitest";
import { domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "./json-call.ts";

// Without addresses that are not public.
const server = await testServer({});
const tenant = await testTenant(server.database.sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);

beforeAll(async () => {
  await call("/v1/notification/rules", { name: "loud", enabled: true });
  await call("/v1/notification/destinations", { name: "here", type: { webhook: { url: "http://127.0.0.1:1/" } } });
  const clause = { equals: { field: "severty", value: { stringVal: "x" } } };
  await call("/v1/notification/triggers", { name: "slip", type: { event: { query: { clause } } } });
  const query = { clause: { filter: { field: "source", operation: "OP_EQUALS", value: "nothing" } } };
  const schedule = { start: Date.now() + 3_600_000, duration: 3_600_000 };
  await call("/v1/modelcontext/maintwindows", {
    specification: { name: "empty", maintenanceState: 300, schedule, query },
  });
  const event = (name: string, status: string) => ({
    name,
    status,
    timestamp: Date.now(),
    dimensions: { source: "web-1" },
    severity: "SEVERITY_ERROR",
  });
  const statuses = ["STATUS_OPEN", "STATUS_DEFAULT", "STATUS_SUPPRESSED", "STATUS_CLOSED"];
  await call("/v1/data-receiver/events", { events: statuses.map((status) => event(`is ${status}`, status)) });
});

describe("what can never work is shown where it is listed", () => {
  onPage("rules, destinations, triggers and windows say it", async (page) => {
    await page.logIn(tenant, "#/rules/rules");
    await page.getByText("it has no trigger and no destination").waitFor();
    await page.goto("#/rules/rules/loud");
    await page.getByRole("alert").filter({ hasText: "it has no trigger and no destination" }).waitFor();
    await page.goto("#/rules/destinations");
    await page.getByText("Cannot work").waitFor();
    await page.goto("#/rules/triggers");
    await page.getByText(/which only a dimension or metadata can be; did you mean "severity"/).waitFor();
    await page.goto("#/windows");
    await page.getByText(/no entity is as its query says now/).waitFor();
  });

  onPage("a new rule keeps silent during maintenance, and a window names those that do not", async (page) => {
    await page.logIn(tenant, "#/rules/rules?new=1");
    const silent = page.getByRole("checkbox", { name: /Keep silent about entities in maintenance/ });
    await silent.waitFor();
    expect(await silent.isChecked()).toBe(true);
    const { maintWindows } = await call("/v1/modelcontext/maintwindows:list", {});
    await page.goto(`#/windows/${maintWindows[0].id}`);
    await page.getByText(/Rules that will not be silent/).waitFor();
    await page.getByRole("link", { name: "loud" }).waitFor();
  });
});

describe("open events", () => {
  onPage("are all that are neither closed nor suppressed", async (page) => {
    await page.logIn(tenant, "#/events");
    await page.getByText("is STATUS_OPEN").waitFor();
    await page.getByText("is STATUS_DEFAULT").waitFor();
    expect(await page.getByText("is STATUS_SUPPRESSED").count()).toBe(0);
    expect(await page.getByText("is STATUS_CLOSED").count()).toBe(0);
  });
});
