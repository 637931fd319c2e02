import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay, sendEvents, styleOf } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = testBrowser();
beforeAll(() => ordinaryDay(server, tenant));

const triggers = createClient(TriggerService, transport(server.target, "connect", tenant.headers));

const stored = async (name: string) => (await triggers.getTrigger({ name })).trigger;
const storedRule = async (name: string) => {
  const [row] = await sql`
    select r.enabled, r.message,
      array(select trigger_name from rule_triggers t where t.tenant_id = r.tenant_id and t.rule_name = r.name order by place)
        as triggers
    from rules r where r.tenant_id = ${tenant.id} and r.name = ${name}`;
  return row;
};
const rowOf = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const conditions = (page: Page) => page.getByRole("group", { name: "An event matches when" });
const preview = (page: Page) => page.getByRole("region", { name: "Would have matched" });

const berlin = "Europe/Berlin";
const now = Temporal.Now.zonedDateTimeISO(berlin);
const change = now.getTimeZoneTransition("next") as Temporal.ZonedDateTime;
const hourMs = 3_600_000;

describe("by keyboard alone", () => {
  onPage("a row is found, selected and acknowledged, and another one opened", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "first", source: "a", severity: Severity.CRITICAL },
      { name: "second", source: "b", severity: Severity.ERROR },
    ]);
    await openConsole(page, server, tenant);
    await rowOf(page, "second").waitFor();
    const focusOn = async (key: string, wanted: (name: string) => boolean) => {
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press(key);
        const name = await page.evaluate(
          "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent",
        );
        if (wanted(String(name))) return;
      }
      throw new Error(`nothing wanted has the focus after 60 times ${key}`);
    };
    const isGrid = () => page.evaluate("document.activeElement.getAttribute('role') === 'grid'");
    for (let presses = 0; presses < 60 && !(await isGrid()); presses += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.getByText("1 selected").waitFor();
    await focusOn("Shift+Tab", (name) => name === "Acknowledge");
    await page.keyboard.press("Enter");
    await page.getByText("1 acknowledged").waitFor();
    for (let presses = 0; presses < 60 && !(await isGrid()); presses += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "first" }).waitFor();
  });

  onPage("a trigger is made by keyboard alone, beside what it would have matched", async (page) => {
    await openConsole(page, server, tenant, "#/rules/triggers");
    const { keyboard } = page;
    await page.getByRole("link", { name: "New trigger" }).press("Enter");
    await page.getByLabel("Name", { exact: true }).focus();
    await keyboard.type("disks of the web");
    // The source stays; the conditions follow: how they combine, field, comparison, value.
    for (const _ of [1, 2, 3]) await keyboard.press("Tab");
    await keyboard.type("name");
    await keyboard.press("Tab");
    await keyboard.type("contains");
    await keyboard.press("Tab");
    await keyboard.type("FULL");
    await preview(page).getByText("1 event of this time:").waitFor();
    await preview(page).getByRole("link", { name: "disk full" }).waitFor();
    await conditions(page).getByRole("button", { name: "+ Condition" }).press("Enter");
    await conditions(page).getByLabel("Field").nth(1).focus();
    await keyboard.type("entity.name");
    await keyboard.press("Tab");
    await keyboard.press("Tab");
    await keyboard.type("db-1");
    await preview(page).getByText("No event of this time.").waitFor();
    for (const _ of [1, 2, 3, 4]) await keyboard.press("Backspace");
    await keyboard.type("web-1");
    await preview(page).getByRole("link", { name: "disk full" }).waitFor();
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "disks of the web" }).waitFor();
    const made = await stored("disks of the web");
    expect(made?.type?.source).toMatchObject({
      case: "event",
      value: {
        query: {
          clause: {
            kind: {
              case: "allOf",
              value: {
                clauses: [
                  { kind: { case: "contains", value: { field: "name", value: "FULL" } } },
                  { kind: { case: "equals", value: { field: "entity.name" } } },
                ],
              },
            },
          },
        },
      },
    });
    await page.getByRole("status", { name: "Done" }).getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await expect(stored("disks of the web")).rejects.toThrow("no trigger found");
  });

  onPage("a rule is made by keyboard alone", async (page) => {
    await openConsole(page, server, tenant, "#/rules");
    const call = v1(server, tenant);
    const type = { event: { query: { clause: { contains: { field: "name", value: "link" } } } } };
    await call("/v1/notification/triggers", { name: "links", type });
    const { keyboard } = page;
    /** Presses Tab until an element of this role and name has the focus. */
    const tabTo = async (role: "link" | "textbox" | "combobox" | "button" | "checkbox" | "tab", name: string) => {
      for (let presses = 0; presses < 80; presses++) {
        await keyboard.press("Tab");
        const focused = page.getByRole(role, { name, exact: true }).and(page.locator(":focus"));
        if ((await focused.count()) === 1) return;
      }
      throw new Error(`Tab does not reach ${role} ${name}`);
    };
    await page.getByText("in all").waitFor();
    await tabTo("link", "New rule");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "New rule" }).waitFor();
    await page
      .getByText("The latest of all")
      .or(page.getByText(/these are the latest of all/))
      .first()
      .waitFor();
    await tabTo("textbox", "Name");
    await keyboard.type("by keys");
    await tabTo("tab", "By labels");
    await keyboard.press("ArrowRight");
    await tabTo("combobox", "Triggers");
    for (const name of ["critical", "links"]) {
      await keyboard.type(name);
      await keyboard.press("Enter");
    }
    await page.getByRole("button", { name: "Move links forward" }).focus();
    await keyboard.press("Enter");
    await tabTo("combobox", "Destinations");
    await keyboard.type("on call");
    await keyboard.press("Enter");
    await tabTo("textbox", "Message");
    await keyboard.type("look");
    await tabTo("button", "Create the rule");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "by keys" }).waitFor();
    expect(await storedRule("by keys")).toMatchObject({
      enabled: true,
      message: "look",
      triggers: ["links", "critical"],
    });
  });

  onPage("a window is set by keyboard alone, with the server's preview beside it", async (page) => {
    const own = await testTenant(sql);
    await ordinaryDay(server, own);
    await openConsole(page, server, own, "#/windows");
    await page.getByText("There are no maintenance windows.").waitFor();
    const { keyboard } = page;
    const tabTo = async (name: string) => {
      for (let steps = 0; steps < 80; steps++) {
        const found = await page.evaluate(
          `(() => { const e = document.activeElement; const l = [...(e?.labels ?? [])].map((x) => x.textContent).join(" "); return (e?.getAttribute("aria-label") ?? (l || e?.textContent) ?? "").trim(); })()`,
        );
        if (found === name) return;
        await keyboard.press("Tab");
      }
      throw new Error(`no way by keyboard to ${name}`);
    };
    await tabTo("New window");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "New maintenance window" }).waitFor();
    await tabTo("Name");
    await keyboard.type("patch night");
    await tabTo("Start of the first run");
    const day = change.subtract({ days: 1 });
    await keyboard.type([day.month, day.day, day.year].map((part) => String(part).padStart(2, "0")).join(""));
    await keyboard.press("Tab");
    await keyboard.type("1000PM");
    await tabTo("A run takes");
    await keyboard.press("Control+A");
    await keyboard.type("4");
    await tabTo("Time zone");
    await keyboard.press("Control+A");
    await keyboard.type(berlin);
    await tabTo("Repeats");
    await keyboard.type("By days");
    await tabTo("Field");
    await keyboard.type("name");
    await tabTo("Comparison");
    await keyboard.type("starts with");
    await tabTo("Value");
    await keyboard.type("web-");
    const preview = page.getByRole("region", { name: "Preview" });
    await preview.getByText("Runs every day, 22:00–02:00, Europe/Berlin.").waitFor();
    await preview.getByText(/^On .* Runs go on to begin at 22:00 by the clock/).waitFor();
    await preview.getByRole("heading", { name: /begins? now: 2$|began now: 2$/ }).waitFor();
    await tabTo("Create the window");
    await keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "patch night" }).waitFor();
    const { maintWindows } = await v1(server, own)("/v1/modelcontext/maintwindows:list", {});
    expect(maintWindows).toHaveLength(1);
    const local = day.with({ hour: 22, minute: 0, second: 0, millisecond: 0 });
    expect(maintWindows[0].schedule).toMatchObject({
      start: `${local.epochMilliseconds}`,
      duration: `${4 * hourMs}`,
      timeZone: berlin,
      recurrence: expect.objectContaining({ type: "3", interval: "1" }),
    });
  });

  onPage("Escape closes the finder and gives the focus back", async (page) => {
    await openConsole(page, server, tenant);
    await page.getByRole("button", { name: "Find anything" }).click();
    await page.getByRole("dialog", { name: "Find anything" }).getByRole("combobox").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.textContent")).toContain("Find anything");
  });
});

