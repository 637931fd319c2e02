import { randomUUID } from "node:crypto";
import { describe, expect } from "vitest";
import { type DomPage, domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

const rowOf = (page: DomPage, name: string) => page.getByRole("row").filter({ hasText: name });

describe("logging in", () => {
  onPage("a wrong key is refused in the server's words, and a right one shows tenant and key", async (page) => {
    const tenant = await testTenant(sql);
    await page.getByLabel("API key").fill("bf_wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page
      .getByRole("alert")
      .getByText(/mistyped/)
      .waitFor();
    await page.logIn(tenant);
    await page.getByText(tenant.name).waitFor();
    expect(page.held()).not.toContain(tenant.headers["service-api-key"]);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    expect(page.held()).not.toContain("session-proof");
    await page.reload();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
  });

  for (const [type, said] of [
    ["DATA_INGEST", /^This key can only send data/],
    ["USER_MANAGEMENT", /^This key can only manage accounts and groups/],
  ] as const)
    onPage(`a ${type} key, which reads nothing here, is told what it can do, and holds no session`, async (page) => {
      const tenant = await testTenant(sql);
      const { "service-api-key": key = "" } = await keyHeaders(sql, tenant.id, type, null);
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("alert").getByText(said).waitFor();
      expect(page.held()).not.toContain("session-proof");
      await page.reload();
      await page.getByRole("heading", { name: "Log in" }).waitFor();
    });

  onPage("a key that reads alone sees no section that it may not read; its address says so plainly", async (page) => {
    const tenant = await testTenant(sql);
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/settings/dictionary");
    const sections = page.getByRole("navigation", { name: "Sections" });
    await sections.getByText("Dictionary").waitFor();
    expect(sections.getByText(/^(?:Keys|Accounts|Groups|Credentials|Audit log)$/).count()).toBe(0);
    await page.goto("#/settings/keys");
    await page.getByRole("alert").getByText("Your key does not allow this.").waitFor();
  });

  onPage("a link with a token that is worth nothing says so, and leaves the address", async (page) => {
    await page.goto(`#first=bl_${randomUUID()}`);
    await page.getByRole("alert").waitFor();
    expect(page.hash()).not.toContain("first=");
  });

  onPage("a key that is revoked ends it, and the address stays for who logs in again", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant, "#/events?severity=5");
    await page.getByText("No occurrence matches").waitFor();
    await sql`delete from api_keys where tenant_id = ${tenant.id}`;
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    await page.getByText(/session has ended/).waitFor();
    expect(page.hash()).toContain("severity=5");
  });
});

describe("a browser that holds the cookie and not the proof", () => {
  onPage("is asked for the key, and goes on with it", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant);
    await page.getByText("Nothing is open.").waitFor();
    page.forget("belfry.session-proof");
    await page.reload();
    await page.getByRole("heading", { name: "Log in" }).waitFor();
    expect(page.getByRole("alert").count()).toBe(0);
    await page.logIn(tenant);
    await page.getByText("Nothing is open.").waitFor();
  });
});

describe("two tenants", () => {
  onPage("see their own events alone", async (page) => {
    const [mine, theirs] = [await testTenant(sql), await testTenant(sql)];
    await sendEvents(server, theirs, [{ name: "theirs", source: "a" }]);
    await page.logIn(mine);
    await page.getByText("Nothing is open.").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, theirs, [{ name: "theirs too", source: "a" }]);
    await sendEvents(server, mine, [{ name: "mine", source: "a" }]);
    await rowOf(page, "mine").waitFor();
    expect(rowOf(page, "theirs").count()).toBe(0);
  });
});
