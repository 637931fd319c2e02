import type { Page } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const tenant = await testTenant(server.database.sql);
const { onPage } = testBrowser();

beforeAll(async () => {
  await ordinaryDay(server, tenant);
  const schedule = { start: Date.now() + 86_400_000, duration: 3_600_000 };
  const query = { clause: { filter: { field: "source", operation: "OP_EQUALS", value: "web-1" } } };
  const specification = { name: "patch night", schedule, maintenanceState: 300, query };
  await v1(server, tenant)("/v1/modelcontext/maintwindows", { specification });
});

const finder = (page: Page) => page.getByRole("dialog", { name: "Find anything" });
const options = (page: Page) => finder(page).getByRole("option");

async function find(page: Page, words: string) {
  await page.keyboard.press("Control+k");
  await finder(page).getByRole("combobox", { name: "Find by name" }).waitFor();
  await page.keyboard.type(words);
}

describe("anything is found by its name", () => {
  onPage("and opened by keyboard alone", async (page) => {
    await openConsole(page, server, tenant);
    const things = [
      ["deliver", "Deliveries", /#\/deliveries$/],
      ["send dat", "Send data Settings", /#\/settings\/send$/],
      ["DB-2", "db-2", /#\/entities\/./],
      ["critical", "critical", /#\/rules\/triggers\/critical$/],
      ["on call", "on call", /#\/rules\/destinations\/on%20call$/],
      ["page on", "page on critical", /#\/rules\/rules\/page%20on%20critical$/],
      ["patch", "patch night", /#\/windows\/./],
      ["ADA", "ada@example.com", /#\/settings\/accounts\/./],
      ["web is", "web is ours", /#\/settings\/properties\/./],
      ["cpu.util", "system.cpu.utilization", /#\/settings\/dictionary\/metrics\/system\.cpu\.utilization$/],
      ["full", 'Events with "full" in their names', /#\/events\?/],
    ] as const;
    for (const [words, name, hash] of things) {
      await find(page, words);
      await options(page).filter({ hasText: name }).first().waitFor();
      await finder(page)
        .getByText(/^\d+ found$/)
        .waitFor();
      for (let presses = 0; presses < 10; presses += 1) {
        if ((await finder(page).getByRole("option", { selected: true }).textContent())?.trim().startsWith(name)) break;
        await page.keyboard.press("ArrowDown");
      }
      await page.keyboard.press("Enter");
      await page.waitForURL(hash);
      await page.locator("dialog").waitFor({ state: "detached" });
    }
  });

  onPage("with the filters that were saved; an answer that is out of date is not shown", async (page) => {
    await openConsole(page, server, tenant, "#/events?status=any");
    await page.getByRole("button", { name: "Save filter" }).click();
    await page.getByLabel("Name of this filter").fill("everything ever");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Deliveries" }).click();
    const held = Promise.withResolvers<() => Promise<void>>();
    await find(page, "web");
    await options(page).filter({ hasText: "web-1" }).waitFor();
    await page.route("**/SearchEntities", (route) => held.resolve(() => route.continue().catch(() => undefined)), {
      times: 1,
    });
    await page.keyboard.type("-1x");
    const letThrough = await held.promise;
    await page.getByLabel("Find by name").fill("everything");
    await options(page).filter({ hasText: "everything ever" }).waitFor();
    await letThrough();
    await finder(page).getByText("2 found").waitFor();
    // Beside it: the events with this word in their names.
    expect(await options(page).count()).toBe(2);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/events\?status=any$/);
  });

  onPage("also by the pointer; Escape closes it and gives the focus back", async (page) => {
    await openConsole(page, server, tenant);
    await page.getByRole("button", { name: "Find anything" }).click();
    await options(page).filter({ hasText: "Metrics" }).click();
    await page.waitForURL(/#\/metrics$/);
    await page.getByRole("button", { name: "Find anything" }).click();
    await finder(page).getByRole("combobox").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Find anything");
  });
});

describe("the keys of the page", () => {
  const map = (page: Page) => page.getByRole("dialog", { name: "Keyboard" });

  onPage("lead to the screens, to the filter, and to the list of all keys", async (page) => {
    await openConsole(page, server, tenant);
    const screens = {
      n: "entities",
      m: "metrics",
      d: "deliveries",
      r: "rules",
      w: "windows",
      s: "settings",
      e: "events",
    };
    for (const [letter, name] of Object.entries(screens)) {
      await page.keyboard.press("g");
      await page.keyboard.press(letter);
      await page.waitForURL(new RegExp(`#/${name}$`));
    }
    await page.keyboard.press("g");
    await page.keyboard.press("n");
    await page.getByLabel("Words of the name").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("g?d/");
    expect(await page.getByLabel("Words of the name").inputValue()).toBe("g?d/");
    expect(await map(page).count()).toBe(0);
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("?");
    await map(page).getByRole("row", { name: "g n to Entities" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
  });

  onPage("that are single letters can be turned off, for good", async (page) => {
    await openConsole(page, server, tenant);
    await page.getByRole("button", { name: "Keyboard" }).click();
    await map(page).getByRole("checkbox", { name: "Single letters and signs do something" }).uncheck();
    await page.keyboard.press("Escape");
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
    for (const key of ["g", "d", "?", "/"]) await page.keyboard.press(key);
    await page.keyboard.press("Control+k");
    await finder(page).getByRole("combobox").waitFor();
    expect(await map(page).count()).toBe(0);
    expect(page.url()).toMatch(/#\/events$|\/console\/$/);
  });
});
