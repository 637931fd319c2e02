import { createClient } from "@connectrpc/connect";
import type { Page, Route } from "playwright-core";
import { beforeAll, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = testBrowser();
const triggers = createClient(TriggerService, transport(server.target, "connect", tenant.headers));
beforeAll(() => ordinaryDay(server, tenant));

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

/** Holds the next call of this method back: until it was made, and from then on until it is let through. */
async function heldBack(page: Page, method: string) {
  const made = Promise.withResolvers<Route>();
  await page.route(`**/${method}`, (route) => made.resolve(route), { times: 1 });
  return made.promise;
}

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
    const tabTo = async (role: "link" | "textbox" | "combobox" | "button" | "checkbox", name: string) => {
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

describe("what needs a layout", () => {
  onPage("a plot is zoomed by dragging, and back undoes it", async (page) => {
    await openConsole(page, server, tenant, "#/metrics");
    await page.getByRole("combobox", { name: "Entity" }).fill("web-1");
    await page.getByRole("option", { name: "web-1" }).click();
    const plot = page.getByRole("application", { name: /CPU utilization/ });
    const box = await plot.boundingBox();
    if (box === null) throw new Error("the plot is not in sight");
    await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/range=\d+-\d+/);
    await page.goBack();
    await page.waitForURL((url) => !url.href.includes("range="));
  });

  onPage(
    "on a phone a plot stands in the upper half of the screen, its legend below it, and the choices in a menu",
    async (page) => {
      await openConsole(page, server, tenant, "#/metrics?metric=system.cpu.utilization&range=6h");
      const plot = page.getByRole("application", { name: /CPU utilization/ });
      await plot.waitFor();
      expect((await plot.boundingBox())?.y).toBeLessThan(422);
      expect(await page.getByLabel("Aggregator").isVisible()).toBe(false);
      await page.getByText("⋯").click();
      const metric = page.getByLabel("Metric", { exact: true });
      for (const choice of [page.getByLabel("Aggregator"), page.getByLabel("Period"), metric]) {
        const box = await choice.boundingBox();
        expect([(box?.x ?? -1) >= 0, (box?.x ?? 0) + (box?.width ?? 0) <= 390]).toEqual([true, true]);
      }
    },
    { viewport: { width: 390, height: 844 } },
  );

  onPage("a line of a legend dims the other lines of its plot while it is focused", async (page) => {
    const tenant = await testTenant(sql);
    const metrics = [0, 1].flatMap((value) =>
      [0, 60_000].map((ago) => ({
        metric: "queue.length",
        value,
        labels: { queue: `q${value}` },
        dimensions: { source: "web-1" },
        timestamp: Date.now() - ago,
      })),
    );
    await v1(server, tenant)("/v1/data-receiver/metrics", { metrics });
    await openConsole(page, server, tenant, "#/metrics?metric=queue.length");
    const line = page.getByRole("button", { name: "queue=q1" });
    await line.waitFor();
    const drawn = () => page.evaluate("document.querySelector('main canvas').toDataURL()");
    const before = await drawn();
    await line.focus();
    await expect.poll(drawn).not.toBe(before);
    await page.getByRole("combobox", { name: "Entity" }).focus();
    await expect.poll(drawn).toBe(before);
  });

  onPage("a plot tells the value at the pointer, and moves nothing for it", async (page) => {
    await openConsole(page, server, tenant, "#/metrics");
    await page.getByRole("combobox", { name: "Entity" }).fill("web-1");
    await page.getByRole("option", { name: "web-1" }).click();
    const card = page.getByRole("region", { name: "Memory usage" });
    const plot = card.getByRole("application");
    await plot.hover();
    const told = card.getByText(/^Memory usage: [\d.]+ GiB$/);
    const before = await card.boundingBox();
    const box = await plot.boundingBox();
    if (box === null) throw new Error("the plot is not in sight");
    // The newest values stand at the end.
    await page.mouse.move(box.x + box.width - 30, box.y + box.height / 2);
    await told.waitFor();
    expect(await card.boundingBox()).toEqual(before);
    const tip = await told.boundingBox();
    expect((tip?.x ?? 0) + (tip?.width ?? 0)).toBeLessThan(box.x + box.width);
  });

  onPage(
    "a later page of deliveries that fails can be read again, and none comes under another filter",
    async (page) => {
      const tenant = await testTenant(sql);
      await sql`
      insert into delivery_history (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        entity_id, occasion, told, attempts, error, status, ended_ms)
      select ${tenant.id}, id, ('x' || left(translate(id::text, '-', ''), 12))::bit(48)::int8, id, 'r', array['t'], 'd', '',
        '', 'first', '{}', '[]', '', 'FAILED', 0
      from (select uuidv7() as id from generate_series(1, 300)) ids`;
      await openConsole(page, server, tenant, "#/deliveries");
      await page.getByText("300 in all").waitFor();
      const table = page.getByRole("grid", { name: "Deliveries" });
      const lastRow = table.locator('[aria-rowindex="301"]');
      await page.route("**/ListDeliveries", (route) => route.abort(), { times: 1 });
      await table.press("End");
      await page.getByRole("button", { name: "Try again" }).click();
      const atTheEnd = async () => {
        await table.press("End");
        return lastRow.count();
      };
      await expect.poll(atTheEnd).toBe(1);
      expect(await page.getByRole("alert").count()).toBe(0);
      await page.reload();
      await page.getByText("300 in all").waitFor();
      const later = heldBack(page, "ListDeliveries");
      await table.press("End");
      const route = await later;
      const [answered] = await Promise.all([
        page.waitForResponse(/ListDeliveries$/),
        page.getByLabel("State").selectOption({ label: "Sent" }),
      ]);
      await answered.finished();
      const nothing = page.getByText("No delivery matches these filters.");
      await nothing.waitFor();
      await Promise.all([page.waitForEvent("requestfinished"), route.continue()]);
      await page.waitForFunction("document.querySelector('main').getAttribute('aria-busy') === 'false'");
      expect(await nothing.count()).toBe(1);
    },
  );
});
