import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents, styleOf } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { onPage } = testBrowser();

const names = ["first", "second", "third"];

/** Opens a list of three events, `first` the newest. */
async function opened(page: Page, hash = ""): Promise<void> {
  const tenant = await testTenant(server.database.sql);
  const events = names.map((name, at) => ({
    name,
    source: "a",
    severity: Severity.ERROR,
    timestamp: BigInt(Date.now() - at * 60_000),
  }));
  await sendEvents(server, tenant, events);
  await openConsole(page, server, tenant, hash);
  await page.getByText("third").first().waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
}

const rowOf = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const pick = (page: Page, name: string) => rowOf(page, name).getByRole("gridcell").first().click();
/** Role or text of what has the focus. */
const focused = (page: Page) =>
  page.evaluate("document.activeElement.getAttribute('role') ?? document.activeElement.textContent") as Promise<string>;
const expectFocus = (page: Page, wanted: string) => expect.poll(() => focused(page)).toBe(wanted);
/** Presses a button by keyboard, which has the focus then in any browser. */
async function press(page: Page, name: string): Promise<void> {
  const button = page.getByRole("button", { name, exact: true });
  await button.focus();
  await page.keyboard.press("Enter");
}

describe("the focus", () => {
  onPage("stays on the button that takes the place of the one that was pressed", async (page) => {
    await opened(page, "#/events?status=any");
    await pick(page, "second");
    await press(page, "Acknowledge");
    await page.getByRole("button", { name: "Unacknowledge" }).waitFor();
    await expectFocus(page, "Unacknowledge");
    await press(page, "Close");
    await page.getByRole("button", { name: "Reopen" }).waitFor();
    await expectFocus(page, "Reopen");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Close", exact: true }).waitFor();
    await expectFocus(page, "Close");
  });

  onPage(
    "goes to the list when the rows of an action leave it, and when nothing is selected any more",
    async (page) => {
      await opened(page);
      await pick(page, "second");
      await press(page, "Close");
      await rowOf(page, "second").waitFor({ state: "detached" });
      await expectFocus(page, "grid");
      await pick(page, "third");
      await press(page, "Select none");
      await expectFocus(page, "grid");
    },
  );

  onPage("goes back to where it was when a dialog is cancelled, or has done its work", async (page) => {
    await opened(page);
    await pick(page, "second");
    await press(page, "Annotate…");
    await press(page, "Cancel");
    await page.locator("dialog").waitFor({ state: "detached" });
    await expectFocus(page, "Annotate…");
    await page.keyboard.press("Enter");
    await page.getByLabel("Note").fill("seen");
    await press(page, "Annotate");
    await page.locator("dialog").waitFor({ state: "detached" });
    await expectFocus(page, "Annotate…");
  });
});

describe("the row that letters act on", () => {
  onPage("is marked wherever the focus is", async (page) => {
    await opened(page);
    const outline = (name: string) => styleOf(rowOf(page, name), "outlineStyle");
    await pick(page, "second");
    await pick(page, "second");
    await page.getByRole("button", { name: "Conditions" }).focus();
    expect(await outline("first")).toBe("none");
    expect(await outline("second")).toBe("solid");
    await page.keyboard.press("c");
    await page.getByText("1 closed").waitFor();
    await rowOf(page, "second").waitFor({ state: "detached" });
    await expect.poll(() => outline("third")).toBe("solid");
  });
});

describe("letters", () => {
  onPage(
    "move between groups, acknowledge one and ask before they close it; the focus goes to the next",
    async (page) => {
      await opened(page, "#/events?group=alertname");
      const group = (name: string) => page.getByRole("listitem").filter({ hasText: name });
      await page.getByRole("list", { name: "Groups by alertname" }).waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      const toggles = page.locator("[data-toggle]");
      const second = (await toggles.nth(1).locator("strong").textContent()) ?? "";
      const third = (await toggles.nth(2).locator("strong").textContent()) ?? "";
      expect(await focused(page)).toContain(second);
      expect(await group(second).getAttribute("aria-current")).toBe("true");
      await page.keyboard.press("c");
      await page.getByRole("dialog", { name: `Close all 1 of ${second}?` }).waitFor();
      await press(page, "Close");
      await page.getByText("1 closed").waitFor();
      await group(second).waitFor({ state: "detached" });
      await expect.poll(() => focused(page)).toContain(third);
      await page.keyboard.press("a");
      await page.getByText("1 acknowledged").waitFor();
      await group(third).getByText("1 of 1 acked").waitFor();
    },
  );

  onPage("act on all that is found once that is selected", async (page) => {
    const tenant = await testTenant(server.database.sql);
    const many = Array.from({ length: 150 }, (_, at) => ({ name: `check ${at}`, source: "a" }));
    await sendEvents(server, tenant, many);
    await openConsole(page, server, tenant);
    await page.getByText("150 occurrences").waitFor();
    await page.getByLabel("Select all rows that are loaded").click();
    await page.getByRole("button", { name: "Select all 150 found" }).click();
    await page.keyboard.press("c");
    await page.getByRole("dialog", { name: "Close all 150 found?" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("a");
    await page.getByText("150 acknowledged").waitFor();
  });
});

describe("Back to the groups", () => {
  onPage("finds the place and the link that was followed as they were", async (page) => {
    const tenant = await testTenant(server.database.sql);
    const many = Array.from({ length: 45 }, (_, at) => ({ name: `check ${at}`, source: "a" }));
    await sendEvents(server, tenant, many);
    await openConsole(page, server, tenant, "#/events?group=alertname");
    const toggles = page.locator("[data-toggle]");
    await toggles.nth(40).click();
    const top = () =>
      page.evaluate("document.querySelector('[aria-label=\"Groups by alertname\"]').parentElement.scrollTop");
    const before = Number(await top());
    expect(before).toBeGreaterThan(500);
    const member = page
      .getByRole("list", { name: /^Members of/ })
      .getByRole("link")
      .first();
    const href = await member.getAttribute("href");
    await member.click();
    await page.getByText("Life cycle").waitFor();
    await page.goBack();
    await expect.poll(top).toBe(before);
    await expect.poll(() => page.evaluate("document.activeElement.getAttribute('href')")).toBe(href);
  });

  onPage("gives the focus to no link that was opened in another tab", async (page) => {
    await opened(page, "#/events?group=alertname");
    const toggle = page.locator("[data-toggle]").first();
    await toggle.click();
    const member = page
      .getByRole("list", { name: /^Members of/ })
      .getByRole("link")
      .first();
    await member.click({ modifiers: ["ControlOrMeta"] });
    await toggle.focus();
    await page.evaluate("location.hash = '#/silences'");
    await page.getByRole("heading", { level: 1, name: "Silences" }).waitFor();
    await page.goBack();
    await member.waitFor();
    expect(await page.evaluate("document.activeElement.getAttribute('href')")).toBeNull();
  });
});
