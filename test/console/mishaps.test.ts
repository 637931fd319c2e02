import type { Page, Route } from "playwright-core";
import { describe, expect } from "vitest";
import { createLink } from "../../src/auth/console-links.ts";
import { transaction } from "../../src/db/transaction.ts";
import { testBrowser } from "../support/browser.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openConsole, sendEvents } from "./console-page.ts";

const server = await testServer({ BELFRY_PLAINTEXT: "0" });
const { sql } = server.database;
const { onPage } = testBrowser();

const rowOf = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const live = (page: Page) => page.getByText("Live", { exact: true }).waitFor();

/** Holds the next call of this method back: until it was made, and from then on until it is let through. */
async function heldBack(page: Page, method: string) {
  const made = Promise.withResolvers<Route>();
  await page.route(`**/${method}`, (route) => made.resolve(route), { times: 1 });
  return made.promise;
}

describe("the list of events comes up to date by itself", () => {
  onPage("when what changed could not be read", async (page) => {
    const tenant = await testTenant(sql);
    await openConsole(page, server, tenant);
    await page.getByText("Nothing is open.").waitFor();
    await live(page);
    const refused = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/SearchEvents"));
    await page.route("**/SearchEvents", (route) => route.abort(), { times: 1 });
    await sendEvents(server, tenant, [{ name: "unread", source: "a" }]);
    await refused;
    await rowOf(page, "unread").waitFor();
  });

  onPage("when the search itself found no server", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "stored", source: "a" }]);
    await openConsole(page, server, tenant, "#/deliveries");
    await live(page);
    const refused = page.waitForEvent("requestfailed", (request) => request.url().endsWith("/SearchEvents"));
    await page.route("**/SearchEvents", (route) => route.abort(), { times: 1 });
    await page.getByRole("link", { name: "Events", exact: true }).click();
    await refused;
    await rowOf(page, "stored").waitFor();
  });

  onPage("when something was stored after its search and before the watch began", async (page) => {
    const tenant = await testTenant(sql);
    const watch = heldBack(page, "WatchEvents");
    await openConsole(page, server, tenant);
    await page.getByText("Nothing is open.").waitFor();
    const route = await watch;
    await sendEvents(server, tenant, [{ name: "between", source: "a" }]);
    await route.continue();
    await rowOf(page, "between").waitFor();
  });
});

describe("conditions of an address that cannot be read", () => {
  onPage("are said, and nothing is listed as if there were none", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "any", source: "a" }]);
    await openConsole(page, server, tenant);
    await rowOf(page, "any").waitFor();
    for (const screen of ["events", "entities"]) {
      await page.goto("about:blank");
      await page.goto(`${server.url}/console/#/${screen}?where=%7B%22nothing%22%3A1%7D`);
      await page.getByRole("alert").getByText("conditions in this address cannot be read").waitFor();
      expect(await rowOf(page, "any").count()).toBe(0);
    }
  });
});

describe("a link that logs in, in a browser that is logged in", () => {
  onPage("asks first, and holds on when the answer is no", async (page) => {
    const [mine, theirs] = [await testTenant(sql), await testTenant(sql)];
    await openConsole(page, server, mine);
    await page.getByText(mine.name).waitFor();
    const { token } = await transaction(sql, (tx) => createLink(tx, theirs.id, undefined));
    const open = async (answer: "accept" | "dismiss") => {
      const asked = page.waitForEvent("dialog").then(async (question) => {
        await question[answer]();
        return question.message();
      });
      await page.goto("about:blank");
      await page.goto(`${server.url}/console/#first=${token}`);
      return asked;
    };
    expect(await open("dismiss")).toContain(mine.name);
    await page.getByText(mine.name).waitFor();
    await open("accept");
    await page.getByText(theirs.name).waitFor();
  });
});

describe("a link that logs in, where the page is open already", () => {
  onPage("logs in without a reload; once it was spent, the session stays as it is", async (page) => {
    const tenant = await testTenant(sql);
    const { token } = await transaction(sql, (tx) => createLink(tx, tenant.id, undefined));
    await page.goto(`${server.url}/console/`);
    await page.getByLabel("API key").waitFor();
    const open = () => page.evaluate(`location.hash = "#first=${token}"`);
    await open();
    await page.getByText("Nothing is open.").waitFor();
    expect(page.url()).not.toContain(token);
    page.once("dialog", (question) => question.accept());
    await open();
    await page.getByText(/^The link did not log in: /).waitFor();
    await page.getByText("Nothing is open.").waitFor();
    expect(await page.getByLabel("API key").count()).toBe(0);
    expect(page.url()).not.toContain(token);
  });
});

describe("with more deliveries than a page holds", () => {
  onPage("a later page that fails can be read again, and none comes under another filter", async (page) => {
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
    await expect.poll(atTheEnd, { timeout: 15_000 }).toBe(1);
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

describe("the value of a property", () => {
  onPage("stays as it was typed, also where it has the digits of a number", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "any", source: "a" }]);
    await openConsole(page, server, tenant, "#/entities");
    await page.getByText("1 entity").waitFor();
    await page.getByRole("grid", { name: "Entities" }).press("Enter");
    const form = page.getByRole("form", { name: "Set a property" });
    const properties = page.getByRole("region", { name: "Custom properties" });
    for (const [name, value] of Object.entries({ rack: "007", serial: "9007199254740993", slots: "12" })) {
      await form.getByLabel("Name").fill(name);
      await form.getByLabel("Value").fill(value);
      await form.getByRole("button", { name: "Set" }).click();
      await properties.getByText(new RegExp(`^${value}`)).waitFor();
    }
  });
});
