import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { createLink } from "../../src/auth/console-links.ts";
import { transaction } from "../../src/db/transaction.ts";
import { type DomPage, domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { openFilters, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

const rowOf = (page: DomPage, name: string) => page.getByRole("row").filter({ hasText: name });
const live = (page: DomPage) => page.getByText("Live", { exact: true }).waitFor();

describe("the list of events comes up to date by itself", () => {
  onPage("when what changed could not be read", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant);
    await page.getByText("Nothing is open.").waitFor();
    await live(page);
    const refused = page.fail("SearchEvents");
    await sendEvents(server, tenant, [{ name: "unread", source: "a" }]);
    await refused;
    await rowOf(page, "unread").waitFor();
  });

  onPage("when the search itself found no server", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "stored", source: "a" }]);
    await page.logIn(tenant, "#/deliveries");
    await live(page);
    const refused = page.fail("SearchEvents");
    await page.getByRole("link", { name: "Events", exact: true }).click();
    await refused;
    await rowOf(page, "stored").waitFor();
  });

  onPage("when something was stored after its search and before the watch began", async (page) => {
    const tenant = await testTenant(sql);
    const watch = page.hold("WatchEvents");
    await page.logIn(tenant);
    await page.getByText("Nothing is open.").waitFor();
    const { release } = await watch;
    await sendEvents(server, tenant, [{ name: "between", source: "a" }]);
    release();
    await rowOf(page, "between").waitFor();
  });
});

describe("a list that finds no server", () => {
  const entities = (page: DomPage) => page.getByRole("grid", { name: "Entities" });
  /** Opens the entities, whose first call finds no server, and the second one waits. */
  async function refusedAt(page: DomPage) {
    const refused = page.fail("SearchEntities");
    const second = page.hold("SearchEntities");
    await page.getByRole("link", { name: "Entities", exact: true }).click();
    await refused;
    return await second;
  }

  onPage("shows what it showed before, until the server says what is so now", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "any", source: "host before" }]);
    await page.logIn(tenant, "#/entities");
    await entities(page).getByText("host before").first().waitFor();
    await page.goto("#/rules");
    await sendEvents(server, tenant, [{ name: "any", source: "host after" }]);
    const { release } = await refusedAt(page);
    await entities(page).getByText("host before").first().waitFor();
    expect(await entities(page).getByText("host after").count()).toBe(0);
    release();
    await entities(page).getByText("host after").first().waitFor();
  });

  onPage("shows nothing of the session before", async (page) => {
    const [before, after] = [await testTenant(sql), await testTenant(sql)];
    await sendEvents(server, before, [{ name: "any", source: "theirs" }]);
    await page.logIn(before, "#/entities");
    await entities(page).getByText("theirs").first().waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.logIn(after, "#/rules");
    const { release } = await refusedAt(page);
    expect(await page.getByText("theirs").count()).toBe(0);
    release();
    await page.getByText("There are no entities yet.").waitFor();
  });
  onPage("asks again where another call finds the server before the next frame", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant, "#/silences");
    const [answered, failed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    page.passBy("ListApiClients", (next) => async (request) => {
      const answer = await next(request);
      answered.resolve();
      await failed.promise;
      return answer;
    });
    page.passBy("ListAuditEntries", () => async () => {
      await answered.promise;
      setImmediate(failed.resolve);
      throw new ConnectError("Failed to fetch", Code.Unavailable);
    });
    await page.goto("#/settings/audit");
    await page.getByRole("row").filter({ hasText: "Create session" }).waitFor();
  });
});

describe("a single thing that finds no server", () => {
  const clause = { greaterAndEquals: { field: "severity", value: { numberVal: Severity.CRITICAL } } };
  const trigger = { name: "critical", type: { event: { query: { clause } } } };
  const window = {
    name: "Backups",
    schedule: { start: Date.now() + 3_600_000, duration: 3_600_000 },
    maintenanceState: 300,
    query: { clause: { filter: { field: "name", operation: "OP_STARTS_WITH", value: "web-" } } },
  };

  onPage("shows what it showed before, and never another one", async (page) => {
    const tenant = await testTenant(sql);
    const call = v1(server, tenant);
    await call("/v1/notification/triggers", trigger);
    await call("/v1/notification/destinations", { name: "hook", type: { webhook: { url: "https://hook.example" } } });
    const rule = { name: "page", enabled: false, triggerNames: ["critical"], destinationNames: ["hook"] };
    await call("/v1/notification/rules", { ...rule, message: "{{event.name}}" });
    const { id: windowId } = await call("/v1/modelcontext/maintwindows", { specification: window });
    await sendEvents(server, tenant, [
      { name: "disk full", source: "a" },
      { name: "link down", source: "a" },
    ]);
    const { results } = await call("/v1/events:search", { query: {} });
    const occurrences: string[] = ["disk full", "link down"].map(
      (name) => results.find((event: { name: string }) => event.name === name).occurrences[0].id,
    );
    await page.logIn(tenant);
    const things = [
      ["GetTrigger", "#/rules/triggers/critical", "form", "Trigger"],
      ["GetDestination", "#/rules/destinations/hook", "region", "State"],
      ["GetRule", "#/rules/rules/page", "region", "The rule in words"],
      ["SearchMaintenanceWindows", `#/windows/${windowId}`, "region", "Kept silent"],
      ["GetEvent", `#/occurrences/${occurrences[0]}`, "region", "Life cycle"],
    ] as const;
    for (const [method, hash, role, name] of things) {
      const shown = page.getByRole(role, { name });
      await page.goto(hash);
      await shown.waitFor();
      await page.goto("#/silences");
      await shown.waitFor({ state: "detached" });
      const refused = page.fail(method);
      const second = page.hold(method);
      const opening = page.goto(hash);
      await refused;
      const { release } = await second;
      await shown.waitFor();
      release();
      await opening;
    }
    await page.getByRole("heading", { level: 1, name: "disk full" }).waitFor();
    const refused = page.fail("GetEvent");
    const second = page.hold("GetEvent");
    const opening = page.goto(`#/occurrences/${occurrences[1]}`);
    await refused;
    const { release } = await second;
    expect(page.getByRole("heading", { level: 1, name: "disk full" }).count()).toBe(0);
    release();
    await opening;
    await page.getByRole("heading", { level: 1, name: "link down" }).waitFor();
  });
});

