import type { Page, Route } from "playwright-core";
import { beforeAll, describe, expect, vi } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, ordinaryDay, sendEvents, styleOf } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = testBrowser();
beforeAll(() => ordinaryDay(server, tenant));

/** Holds the next call of this method back: until it was made, and from then on until it is let through. */
async function heldBack(page: Page, method: string) {
  const made = Promise.withResolvers<Route>();
  await page.route(`**/${method}`, (route) => made.resolve(route), { times: 1 });
  return made.promise;
}

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
    { viewport: { width: 390, height: 844 } },
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

  onPage("a later page of deliveries that fails can be read again; none comes under another filter", async (page) => {
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
  });
});

describe("the tools of the list", () => {
  onPage("stand in one line at 1280 pixels", { viewport: { width: 1280, height: 720 } }, async (page) => {
    const tenant = await testTenant(server.database.sql);
    await sendEvents(server, tenant, [{ name: "slow", source: "a" }]);
    await openConsole(page, server, tenant);
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    const tops = await Promise.all(
      [
        page.getByLabel("Time range"),
        page.getByRole("button", { name: "Conditions" }),
        page.locator("summary", { hasText: "⋯" }),
      ].map(async (tool) => (await tool.boundingBox())?.y),
    );
    const search = await page.getByLabel("Search events").boundingBox();
    for (const top of tops) expect(Math.abs((top ?? 0) - (search?.y ?? 0))).toBeLessThan(16);
  });

  onPage("that are seldom used hide again by Escape, and by a press beside them", async (page) => {
    const tenant = await testTenant(server.database.sql);
    await openConsole(page, server, tenant);
    const more = page.locator("summary", { hasText: "⋯" });
    const columns = page.getByRole("button", { name: "Columns" });
    await more.click();
    await columns.click();
    await page.getByRole("dialog", { name: "Columns" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(await columns.isVisible()).toBe(true);
    await page.keyboard.press("Escape");
    await columns.waitFor({ state: "hidden" });
    expect(await page.evaluate("document.activeElement.textContent")).toBe("⋯");
    await more.click();
    await columns.waitFor();
    await page.getByRole("heading", { name: "Events", level: 1 }).click();
    await columns.waitFor({ state: "hidden" });
  });
});

/** What is wider than its place within an element, by its text. */
const runsOut = (within: string) =>
  `[...document.querySelectorAll(${JSON.stringify(`${within}, ${within} *`)})].filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0 && getComputedStyle(each).display !== 'inline').map((each) => each.textContent.slice(0, 40))`;

describe("rows on a phone", () => {
  /** Per row: how many lines its cells stand in, and how far the last line stays from the row's end. */
  const lines = `[...document.querySelectorAll('[role=grid] [role=row]')].flatMap((row) => {
    const cells = [...row.querySelectorAll('[role=gridcell]:not([data-pick])')].map((cell) => cell.getBoundingClientRect()).filter(({ height }) => height > 0);
    if (cells.length === 0) return [];
    let [count, under] = [0, -1];
    for (const { top, bottom } of cells.sort((a, b) => a.top - b.top)) {
      if (top >= under - 2) count += 1;
      under = Math.max(under, bottom);
    }
    const { right, bottom } = row.getBoundingClientRect();
    return [{ count, whole: under <= bottom, left: Math.round(Math.min(...cells.map((cell) => cell.left))), free: Math.round(right - cells.at(-1).right) }];
  })`;
  const first = async (page: Page, hash: string) => {
    await page.goto(`${server.url}/console/${hash}`);
    await page.getByRole("gridcell").first().waitFor();
    const [row] = (await page.evaluate(lines)) as { count: number; whole: boolean; left: number; free: number }[];
    return row;
  };

  onPage(
    "have two lines when a cell between two is left out, or a name and a number stand beside a state",
    { viewport: { width: 390, height: 844 } },
    async (page) => {
      const tenant = await testTenant(sql);
      const call = v1(server, tenant);
      const destination = "pager of the night shift (old)";
      const severity = { field: "severity", value: { numberVal: Severity.ERROR } };
      await call("/v1/notification/triggers", {
        name: "errors",
        type: { event: { query: { clause: { greaterAndEquals: severity } } } },
      });
      await call("/v1/notification/destinations", {
        name: destination,
        type: { webhook: { url: "https://hooks.example.invalid/pages" } },
      });
      const rule = { triggerNames: ["errors"], destinationNames: [destination], message: "{{event.name}}" };
      await call("/v1/notification/rules", { name: "page", enabled: true, ...rule });
      await sendEvents(server, tenant, [{ name: "disk full", source: "web-1" }]);
      const specification = {
        name: "Move of the data centre from Frankfurt to Zürich, second part",
        schedule: { start: Date.now(), duration: 3_600_000 },
        maintenanceState: 300,
        query: { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } } },
      };
      await call("/v1/modelcontext/maintwindows", { specification });
      await openConsole(page, server, tenant);
      expect(await first(page, "#/windows")).toMatchObject({ count: 2, whole: true, left: 12 });
      // What came back is the widest cell.
      const asked = { method: "GET", path: "/v1/notification/deliveries", headers: tenant.headers };
      const answered = async () => {
        const [delivery] = JSON.parse((await raw(server.target, "2", asked)).body.toString()).deliveries;
        return delivery?.tries.length > 0;
      };
      await vi.waitUntil(answered, { timeout: 30_000 });
      expect(await first(page, "#/deliveries")).toMatchObject({ count: 2, whole: true, left: 12 });
    },
  );

  onPage(
    "have two lines, which end where the row does; without a box they begin at its edge",
    { viewport: { width: 390, height: 844 } },
    async (page) => {
      const tenant = await testTenant(sql);
      const host = "k8s-worker-12.ams.example.com";
      const summary = "The persistent volume claimed by data-postgres-0 in namespace shop is only 2.1 % free.";
      const name = "KubePersistentVolumeFillingUpInFourDays of the main cluster";
      await sendEvents(server, tenant, [
        { name, source: host, summary },
        { name, source: "db", summary },
        { name: "over", source: "db", summary, status: Status.CLOSED },
      ]);
      await openConsole(page, server, tenant);
      for (const row of [await first(page, "#/events?status=any"), await first(page, "#/events?sort=entityName")])
        expect(row).toEqual({ count: 2, whole: true, left: 48, free: 12 });
      expect(await first(page, "#/entities")).toMatchObject({ count: 2, whole: true, left: 12 });
      expect(await first(page, "#/settings/audit")).toMatchObject({ count: 2, whole: true, left: 12 });
    },
  );
});

