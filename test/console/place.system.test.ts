import type { Page } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const tenant = await testTenant(server.database.sql);
const { onPage } = testBrowser();
const count = 5000;

beforeAll(() =>
  sendEvents(
    server,
    tenant,
    Array.from({ length: count }, (_, at) => ({
      name: `check ${at}`,
      source: `host ${at % 300}`,
      severity: Severity.ERROR,
      timestamp: BigInt(Date.now() - at * 1000),
    })),
  ),
);

const grid = (page: Page) => page.getByRole("grid", { name: "Events" });
const opened = async (page: Page) => {
  await openConsole(page, server, tenant);
  await grid(page).getByRole("row").nth(5).waitFor();
  await page.locator('main:not([aria-busy="true"])').waitFor();
};
const focusedRole = (page: Page) => page.evaluate("document.activeElement.getAttribute('role')");
/** The name in the row that the grid says is its current one, once that is drawn. */
async function current(page: Page): Promise<string> {
  const text =
    "document.getElementById(document.querySelector('[role=grid]').getAttribute('aria-activedescendant'))?.querySelector('a').textContent ?? ''";
  await expect.poll(() => page.evaluate(text)).not.toBe("");
  return String(await page.evaluate(text));
}

describe("a low page", () => {
  for (const [width, height] of [
    [720, 450],
    [844, 390],
  ] as const)
    onPage(
      `draws no more rows than fit, at ${width} by ${height} with ${count} events`,
      async (page) => {
        await opened(page);
        expect(await page.getByRole("row").count()).toBeLessThan(100);
        // The list alone scrolls: there is no second scroller around it.
        const scrollers =
          "[...document.querySelectorAll('html, body, main, main *')].filter((each) => each.scrollHeight > each.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(each).overflowY)).map((each) => each.getAttribute('role') ?? each.tagName)";
        expect(await page.evaluate(scrollers)).toEqual(["grid"]);
      },
      { viewport: { width, height } },
    );
});

describe("Back", () => {
  onPage("finds the row that was opened, the rows that were selected and the focus where they were", async (page) => {
    await opened(page);
    await grid(page).focus();
    for (let turns = 0; turns < 8; turns += 1) await page.keyboard.press("PageDown");
    await page.keyboard.press("Space");
    await page.getByText("1 selected").waitFor();
    const row = await current(page);
    const top = () => page.evaluate("document.querySelector('[role=grid]').scrollTop");
    const before = Number(await top());
    expect(before).toBeGreaterThan(2000);
    await page.keyboard.press("Enter");
    await page.getByText("Life cycle").waitFor();
    await page.goBack();
    await expect.poll(top).toBe(before);
    await page.getByText("1 selected").waitFor();
    await expect.poll(() => focusedRole(page)).toBe("grid");
    expect(await current(page)).toBe(row);
  });
});

