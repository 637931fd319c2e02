import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, see, sendEvents } from "./console-page.ts";
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

const everyMs = 300_000;

/** Lets time pass for the page at once. Effects of signals run after the next frame. */
async function pass(page: Page, ms: number): Promise<void> {
  await page.clock.fastForward(ms);
  await page.clock.runFor(200);
}

/** Opens the plot of a metric with a value, on a page whose clock the test moves. */
async function opened(page: Page) {
  const tenant = await testTenant(sql);
  const call = v1(server, tenant);
  const send = (timestamp: number, value: number) =>
    call("/v1/data-receiver/metrics", {
      metrics: [{ metric: "load", timestamp, dimensions: { source: "web-1" }, value }],
    });
  await send(Date.now() - 2 * everyMs, 3);
  const reads: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/SearchMetrics")) reads.push(request.url());
  });
  await page.clock.install();
  await openConsole(page, server, tenant, "#/metrics?metric=load&range=6h");
  const plot = page.getByRole("region", { name: "load" });
  await plot.locator("strong").filter({ hasText: "3" }).waitFor();
  await page.locator("summary", { hasText: "⋯" }).click();
  return { plot, reads, send };
}

onPage("metrics are read again as often as was chosen, and the cursor stays at its moment", async (page) => {
  const { plot, reads, send } = await opened(page);
  await page.getByLabel("Refresh every").selectOption("5 min");
  await page.getByText(/Read at [\d:]{8}, again every 5 min\./).waitFor();
  await plot.getByRole("application").press("End");
  const told = () => plot.locator("[aria-live]").textContent();
  await expect.poll(told).toMatch(/load: 3$/);
  const before = await told();
  await send(Date.now(), 7);
  await pass(page, everyMs);
  await plot.locator("strong").filter({ hasText: "7" }).waitFor();
  expect(reads).toHaveLength(2);
  expect(await told()).toBe(before);
  await plot.getByRole("application").press("End");
  await expect.poll(told).toMatch(/load: 7$/);
});

onPage("metrics are not read by themselves while the page is hidden, or while they are read", async (page) => {
  const { plot, reads, send } = await opened(page);
  await page.getByLabel("Refresh every").selectOption("5 min");
  await page.getByText(/again every 5 min/).waitFor();
  await see(page, "hidden");
  await pass(page, 2 * everyMs);
  await see(page, "visible");
  const gate = Promise.withResolvers<void>();
  await page.route("**/SearchMetrics", async (route) => {
    await gate.promise;
    await route.continue();
  });
  const asked = page.waitForRequest("**/SearchMetrics");
  await pass(page, everyMs);
  await asked;
  await pass(page, everyMs);
  await pass(page, everyMs);
  expect(reads).toHaveLength(2);
  await send(Date.now(), 7);
  gate.resolve();
  await plot.locator("strong").filter({ hasText: "7" }).waitFor();
});

onPage("metrics of a range that does not end now are not read by themselves", async (page) => {
  const { reads } = await opened(page);
  await page.getByLabel("Refresh every").selectOption("5 min");
  await page.getByText(/again every 5 min/).waitFor();
  const [from, to] = [Date.now() - 4 * everyMs, Date.now()];
  await page.goto(`${server.url}/console/#/metrics?metric=load&range=${from}-${to}&refresh=5m`);
  await page.getByText(/again every 5 min/).waitFor({ state: "detached" });
  await expect.poll(() => reads.length).toBe(2);
  await page.getByText("1 series in 1 plot. Drag across").waitFor();
  expect(await page.getByLabel("Refresh every").isDisabled()).toBe(true);
  await pass(page, everyMs);
  // Whatever was under way has ended once another question is answered.
  await page.getByLabel("Aggregator").selectOption("max");
  await expect.poll(() => reads.length).toBe(3);
});
