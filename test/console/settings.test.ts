import { describe, expect } from "vitest";
import { raw } from "../support/clients.ts";
import type { Place } from "../support/dom-locator.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);

describe("keys", () => {
  onPage("are made, shown once, used, and revoked", async (page) => {
    await page.logIn(tenant, "#/settings/keys");
    await page.getByRole("link", { name: "New client" }).click();
    const client = page.getByRole("form", { name: "Client" });
    await client.getByLabel("Name").fill("collector");
    await client.getByLabel("Purpose").selectOption({ label: "Sending data alone" });
    await client.getByRole("button", { name: "Make the client" }).click();
    await page.getByRole("heading", { level: 1, name: "collector" }).waitFor();
    await page.getByText("It has no key yet").waitFor();
    const form = page.getByRole("form", { name: "New key" });
    await form.getByLabel("Description").fill("of the first host");
    await form.getByLabel("Ends").selectOption("In 30 days");
    await form.getByRole("button", { name: "Make a key" }).click();
    const secret = await page.getByLabel("The new key", { exact: true }).locator("input").inputValue();
    const models = [{ timestamp: Date.now(), dimensions: { source: "web-1" } }];
    const collector = { ...tenant, headers: { "service-api-key": secret } };
    await v1(server, collector)("/v1/data-receiver/models", { models });
    await page.getByRole("button", { name: "Done" }).click();
    expect(await page.held()).not.toContain(secret);
    await page
      .getByRole("row")
      .filter({ hasText: "of the first host" })
      .getByRole("button", { name: "Revoke…" })
      .click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByText("It has no key yet").waitFor();
    await eventually(() => v1(server, collector)("/v1/data-receiver/models", { models }).catch(String)).toMatch(/16/);
  });

  onPage("the last one of a manager is not revoked, and the page says why", async (page) => {
    await page.logIn(tenant, "#/settings/keys");
    await page.getByRole("row").filter({ hasText: "Manager" }).first().click();
    await page.getByRole("row").filter({ hasText: "this session's" }).getByRole("button", { name: "Revoke…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("you will be logged out").waitFor();
    await dialog.getByRole("button", { name: "Revoke", exact: true }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
  });
});

describe("accounts and groups", () => {
  onPage("are made, changed, taken back and deleted, and errors stand at their fields", async (page) => {
    await page.logIn(tenant, "#/settings/groups");
    await page.getByText("There are no groups yet.").waitFor();
    await page.getByRole("link", { name: "New group" }).click();
    const group = page.getByRole("form", { name: "Group" });
    await group.getByLabel("Name").fill("Storage");
    await group.getByRole("checkbox", { name: "User", exact: true }).check();
    await group.getByLabel("Sees only").fill("Europe");
    await group.getByLabel("Sees only").press("Enter");
    await group.getByRole("button", { name: "Make the group" }).click();
    await group.getByRole("alert").filter({ hasText: "must have the form cz<digits>" }).waitFor();
    await group.getByRole("button", { name: "Remove Europe" }).click();
    await group.getByRole("button", { name: "Make the group" }).click();
    await page.getByRole("heading", { level: 1, name: "Storage" }).waitFor();
    await group.getByRole("checkbox", { name: "Manager" }).check();
    await group.getByRole("button", { name: "Save" }).click();
    await page.getByText('The group "Storage" is changed.').waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await group.getByRole("checkbox", { name: "Manager", checked: false }).waitFor();

    // A second change: what is taken back is that one alone.
    await group.getByRole("checkbox", { name: "Manager" }).check();
    await group.getByRole("button", { name: "Save" }).click();
    await page.getByText('The group "Storage" is changed.').waitFor();
    await group.getByRole("button", { name: "Discard changes" }).waitFor({ state: "detached" });
    await group.getByRole("checkbox", { name: "User", exact: true }).uncheck();
    await group.getByRole("button", { name: "Save" }).click();
    await group.getByRole("button", { name: "Discard changes" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await group.getByRole("checkbox", { name: "User", exact: true, checked: true }).waitFor();
    await group.getByRole("checkbox", { name: "Manager", checked: true }).waitFor();

    await page.getByRole("link", { name: "Accounts" }).click();
    await page.getByRole("link", { name: "New account" }).click();
    const account = page.getByRole("form", { name: "Account" });
    await account.getByLabel("E-mail").fill("ada@example.com");
    await account.getByLabel("Password").fill("simple-one");
    await account.getByLabel("Groups", { exact: true }).fill("Storage");
    await account.getByLabel("Groups", { exact: true }).press("Enter");
    await account.getByRole("button", { name: "Make the account" }).click();
    await account.getByRole("alert").filter({ hasText: "at least three of the classes" }).waitFor();
    await account.getByLabel("Password").fill("Correct-horse-7");
    await account.getByRole("button", { name: "Make the account" }).click();
    await page.getByRole("heading", { level: 1, name: "ada@example.com" }).waitFor();
    expect(await page.held()).not.toContain("Correct-horse-7");
    await account.getByLabel("First name").fill("Ada");
    await account.getByRole("button", { name: "Save" }).click();
    await page.getByText("The account of ada@example.com is changed.").waitFor();
    await eventually(() => account.getByLabel("First name").getAttribute("readonly")).not.toBeNull();
    // A name stays: there is nothing to take back.
    expect(await page.getByRole("button", { name: "Undo" }).count()).toBe(0);
    await account.getByLabel("E-mail").fill("ada.l@example.com");
    await account.getByRole("button", { name: "Save" }).click();
    await page.getByText("The account of ada.l@example.com is changed.").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await page.getByRole("heading", { level: 1, name: "ada@example.com" }).waitFor();

    await page.getByRole("link", { name: "Groups", exact: true }).click();
    await page.getByRole("row").filter({ hasText: "Storage" }).waitFor();
    await page.getByRole("grid", { name: "Groups" }).press("Enter");
    await page.getByRole("region", { name: "Accounts in it" }).getByRole("link", { name: "ada@example.com" }).click();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("There are no accounts yet.").waitFor();
  });

  onPage("what was typed survives a reload, but for the password", async (page) => {
    await page.logIn(tenant, "#/settings/accounts?new=1");
    const account = page.getByRole("form", { name: "Account" });
    await account.getByLabel("E-mail").fill("bob@example.com");
    await account.getByLabel("Password").fill("Correct-horse-8");
    await page.reload();
    await eventually(() => account.getByLabel("E-mail").inputValue()).toBe("bob@example.com");
    expect(await account.getByLabel("Password").inputValue()).toBe("");
    expect(await page.held()).not.toContain("Correct-horse-8");
  });
});

describe("the dictionary", () => {
  onPage("takes an entry of the tenant's own over one that comes with Belfry, and gives it back", async (page) => {
    await page.logIn(tenant, "#/settings/dictionary");
    await page.getByLabel("Words of name").fill("system.cpu.utilization");
    await page.getByRole("row").filter({ hasText: "comes with Belfry" }).first().waitFor();
    await page.getByRole("grid", { name: "Dictionary" }).press("Enter");
    const entry = page.getByRole("form", { name: "Entry" });
    await entry.getByText("This entry comes with Belfry.").waitFor();
    await entry.getByLabel("Called").fill("Processors in use");
    await entry.getByLabel("Lowest value").fill("low");
    await entry.getByRole("button", { name: "Make the entry" }).click();
    await entry.getByRole("alert").filter({ hasText: "must be a number" }).waitFor();
    await entry.getByLabel("Lowest value").fill("0");
    await entry.getByRole("button", { name: "Make the entry" }).click();
    await entry.getByRole("button", { name: "Save" }).waitFor();
    const stored = (await call("/v1/dictionary/metrics:batchGet", { name: ["system.cpu.utilization"] })).metrics[0];
    expect(stored).toMatchObject({ label: "Processors in use", minimum: "0" });
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await entry.getByText("This entry comes with Belfry.").waitFor();
  });
});

describe("custom properties", () => {
  onPage("are set by an updater, which is seen before, turned off and deleted", async (page) => {
    const models = ["web-1", "web-2", "db-1"].map((source) => ({
      timestamp: Date.now(),
      dimensions: { source },
      metadataFields: { name: source },
    }));
    await call("/v1/data-receiver/models", { models });
    await page.logIn(tenant, "#/settings/properties");
    await page.getByRole("link", { name: "New updater" }).click();
    const updater = page.getByRole("form", { name: "Updater" });
    await updater.getByLabel("Name", { exact: true }).fill("web is ours");
    await updater.getByLabel("Field").fill("name");
    await updater.getByLabel("Comparison").selectOption("starts with");
    await updater.getByLabel("Value").first().fill("web");
    await updater.getByLabel("Name of the property").fill("team");
    await updater.getByLabel("Value").last().fill("storage");
    const preview = page.getByRole("region", { name: "What it would set now" });
    await preview.getByText("2 entities match now").waitFor();
    await preview.getByRole("row").filter({ hasText: "web-2" }).filter({ hasText: "none → storage" }).waitFor();
    await updater.getByRole("button", { name: "Make the updater" }).click();
    await page.getByRole("heading", { level: 1, name: "web is ours" }).waitFor();
    await preview.getByRole("link", { name: "web-1" }).waitFor();
    const clause = { filter: { field: "customProperties.team", operation: "OP_EQUALS", value: "storage" } };
    const search = { search_input: { query: { clause } } };
    await expect
      .poll(async () => (await call("/v1/modelcontext/entities:search", search)).entities.entities.length, {
        timeout: 20_000,
      })
      .toBe(2);
    await updater.getByLabel("Value").last().fill("network");
    await preview.getByText("→ network").first().waitFor();
    await updater.getByRole("button", { name: "Discard changes" }).click();
    await preview.getByText("→ network").first().waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByText('"web is ours" does not run any more.').waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Disable" }).waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("There are no updaters yet.").waitFor();
  });

  onPage("an updater that is gone is not turned off, and the page says so", async (page) => {
    const entityInput = { clause: { filter: { field: "entity.name", operation: "OP_EQUALS", value: "none" } } };
    const short = { name: "short-lived", entity_input: entityInput, properties: { team: "web" }, enabled: true };
    const { results } = await call("/v1/modelcontext/custompropertyupdaters:create", { updaters: [short] });
    const [{ id }] = results;
    await page.logIn(tenant, `#/settings/properties/${id}`);
    await page.getByRole("button", { name: "Disable" }).waitFor();
    await call("/v1/modelcontext/custompropertyupdaters:delete", { ids: [id] });
    await page.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("alert").first().waitFor();
  });

  onPage("are set once, and what is refused stands at its place", async (page) => {
    await page.logIn(tenant, "#/settings/properties?once=1");
    const form = page.getByRole("form", { name: "Properties" });
    await form.getByLabel("Field").fill("name");
    await form.getByLabel("Comparison").selectOption("matches");
    await form.getByLabel("Value").first().fill("(");
    await form.getByLabel("Name of the property").fill("tier");
    await form.getByLabel("Value").last().fill("2");
    await form.getByRole("button", { name: "Set them" }).click();
    await form.getByRole("alert").first().waitFor();
    await form.getByLabel("Value").first().fill("^db");
    await form.getByRole("button", { name: "Set them" }).click();
    const question = page.getByRole("dialog", { name: "Set properties on 1 entity?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    await form.getByRole("button", { name: "Set them" }).click();
    await question.getByRole("button", { name: "Set them" }).click();
    await page.getByText("1 entity was changed.").waitFor();
  });
});

describe("the audit log", () => {
  onPage("says who did what, and is filtered by operation", async (page) => {
    await call("/v1/user-mgmt/end-user-groups", { name: "Seen", cloudRoles: ["user"] });
    await page.logIn(tenant, "#/settings/audit");
    await page.getByLabel("Operation").fill("Create user group");
    await page.getByLabel("Operation").press("Enter");
    await page.getByRole("row").filter({ hasText: "Seen" }).click();
    const dialog = page.getByRole("dialog", { name: "Create user group" });
    await dialog.getByText("belfry.users.v1.UserGroupService/CreateUserGroup").waitFor();
    await dialog.getByText("OK").waitFor();
    // The link opens it when other entries fill the list, too.
    const link = page.hash();
    await page.goto("#/entities");
    await page.goto(link.replace("rpc=CreateUserGroup", "rpc=Nothing"));
    await page.getByText("No entry matches these filters.").waitFor();
    await dialog.getByRole("link", { name: /^user group / }).click();
    await page.getByRole("heading", { level: 1, name: "Seen" }).waitFor();
  });

  onPage("leads to what an entry is about, where it still is, and comes up to date by itself", async (page) => {
    const own = await testTenant(sql);
    const change = v1(server, own);
    await sendEvents(server, own, [{ name: "disk full", source: "web-1" }]);
    const { results } = await change("/v1/events:search", { query: {} });
    const statuses = [{ eventId: results[0].id, occurrenceId: results[0].occurrences[0].id, acknowledged: true }];
    await change("/v1/event-management/status", { statuses });
    await change("/v1/user-mgmt/end-user-groups", { name: "Kept", cloudRoles: ["user"] });
    await change("/v1/user-mgmt/end-user-groups", { name: "Gone", cloudRoles: ["user"] });
    const gone = { method: "DELETE", path: "/v1/user-mgmt/end-user-groups/Gone", headers: own.headers };
    expect((await raw(server.target, "2", gone)).status).toBe(200);
    await page.logIn(own, "#/settings/audit");
    const cell = (text: string) => page.getByRole("gridcell").filter({ hasText: text });
    await cell("user group Kept").first().waitFor();
    expect(await cell("user group Kept").getByRole("link").getAttribute("href")).toBe("#/settings/groups/Kept");
    expect(cell("user group Gone").count()).toBe(2);
    expect(cell("user group Gone").getByRole("link").count()).toBe(0);
    await change("/v1/user-mgmt/end-user-groups", { name: "Gone", cloudRoles: ["user"] });
    await cell("user group Gone").getByRole("link").first().waitFor();
    // The entry of its deletion has none.
    expect(cell("user group Gone").count() - cell("user group Gone").getByRole("link").count()).toBe(1);
    await cell(`event ${results[0].id}`).getByRole("link").click();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await page.getByRole("link", { name: "disk full" }).waitFor();
  });
});

describe("a key that may only read", () => {
  // What a manager has in each section to make or set something with.
  const offers = {
    send: ["Send data", "button", "Make a key"],
    keys: ["Keys", "link", "New client"],
    accounts: ["Accounts", "link", "New account"],
    groups: ["Groups", "link", "New group"],
    credentials: ["Credentials", "link", "New credential"],
    dictionary: ["Dictionary", "link", "New entry"],
    properties: ["Custom properties", "link", "Set once"],
  } as const;
  const walk = async (page: DomPage, each: (offer: Place) => Promise<void>) => {
    for (const [section, [heading, role, name]] of Object.entries(offers)) {
      await page.goto(`#/settings/${section}`);
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      await each(page.getByRole(role, { name }));
    }
  };

  onPage("has no buttons to change anything, where a manager has some", async (page) => {
    await page.logIn(tenant);
    await walk(page, (offer) => offer.waitFor());
    await page.getByRole("button", { name: "Log out" }).click();
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader);
    await walk(page, async (offer) => {
      await page.settled();
      expect(await offer.count()).toBe(0);
    });
    await page.getByRole("grid", { name: "Updaters" }).or(page.getByText("There are no updaters yet.")).waitFor();
    expect(await page.getByRole("link", { name: "New updater" }).count()).toBe(0);
  });
});