describe("a name in a list", () => {
  onPage("is a link, which a browser opens elsewhere; marking its text opens nothing", async (page) => {
    await opened(page);
    const name = page.getByRole("link", { name: "check 3", exact: true });
    // The browser decides where it opens: the page takes nothing of the press.
    await page.evaluate("addEventListener('click', (event) => { globalThis.taken = event.defaultPrevented; })");
    await name.click({ modifiers: ["ControlOrMeta"] });
    expect(await page.evaluate("globalThis.taken")).toBe(false);
    expect(page.url()).not.toContain("occurrences");
    expect(await name.getAttribute("href")).toMatch(/^#\/occurrences\//);
    await grid(page).waitFor();
    const box = await page.getByRole("row").nth(4).getByRole("gridcell").nth(3).boundingBox();
    if (box === null) throw new Error("the row is not in sight");
    await page.mouse.move(box.x + 4, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + 60, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    await grid(page).waitFor();
    expect(page.url()).not.toContain("occurrences");
  });

  onPage("is not marked as a text where rows are selected with Shift, and no row moves", async (page) => {
    await opened(page);
    const tick = (at: number) => page.getByRole("row").nth(at).getByRole("gridcell").first();
    const first = await page.getByRole("row").nth(2).boundingBox();
    await tick(2).click();
    await page.getByText("1 selected").waitFor();
    expect(await page.getByRole("row").nth(2).boundingBox()).toEqual(first);
    await tick(6).click({ modifiers: ["Shift"] });
    await page.getByText("5 selected").waitFor();
    expect(await page.evaluate("getSelection().toString()")).toBe("");
  });
});

describe("while a person reads", () => {
  onPage("new events wait, and are shown when asked for", async (page) => {
    await opened(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await grid(page).focus();
    for (let turns = 0; turns < 3; turns += 1) await page.keyboard.press("PageDown");
    const row = await current(page);
    const top = await page.evaluate("document.querySelector('[role=grid]').scrollTop");
    const news = ["one", "two"].map((name) => ({ name, source: "new", severity: Severity.CRITICAL }));
    await sendEvents(server, tenant, news);
    await page.getByRole("button", { name: "2 new" }).waitFor();
    expect([await current(page), await page.evaluate("document.querySelector('[role=grid]').scrollTop")]).toEqual([
      row,
      top,
    ]);
    await page.getByRole("button", { name: "2 new" }).click();
    await page.getByRole("link", { name: "one", exact: true }).waitFor();
  });

  onPage("new events wait until the list is grouped at the latest: nobody reads it then", async (page) => {
    await opened(page);
    await page.getByText("Live", { exact: true }).waitFor();
    await grid(page).focus();
    for (let turns = 0; turns < 3; turns += 1) await page.keyboard.press("PageDown");
    await sendEvents(server, tenant, [{ name: "three", source: "new", severity: Severity.CRITICAL }]);
    await page.getByRole("button", { name: "1 new" }).waitFor();
    const choice = page.getByRole("combobox", { name: "Group by" });
    await choice.selectOption("alertname");
    await page.getByRole("list", { name: "Groups by alertname" }).waitFor();
    await expect.poll(() => page.getByRole("button", { name: /^\d+ new$/ }).count()).toBe(0);
    await choice.selectOption("");
    await page.getByRole("link", { name: "three", exact: true }).waitFor();
  });
});

describe("by keyboard", () => {
  onPage("the list is two keys away from the top of the page, and so are groups", async (page) => {
    const own = await testTenant(server.database.sql);
    await sendEvents(server, own, [{ name: "first", source: "a" }]);
    await openConsole(page, server, own);
    await page.getByRole("link", { name: "first", exact: true }).waitFor();
    // The first press of Tab begins at the top, as on a page that was just loaded.
    await page.reload();
    await page.getByRole("link", { name: "first", exact: true }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await expect.poll(() => focusedRole(page)).toBe("grid");
    await page.keyboard.press("ArrowDown");
    expect(await current(page)).toBe("first");
    await page.goto(`${server.url}/console/#/events?group=alertname`);
    await page.reload();
    await page.getByRole("list", { name: "Groups by alertname" }).getByRole("button").first().waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const toggle = "document.activeElement.getAttribute('aria-expanded')";
    await expect.poll(() => page.evaluate(toggle)).toBe("false");
  });

  onPage("the list comes before the filters, and letters move, select and acknowledge", async (page) => {
    const own = await testTenant(server.database.sql);
    await sendEvents(
      server,
      own,
      ["first", "second", "third"].map((name, at) => ({
        name,
        source: "a",
        timestamp: BigInt(Date.now() - at * 60_000),
      })),
    );
    await openConsole(page, server, own);
    await page.getByRole("link", { name: "third" }).waitFor();
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByRole("group", { name: "Severity" }).waitFor();
    const order =
      "document.querySelector('[role=grid]').compareDocumentPosition(document.querySelector('[aria-label=Filters]')) & 4";
    expect(await page.evaluate(order)).toBe(4);
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    expect(await current(page)).toContain("second");
    await page.keyboard.press("x");
    await page.getByText("1 selected").waitFor();
    await page.keyboard.press("a");
    await page.getByText("1 acknowledged").waitFor();
    await page.getByRole("row").filter({ hasText: "second" }).getByText("acked").waitFor();
    expect(await focusedRole(page)).toBe("grid");
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "Annotate this occurrence" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    // What is acknowledged comes last, and stays the current row while it is selected.
    await page.keyboard.press("x");
    await page.keyboard.press("k");
    expect(await current(page)).toContain("third");
    await page.keyboard.press("c");
    await page.getByText("1 closed").waitFor();
    await page.getByRole("link", { name: "third" }).waitFor({ state: "detached" });
  });
});
