import type { Page } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const tenant = await testTenant(server.database.sql);
const { onPage } = testBrowser();

beforeAll(() => ordinaryDay(server, tenant));

/**
 * What a finger presses that is in sight and lower than 44 pixels. A box is pressed by its label or its cell; links in texts are as high
 * as their lines.
 */
const tooLow = (page: Page) =>
  page.evaluate(`[...document.querySelectorAll("button, select, summary, input, a[class*=button], nav a, [data-pick]")]
    .filter((each) => each.checkVisibility())
    .map((each) => (/^(?:checkbox|radio)$/.test(each.type) ? (each.closest("label, [role=columnheader]") ?? each) : each))
    .filter((each) => getComputedStyle(each).pointerEvents !== "none" && each.getBoundingClientRect().width > 1)
    .filter((each) => each.getBoundingClientRect().height < 43.9)
    .map((each) => each.outerHTML.slice(0, 150) + " " + each.getBoundingClientRect().height)`);

describe("under a finger", () => {
  for (const [name, viewport] of [
    ["a tablet", { width: 1024, height: 768 }],
    ["a phone", { width: 390, height: 844 }],
  ] as const)
    onPage(
      `of ${name}, all that is pressed is 44 pixels high`,
      async (page) => {
        await openConsole(page, server, tenant);
        await page.getByRole("link", { name: "disk full" }).waitFor();
        expect(await page.evaluate("matchMedia('(pointer: coarse)').matches")).toBe(true);
        await page.getByRole("button", { name: "Filters", expanded: false }).click();
        await page.getByRole("group", { name: "Entity" }).waitFor();
        await page.getByRole("row").filter({ hasText: "disk full" }).getByRole("gridcell").first().click();
        await page.getByRole("button", { name: "Select none" }).waitFor();
        expect(await tooLow(page)).toEqual([]);
        await page.getByLabel("More of the list").click();
        await page.getByRole("button", { name: "Conditions" }).click();
        await page.getByLabel("Field").waitFor();
        expect(await tooLow(page)).toEqual([]);
        for (const [hash, heading] of [
          ["#/events?group=alertname", "Events"],
          ["#/entities", "Entities"],
          ["#/rules", "Rules"],
          ["#/rules/rules?new=1", "New rule"],
          ["#/rules/triggers?new=yes", "New trigger"],
          ["#/rules/destinations/on%20call", "on call"],
          ["#/silences/new", "New silence"],
          ["#/windows/new", "New maintenance window"],
          ["#/settings/keys", "Keys"],
        ] as const) {
          await page.goto(`${server.url}/console/${hash}`);
          await page.getByRole("heading", { level: 1, name: heading, exact: true }).waitFor();
          await page.locator('main:not([aria-busy="true"])').waitFor();
          expect(await tooLow(page), hash).toEqual([]);
        }
      },
      { viewport, hasTouch: true, isMobile: true },
    );
});
