import type { Locator, Page } from "playwright-core";
import { describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents, styleOf } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();

/** Opens a list of so many errors, `check 0` the newest, which is live. */
async function opened(page: Page, count: number): Promise<TestTenant> {
  const tenant = await testTenant(server.database.sql);
  const checks = Array.from({ length: count }, (_, at) => ({
    name: `check ${at}`,
    source: `host ${at}`,
    severity: Severity.ERROR,
    timestamp: BigInt(Date.now() - at * 1000),
  }));
  await sendEvents(server, tenant, checks);
  await openConsole(page, server, tenant);
  await page.getByText(`${count} occurrences`).waitFor();
  await page.getByRole("link", { name: "check 1", exact: true }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  return tenant;
}

describe("a row", () => {
  const presses: readonly [string, Parameters<Locator["click"]>[0]][] = [
    ["a press with Ctrl", { modifiers: ["ControlOrMeta"] }],
    ["the middle button", { button: "middle" }],
  ];
  for (const [name, press] of presses)
    onPage(`opens in a tab of its own by ${name}, beside its name, too`, async (page) => {
      await opened(page, 3);
      const beside = page.getByRole("row").filter({ hasText: "check 1" }).getByRole("gridcell").last();
      const [tab] = await Promise.all([page.context().waitForEvent("page"), beside.click(press)]);
      await tab.getByText("Life cycle").waitFor();
      expect(tab.url()).toMatch(/#\/occurrences\//);
      expect(page.url()).not.toContain("occurrences");
    });
});

describe("the offer to select all that is found", () => {
  onPage("stays when another one arrives", async (page) => {
    const tenant = await opened(page, 150);
    await page.getByLabel("Select all rows that are loaded").click();
    await page.getByRole("button", { name: "Select all 150 found" }).waitFor();
    // Who points at rows reads, and new ones wait.
    await page.mouse.move(0, 0);
    await sendEvents(server, tenant, [{ name: "another", source: "new", severity: Severity.CRITICAL }]);
    await page.getByText("another", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Select all 151 found" }).click();
    await page.getByText("151 selected").waitFor();
  });
});

describe("a row that has just come", () => {
  for (const [reducedMotion, animated] of [
    ["no-preference", true],
    ["reduce", false],
  ] as const)
    onPage(
      `is tinted for a moment${animated ? "" : ", but where a person wants less motion"}`,
      async (page) => {
        const tenant = await opened(page, 3);
        // An animation is over before a test looks.
        await page.evaluate(
          "addEventListener('animationstart', ({ target }) => { globalThis.tinted = target.textContent; })",
        );
        await sendEvents(server, tenant, [{ name: "another", source: "new", severity: Severity.CRITICAL }]);
        const row = page.getByRole("row").filter({ hasText: "another" });
        await row.waitFor();
        await expect.poll(() => row.getAttribute("data-fresh")).toBe(null);
        const tinted = String(await page.evaluate("globalThis.tinted"));
        expect(tinted.includes("another")).toBe(animated);
      },
      { reducedMotion },
    );
});

describe("what deletes or ends something", () => {
  onPage("is red, and so is the button that confirms it", async (page) => {
    const tenant = await testTenant(server.database.sql);
    const red = "rgb(176, 28, 20)";
    const look = (name: string, property: string) => styleOf(page.getByRole("button", { name, exact: true }), property);
    await openConsole(page, server, tenant, "#/events?severity=5&group=alertname");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByLabel("Name of this view").fill("the worst");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Delete view" }).waitFor();
    expect(await look("Delete view", "color")).toBe(red);
    await sendEvents(server, tenant, [{ name: "disk full", source: "a", severity: Severity.CRITICAL }]);
    await page.getByRole("button", { name: "Close all 1 of disk full…" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await look("Close", "backgroundColor")).toBe(red);
  });
});
