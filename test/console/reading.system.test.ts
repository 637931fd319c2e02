import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();

const grid = (page: Page) => page.getByRole("grid", { name: "Events" });

/** Opens a list of so many errors, `check 0` the newest unless all are `ofOneTime`, which is live. */
async function opened(page: Page, count: number, ofOneTime = false): Promise<TestTenant> {
  const tenant = await testTenant(server.database.sql);
  const now = Date.now();
  const checks = Array.from({ length: count }, (_, at) => ({
    name: `check ${at}`,
    source: `host ${at % 300}`,
    severity: Severity.ERROR,
    timestamp: BigInt(now - (ofOneTime ? 0 : at * 1000)),
  }));
  await sendEvents(server, tenant, checks);
  await openConsole(page, server, tenant);
  await grid(page).getByRole("row").nth(Math.min(5, count)).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.locator('main:not([aria-busy="true"])').waitFor();
  return tenant;
}

/** Says to the page that it is hidden, or in sight: a Chromium without a screen never hides one by itself. */
const see = (page: Page, state: "hidden" | "visible") =>
  page.evaluate(`
    Object.defineProperty(document, "visibilityState", { configurable: true, value: "${state}" });
    document.dispatchEvent(new Event("visibilitychange"));
  `);

/** The name in the current row, and where the list is scrolled to. */
const place = (page: Page) =>
  page.evaluate(`(() => {
    const grid = document.querySelector("[role=grid]");
    return [document.getElementById(grid.getAttribute("aria-activedescendant"))?.querySelector("a").textContent, grid.scrollTop];
  })()`) as Promise<[string | undefined, number]>;

const rowIndex = (page: Page) =>
  page.evaluate(`Number(document.getElementById(
    document.querySelector("[role=grid]").getAttribute("aria-activedescendant"))?.getAttribute("aria-rowindex"))`);

/** Goes down to a row beyond so many, and selects it together with the first one. */
async function selectBeyond(page: Page, count: number): Promise<[string | undefined, number]> {
  await grid(page).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Space");
  // The last row is not drawn yet where the list has just become longer.
  const atLast = async () => {
    await page.keyboard.press("End");
    return await rowIndex(page);
  };
  await expect.poll(atLast).toBeGreaterThan(count);
  await page.keyboard.press("Space");
  await page.getByText("2 selected").waitFor();
  await expect.poll(() => rowIndex(page)).toBeGreaterThan(count);
  return await place(page);
}

const critical = (names: readonly string[]) =>
  names.map((name) => ({ name, source: "new", severity: Severity.CRITICAL }));

describe("what a person reads stays where it is", () => {
  onPage("when the browser's tab comes back into sight", async (page) => {
    const tenant = await opened(page, 1600);
    const before = await selectBeyond(page, 1500);
    await see(page, "hidden");
    await sendEvents(server, tenant, critical(["one", "two", "three"]));
    await see(page, "visible");
    await page.getByRole("button", { name: "3 new" }).waitFor();
    await page.getByText("1,603 occurrences").waitFor();
    expect(await place(page)).toEqual(before);
    await page.getByText("2 selected").waitFor();
  });

  onPage("in a storm of changes", async (page) => {
    const tenant = await opened(page, 400);
    const before = await selectBeyond(page, 350);
    const storm = critical(Array.from({ length: 3000 }, (_, at) => `storm ${at}`));
    await sendEvents(server, tenant, storm);
    await page.getByText("3,400 occurrences").waitFor();
    await page.getByRole("button", { name: /^[\d,]+ new$/ }).waitFor();
    expect(await place(page)).toEqual(before);
    await page.getByText("2 selected").waitFor();
  });
});

describe("further pages", () => {
  onPage("follow where a person reads, also of rows of the same time", async (page) => {
    await opened(page, 700, true);
    await selectBeyond(page, 650);
    expect(await page.getByRole("button", { name: /^[\d,]+ new$/ }).count()).toBe(0);
    await page.keyboard.press("End");
    await expect.poll(() => rowIndex(page)).toBe(701);
  });
});

describe("rows that match no longer", () => {
  onPage("stay in their place, struck out, until nobody reads", async (page) => {
    const tenant = await opened(page, 200);
    await selectBeyond(page, 150);
    const before = await place(page);
    const close = { name: "check 195", source: "host 195", severity: Severity.ERROR, status: Status.CLOSED };
    await sendEvents(server, tenant, [close]);
    await page.getByText("199 occurrences").waitFor();
    const row = page.getByRole("row").filter({ hasText: "check 195" });
    await row.getByText("No longer matches").waitFor();
    expect(await place(page)).toEqual(before);
    await page.keyboard.press("Home");
    await expect.poll(() => grid(page).getAttribute("aria-rowcount")).toBe("200");
    await page.keyboard.press("End");
    await row.waitFor({ state: "detached" });
    await expect.poll(() => rowIndex(page)).toBe(200);
  });

  onPage("are told from those that only move", async (page) => {
    const tenant = await opened(page, 200);
    await page.getByRole("link", { name: "check 20", exact: true }).hover();
    const change = (name: string, source: string, status: Status) =>
      sendEvents(server, tenant, [{ name, source, severity: Severity.ERROR, status }]);
    await change("check 30", "host 30", Status.CLOSED);
    await page.getByText("199 occurrences").waitFor();
    const row = (name: string) => page.getByRole("row").filter({ hasText: name });
    await row("check 30").getByText("o longer").waitFor();
    const call = v1(server, tenant);
    const { results } = await call("/v1/events:search", {
      query: { fields: [{ field: "name" }], pageInput: { limit: 1000 } },
    });
    const { id, occurrences } = results.find((event: { name: string }) => event.name === "check 10");
    const acknowledged = { eventId: id, occurrenceId: occurrences[0].id, acknowledged: true };
    await call("/v1/event-management/status", { statuses: [acknowledged] });
    await row("check 10").getByText("acked").waitFor();
    expect(await row("check 10").getByText("o longer").count()).toBe(0);
    await sendEvents(server, tenant, [{ name: "check 30", source: "host 30", severity: Severity.ERROR }]);
    await page.getByText("200 occurrences").waitFor();
    await page.getByRole("button", { name: "1 new" }).waitFor();
  });

  onPage("stay under a pointer that rests", async (page) => {
    await page.clock.install();
    const tenant = await opened(page, 20);
    await page.getByRole("row").nth(10).hover();
    await page.clock.runFor(20_000);
    await sendEvents(server, tenant, critical(["one"]));
    await page.getByRole("button", { name: "1 new" }).waitFor();
    await page.clock.runFor(60_000);
    await page.getByRole("link", { name: "one", exact: true }).waitFor();
  });
});
