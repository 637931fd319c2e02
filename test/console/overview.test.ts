import { beforeEach, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);
const minute = 60_000;
let tenant: TestTenant;

beforeEach(async () => {
  tenant = await testTenant(sql);
  const ago = (minutes: number) => BigInt(Date.now() - minutes * minute);
  await sendEvents(server, tenant, [
    { name: "down", source: "a", severity: Severity.CRITICAL, timestamp: ago(300) },
    { name: "down", source: "b", severity: Severity.CRITICAL, timestamp: ago(5) },
    { name: "slow", source: "a", severity: Severity.WARNING, timestamp: ago(5) },
    { name: "old", source: "a", severity: Severity.WARNING, timestamp: ago(2 * 24 * 60) },
  ]);
});

const totals = (page: DomPage) => page.getByRole("group", { name: "Totals" });
const histogram = (page: DomPage) => page.getByRole("img", { name: /last seen between/ });
const bars = (page: DomPage) =>
  page
    .locator("title")
    .allTextContents()
    .map((text) => /^From .*?: (.*)$/.exec(text)?.[1])
    .filter((text) => text !== undefined && text !== "none");

describe("the overview of the list", () => {
  onPage("counts severities and entities, says what nobody has taken on, and filters by a press", async (page) => {
    await page.logIn(tenant);
    const critical = totals(page).getByRole("button", { name: /critical/ });
    await critical.waitFor();
    expect(totals(page).getByRole("button").allTextContents()).toEqual(["2 critical", "2 warning"]);
    await totals(page).getByText("2 entities").waitFor();
    await page.getByRole("row").filter({ hasText: "down" }).first().getByRole("gridcell").first().click();
    await page.getByText("1 selected").waitFor();
    await page.getByRole("button", { name: "Acknowledge", exact: true }).click();
    await totals(page).getByRole("button", { name: "2 critical, 1 unacked" }).waitFor();
    await critical.click();
    await page.getByText("2 occurrences").waitFor();
    await page.getByRole("button", { name: "Remove Severity: Critical" }).waitFor();
    expect(await critical.getAttribute("aria-pressed")).toBe("true");
    await critical.click();
    await page.getByText("4 occurrences").waitFor();
  });

  onPage("shows when they were last seen: in the last day, or in the range that is chosen", async (page) => {
    await page.logIn(tenant);
    await histogram(page).waitFor();
    expect(await histogram(page).getAttribute("aria-label")).toMatch(/^3 last seen between/);
    expect(bars(page)).toEqual(["1 critical", "1 critical, 1 warning"]);
    await page.getByLabel("Time range").selectOption("1h");
    await eventually(() => bars(page)).toEqual(["1 critical, 1 warning"]);
    await page.getByLabel("Time range").selectOption("7d");
    await eventually(() => bars(page).length).toBe(3);
  });

  onPage("follows what happens", async (page) => {
    await page.logIn(tenant);
    await histogram(page).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, [{ name: "hot", source: "c", severity: Severity.ERROR }]);
    await totals(page).getByRole("button", { name: "1 error" }).waitFor();
    await eventually(() => bars(page).join()).toMatch(/1 error/);
  });
});