for (const width of [1280, 390])
  describe(`${width} px wide`, () => {
    const viewport = { width, height: 844 };

    onPage("a dialog wraps a text without spaces", { viewport }, async (page) => {
      const tenant = await testTenant(sql);
      const name = "x".repeat(250);
      const type = { webhook: { url: "https://hooks.example.invalid/pages" } };
      await v1(server, tenant)("/v1/notification/destinations", { name, type });
      await openConsole(page, server, tenant, "#/settings/audit");
      await page.getByRole("link", { name: "Create destination" }).click();
      const dialog = page.getByRole("dialog", { name: "Create destination" });
      await dialog.getByText(name).first().waitFor();
      expect(await page.evaluate(runsOut("dialog"))).toEqual([]);
    });

    onPage("a long key leaves its value at least half of the line", { viewport }, async (page) => {
      const tenant = await testTenant(sql);
      const [key, value] = ["k".repeat(200), "a value of several words that a person reads"];
      await sendEvents(server, tenant, [{ name: "y".repeat(250), source: "a", metadataFields: { [key]: value } }]);
      await openConsole(page, server, tenant);
      await page.getByRole("link", { name: /^y+$/ }).click();
      const text = page.getByRole("definition").filter({ hasText: value });
      const box = await text.boundingBox();
      const whole = await page.getByText(key, { exact: true }).locator("..").boundingBox();
      expect(box?.width).toBeGreaterThan((whole?.width ?? Number.POSITIVE_INFINITY) / 2);
      expect(await page.evaluate(runsOut("main"))).toEqual([]);
    });
  });

/** A tenant with one open event, its occurrence and its entity. */
async function withEvent(metadataFields: Record<string, string> = {}) {
  const tenant = await testTenant(sql);
  await sendEvents(server, tenant, [
    { name: "disk full", source: "web-1", severity: Severity.CRITICAL, metadataFields },
    { name: "disk full", source: "web-2", severity: Severity.CRITICAL },
  ]);
  const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
  const [event] = results.filter(({ entityName }: { entityName: string }) => /web-1/.test(entityName));
  return { tenant, occurrence: event.occurrences[0].id as string, entity: event.entity as string };
}

describe("an occurrence on a phone", () => {
  const box = async (page: Page, name: string) => {
    const found = page.locator("main").getByRole(/…$/.test(name) ? "link" : "button", { name, exact: true });
    return await found.boundingBox();
  };

  onPage(
    "has Acknowledge, Silence and Close in one line at the thumb, and the others a press further",
    { viewport: { width: 390, height: 844 } },
    async (page) => {
      const graph = `https://${"g".repeat(40)}.example.com/graph`;
      const { tenant, occurrence } = await withEvent({ runbook_url: "https://wiki.example.com/disk", graph });
      await openConsole(page, server, tenant, `#/occurrences/${occurrence}`);
      await page.getByRole("link", { name: "Silence…", exact: true }).waitFor();
      const boxes = [await box(page, "Acknowledge"), await box(page, "Silence…"), await box(page, "Close")];
      const tops = boxes.map((each) => Math.round(each?.y ?? -1));
      expect(new Set(tops).size, String(tops)).toBe(1);
      for (const each of boxes) {
        expect(each?.height).toBeGreaterThanOrEqual(44);
        expect((each?.x ?? 0) + (each?.width ?? 0)).toBeLessThanOrEqual(390);
      }
      await page.getByLabel("More actions").click();
      for (const name of ["Suppress", "Annotate…"]) {
        const rare = await page.getByRole("button", { name, exact: true }).boundingBox();
        expect((rare?.x ?? -1) >= 0 && (rare?.y ?? -1) >= 0, name).toBe(true);
        expect((rare?.x ?? 0) + (rare?.width ?? 0)).toBeLessThanOrEqual(390);
        expect((rare?.y ?? 0) + (rare?.height ?? 0)).toBeLessThanOrEqual(844);
      }
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
      await page.getByRole("button", { name: "Suppress", exact: true }).click();
      await page.getByText("1 suppressed").waitFor();
      expect(await page.locator("details[open]").filter({ hasText: "Annotate…" }).count()).toBe(0);
    },
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
      { viewport, hasTouch: true, isMobile: true },
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
    );
});