describe("a list of three", () => {
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
    page.evaluate(
      "document.activeElement.getAttribute('role') ?? document.activeElement.textContent",
    ) as Promise<string>;
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

    onPage("goes to the list when the rows of an action leave it, or nothing is selected any more", async (page) => {
      await opened(page);
      await pick(page, "second");
      await press(page, "Close");
      await rowOf(page, "second").waitFor({ state: "detached" });
      await expectFocus(page, "grid");
      await pick(page, "third");
      await press(page, "Select none");
      await expectFocus(page, "grid");
    });

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
    onPage("move between groups, acknowledge one, ask before they close it; the next has the focus", async (page) => {
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
    });

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
});

describe("the seldom used fields of a rule", () => {
  onPage("are folded, and opened by what is wrong with them, said by the browser or the server", async (page) => {
    await openConsole(page, server, tenant, "#/rules/rules?new=1");
    const delay = page.getByLabel("Wait before the first notification", { exact: true });
    const more = page.getByText("More", { exact: true });
    await page.getByLabel("Message", { exact: true }).waitFor();
    expect(await delay.isVisible()).toBe(false);
    await page.getByLabel("Name", { exact: true }).fill("late");
    for (const wrong of ["soon", "2000"]) {
      if (!(await delay.isVisible())) await more.click();
      await delay.fill(wrong);
      await more.click();
      await delay.waitFor({ state: "hidden" });
      await page.getByRole("button", { name: "Create the rule" }).click();
      await delay.waitFor();
      const focused = "document.activeElement.labels?.[0]?.textContent";
      await expect.poll(() => page.evaluate(focused)).toBe("Wait before the first notification");
      if (wrong === "soon") continue;
      await page.getByRole("alert").filter({ hasText: "86400" }).waitFor();
    }
  });

  onPage("are open where the rule says something in them", async (page) => {
    const rule = {
      triggerNames: ["critical"],
      destinationNames: ["on call"],
      message: "{{event.name}}",
      enabled: false,
    };
    await v1(server, tenant)("/v1/notification/rules", { ...rule, name: "described", description: "for the night" });
    await openConsole(page, server, tenant, "#/rules/rules/described");
    await page.getByLabel("Description").waitFor();
    expect(await page.getByLabel("Description").inputValue()).toBe("for the night");
  });
});
