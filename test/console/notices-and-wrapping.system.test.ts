import type { Page } from "playwright-core";
import { describe, expect, vi } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { testBrowser } from "../support/browser.ts";
import { raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const { onPage } = testBrowser();

const notice = (page: Page) => page.getByRole("status", { name: "Done" });
const standsMs = 10_000;
/** Effects of signals run after the next frame: a timer that they clear would fire before. */
const afterFrame = (page: Page) => page.clock.runFor(200);

describe("a notice", () => {
  /** Acknowledges an event on a page whose clock the test moves. */
  async function acknowledged(page: Page) {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "disk full", source: "a" }]);
    await page.clock.install();
    await openConsole(page, server, tenant);
    await page.getByRole("row").filter({ hasText: "disk full" }).getByRole("gridcell").first().click();
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await notice(page).getByText("1 acknowledged").waitFor();
  }

  onPage("ends after ten seconds, which a pointer on it holds", async (page) => {
    await acknowledged(page);
    await notice(page).hover();
    await afterFrame(page);
    await page.clock.fastForward(2 * standsMs);
    await notice(page).getByText("1 acknowledged").waitFor();
    await page.mouse.move(0, 0);
    await afterFrame(page);
    await page.clock.fastForward(standsMs / 5);
    await notice(page).getByText("1 acknowledged").waitFor();
    await page.clock.fastForward(standsMs);
    await expect.poll(() => notice(page).textContent()).toBe("");
  });

  onPage("ends with the screen that it was said on", async (page) => {
    await acknowledged(page);
    await page.clock.fastForward(standsMs / 5);
    await page.getByRole("link", { name: "Metrics", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "Metrics" }).waitFor();
    await expect.poll(() => notice(page).textContent()).toBe("");
  });

  onPage("of what failed stays until it is closed", async (page) => {
    await acknowledged(page);
    await page.route("**/SetEventStatus", (route) => route.abort(), { times: 1 });
    await notice(page).getByRole("button", { name: "Undo" }).click();
    await notice(page)
      .getByText(/could not be taken back/)
      .waitFor();
    await afterFrame(page);
    await page.clock.fastForward(6 * standsMs);
    await notice(page)
      .getByText(/could not be taken back/)
      .waitFor();
    await notice(page).getByRole("button", { name: "Close the message" }).click();
    await expect.poll(() => notice(page).textContent()).toBe("");
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
    { viewport: { width: 390, height: 844 } },
  );

  onPage(
    "have two lines, which end where the row does; without a box they begin at its edge",
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
    { viewport: { width: 390, height: 844 } },
  );
});

for (const width of [1280, 390])
  describe(`${width} px wide`, () => {
    const viewport = { width, height: 844 };

    onPage(
      "a dialog wraps a text without spaces",
      async (page) => {
        const tenant = await testTenant(sql);
        const name = "x".repeat(250);
        const type = { webhook: { url: "https://hooks.example.invalid/pages" } };
        await v1(server, tenant)("/v1/notification/destinations", { name, type });
        await openConsole(page, server, tenant, "#/settings/audit");
        await page.getByRole("link", { name: "Create destination" }).click();
        const dialog = page.getByRole("dialog", { name: "Create destination" });
        await dialog.getByText(name).first().waitFor();
        expect(await page.evaluate(runsOut("dialog"))).toEqual([]);
      },
      { viewport },
    );

    onPage(
      "a long key leaves its value at least half of the line",
      async (page) => {
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
      },
      { viewport },
    );
  });