describe("conditions of an address that cannot be read", () => {
  onPage("are said, and nothing is listed as if there were none", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "any", source: "a" }]);
    await page.logIn(tenant);
    await rowOf(page, "any").waitFor();
    for (const screen of ["events", "entities"]) {
      await page.goto(`#/${screen}?where=%7B%22nothing%22%3A1%7D`);
      await page.getByRole("alert").getByText("conditions in this address cannot be read").waitFor();
      expect(await rowOf(page, "any").count()).toBe(0);
    }
  });

  onPage("and those that the server refuses leave no count of the query before", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "any", source: "a" }]);
    await page.logIn(tenant);
    const expression = { filter: { field: "name", operation: "OP_REGEX", value: "(any" } };
    const refused = encodeURIComponent(JSON.stringify(expression));
    for (const where of ["%7B%22nothing%22%3A1%7D", refused]) {
      for (const group of ["", "&group=alertname"]) {
        await page.goto(`#/events?${group}`);
        await page.getByText("1 occurrence", { exact: true }).waitFor();
        await openFilters(page);
        await page.getByRole("group", { name: "Totals" }).getByText("1 error").waitFor();
        await page
          .getByRole("group", { name: "Name" })
          .filter({ hasText: /any\s*1/ })
          .waitFor();
        if (group !== "") await page.getByText("1 group", { exact: true }).waitFor();
        await page.goto(`#/events?where=${where}${group}`);
        await page.getByRole("alert").first().waitFor();
        await page.getByRole("group", { name: "Totals" }).waitFor({ state: "detached" });
        for (const count of [/^1 occurrence/, /^1 group/, /any\s*1/])
          await page.getByText(count).waitFor({ state: "detached" });
      }
    }
  });
});

describe("a link that logs in, in a browser that is logged in", () => {
  onPage("asks first, and holds on when the answer is no", async (page) => {
    const [mine, theirs] = [await testTenant(sql), await testTenant(sql)];
    await page.logIn(mine);
    await page.getByText(mine.name).waitFor();
    const { token } = await transaction(sql, (tx) => createLink(tx, theirs.id, undefined));
    const open = async (answer: string) => {
      await page.goto(`#first=${token}`);
      const question = page.getByRole("dialog", { name: "Log in by this link?" });
      await question.getByText(mine.name).waitFor();
      await question.getByRole("button", { name: answer }).click();
    };
    await open("Stay logged in");
    await page.getByText(mine.name).waitFor();
    expect(page.hash()).not.toContain(token);
    await open("Log in by the link");
    await page.getByText(theirs.name).waitFor();
  });
});

describe("a link that logs in, where the page is open already", () => {
  onPage("logs in without a reload; once it was spent, the session stays as it is", async (page) => {
    const tenant = await testTenant(sql);
    const { token } = await transaction(sql, (tx) => createLink(tx, tenant.id, undefined));
    await page.getByLabel("API key").waitFor();
    const open = () => page.goto(`#first=${token}`);
    await open();
    await page.getByText("Nothing is open.").waitFor();
    expect(page.hash()).not.toContain(token);
    await open();
    await page.getByRole("button", { name: "Log in by the link" }).click();
    await page.getByText(/^The link did not log in: /).waitFor();
    await page.getByText("Nothing is open.").waitFor();
    expect(await page.getByLabel("API key").count()).toBe(0);
    expect(page.hash()).not.toContain(token);
  });
});

describe("the value of a property", () => {
  onPage("stays as it was typed, also where it has the digits of a number", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "any", source: "a" }]);
    await page.logIn(tenant, "#/entities");
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
