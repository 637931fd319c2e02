import type { Page } from "playwright-core";
import { expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();
const count = 50_000;

/** How many tasks took longer than 50 ms since the last question. */
const longTasks = (page: Page) =>
  page.evaluate(`(() => { const seen = globalThis.longTasks; globalThis.longTasks = []; return seen; })()`) as Promise<number[]>;

onPage("with 50,000 open events, scrolling and typing make no long task", async (page) => {
  const tenant = await testTenant(server.database.sql);
  await sendEvents(
    server,
    tenant,
    Array.from({ length: count }, (_, at) => ({
      ...{ name: `check ${at % 200}`, source: `host ${Math.floor(at / 200)}`, summary: `the ${at}th of many` },
      severity: [Severity.CRITICAL, Severity.ERROR, Severity.WARNING][at % 3] ?? Severity.INFO,
    })),
  );
  await page.addInitScript(
    "globalThis.longTasks = []; new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map((each) => each.duration))).observe({ type: 'longtask' })",
  );
  await openConsole(page, server, tenant);
  await page.getByText(`${count.toLocaleString("en")} occurrences`).waitFor();
  const grid = page.getByRole("grid", { name: "Events" });
  await page.locator('main:not([aria-busy="true"])').waitFor();
  const opening = await longTasks(page);
  await grid.hover();
  for (let turns = 0; turns < 60; turns += 1) {
    await page.mouse.wheel(0, 1500);
    await page.waitForTimeout(30);
  }
  const rows = Number(await page.getByRole("row").last().getAttribute("aria-rowindex"));
  const scrolling = await longTasks(page);
  await page.getByRole("button", { name: "Conditions" }).click();
  await page.getByLabel("Field").pressSequentially("dimensions.source");
  await page.getByLabel("Value", { exact: true }).pressSequentially("host 17");
  await page.getByRole("searchbox", { name: /values of Entity/ }).pressSequentially("host 1");
  const typing = await longTasks(page);
  console.log({ opening, scrolling, typing, rows });
  expect(rows).toBeGreaterThan(1000);
  expect({ scrolling, typing }).toEqual({ scrolling: [], typing: [] });
});
