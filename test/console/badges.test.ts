import { describe } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

const link = (page: DomPage, name: RegExp) => page.getByRole("navigation").getByRole("link", { name });
const hasText = (page: DomPage, name: RegExp) => eventually(() => link(page, name).textContent());

describe("the navigation", () => {
  onPage("counts critical occurrences that nobody acknowledged, as they come and are acknowledged", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "disk full", source: "a", severity: Severity.CRITICAL },
      { name: "slow", source: "a", severity: Severity.ERROR },
    ]);
    await page.logIn(tenant, "#/entities");
    await hasText(page, /^Events/).toBe("Events1 unacknowledged critical occurrence");
    await sendEvents(server, tenant, [{ name: "link down", source: "b", severity: Severity.CRITICAL }]);
    await hasText(page, /^Events/).toBe("Events2 unacknowledged critical occurrences");
    await page.goto("#/events?group=severity");
    await page.getByRole("button", { name: "Acknowledge all 2 of critical" }).click();
    await hasText(page, /^Events/).toBe("Events");
  });

  onPage("counts maintenance windows that run, at once where one is started here", async (page) => {
    const tenant = await testTenant(sql);
    const clause = { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } };
    const schedule = { start: Date.now(), duration: 3_600_000 };
    const window = { maintenanceState: 300, query: { clause }, schedule };
    const call = v1(server, tenant);
    await call("/v1/modelcontext/maintwindows", { specification: { ...window, name: "runs" } });
    const { id } = await call("/v1/modelcontext/maintwindows", {
      specification: { ...window, name: "by hand", runMode: "MANUAL" },
    });
    await page.logIn(tenant, `#/windows/${encodeURIComponent(id)}`);
    await hasText(page, /^Maintenance/).toBe("Maintenance1 maintenance window runs");
    await page.getByRole("button", { name: "Start now" }).click();
    await hasText(page, /^Maintenance/).toBe("Maintenance2 maintenance windows run");
    await page.getByRole("button", { name: "Undo" }).click();
    await hasText(page, /^Maintenance/).toBe("Maintenance1 maintenance window runs");
  });
});
