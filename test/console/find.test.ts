import { beforeAll, describe, expect } from "vitest";
import { type DomPage, domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const { onPage } = domPage(server);

beforeAll(async () => {
  await ordinaryDay(server, tenant);
  const schedule = { start: Date.now() + 86_400_000, duration: 3_600_000 };
  const query = { clause: { filter: { field: "source", operation: "OP_EQUALS", value: "web-1" } } };
  const specification = { name: "patch night", schedule, maintenanceState: 300, query };
  await v1(server, tenant)("/v1/modelcontext/maintwindows", { specification });
});

const finder = (page: DomPage) => page.getByRole("dialog", { name: "Find anything" });
const options = (page: DomPage) => finder(page).getByRole("option");

async function find(page: DomPage, words: string) {
  await page.keyboard.press("Control+k");
  await finder(page).getByRole("combobox", { name: "Find by name" }).waitFor();
  await page.keyboard.type(words);
}

describe("anything is found by its name", () => {
  onPage("and opened by keyboard alone", async (page) => {
    await page.logIn(tenant);
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
      await page.waitForHash(hash);
      await page.locator("dialog").waitFor({ state: "detached" });
    }
  });

  onPage("with the views that were saved; an answer that is out of date is not shown", async (page) => {
    await page.logIn(tenant, "#/events?status=any");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByLabel("Name of this view").fill("everything ever");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Deliveries" }).click();
    await find(page, "web");
    await options(page).filter({ hasText: "web-1" }).waitFor();
    const held = page.hold("SearchEntities");
    await page.keyboard.type("-1x");
    const { release } = await held;
    await page.getByLabel("Find by name").fill("everything");
    await options(page).filter({ hasText: "everything ever" }).waitFor();
    release();
    await finder(page).getByText("2 found").waitFor();
    // Beside it: the events with this word in their names.
    expect(await options(page).count()).toBe(2);
    await page.keyboard.press("Enter");
    await page.waitForHash(/#\/events\?status=any$/);
  });

  onPage("also by the pointer; Escape closes it", async (page) => {
    await page.logIn(tenant);
    await page.getByRole("button", { name: "Find anything" }).click();
    await options(page).filter({ hasText: "Metrics" }).click();
    await page.waitForHash(/#\/metrics$/);
    await page.getByRole("button", { name: "Find anything" }).click();
    await finder(page).getByRole("combobox").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
  });
});

describe("the keys of the page", () => {
  const map = (page: DomPage) => page.getByRole("dialog", { name: "Keyboard" });

  onPage("lead to the screens, to the filter, and to the list of all keys", async (page) => {
    await page.logIn(tenant);
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
      await page.waitForHash(new RegExp(`#/${name}$`));
    }
    await page.keyboard.press("g");
    await page.keyboard.press("n");
    await page.getByLabel("Search by name").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("g?d/");
    expect(await page.getByLabel("Search by name").inputValue()).toBe("g?d/");
    expect(await map(page).count()).toBe(0);
    await page.getByRole("heading", { level: 1 }).click();
    await page.keyboard.press("?");
    await map(page).getByRole("row", { name: "g n to Entities" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
  });

  onPage("that are single letters can be turned off, for good", async (page) => {
    await page.logIn(tenant);
    await page.getByRole("button", { name: "Keyboard" }).click();
    await map(page).getByRole("checkbox", { name: "Keyboard shortcuts" }).uncheck();
    await page.keyboard.press("Escape");
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
    for (const key of ["g", "d", "?", "/"]) await page.keyboard.press(key);
    await page.keyboard.press("Control+k");
    await finder(page).getByRole("combobox").waitFor();
    expect(await map(page).count()).toBe(0);
    expect(page.hash()).toMatch(/^(?:#\/events)?$/);
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
    expect(finder(page).count()).toBe(0);
  });
});
