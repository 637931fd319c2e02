import { beforeAll, describe, expect } from "vitest";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);

beforeAll(async () => {
  const url = "https://pager.example.com/hook";
  await call("/v1/notification/destinations", { name: "pager", type: { webhook: { url } } });
});

const storedRules = () =>
  sql`select name, enabled, send_updates, message from rules where tenant_id = ${tenant.id} order by name`;
const storedTriggers = async () =>
  (await sql`select name, type from triggers where tenant_id = ${tenant.id} order by name`).map(({ name, type }) => ({
    name,
    ...JSON.parse(JSON.stringify(type)),
  }));

describe("a dead man's switch", () => {
  onPage("is a rule and its trigger, made in one form with what is usual, and taken back together", async (page) => {
    await page.logIn(tenant, "#/rules");
    await page.getByRole("link", { name: "Dead man's switch" }).click();
    const form = page.getByRole("form", { name: "Dead man's switch" });
    await page.getByText("No event Watchdog has come yet.").waitFor();
    await page.getByText("expr: vector(1)").waitFor();
    await form.getByLabel("Destinations", { exact: true }).fill("pager");
    await form.getByLabel("Destinations", { exact: true }).press("Enter");
    await form.getByText("Notify pager when Watchdog stays away for 5 min, and when it comes again.").waitFor();
    await form.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("heading", { level: 1, name: "No Watchdog" }).waitFor();
    expect(await storedRules()).toMatchObject([{ name: "No Watchdog", enabled: true, send_updates: true }]);
    const [trigger] = await storedTriggers();
    expect(trigger).toMatchObject({ name: "No Watchdog" });
    expect(JSON.stringify(trigger)).toMatch(/Watchdog.*prometheus/);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    expect([await storedRules(), await storedTriggers()]).toEqual([[], []]);
  });

  onPage("says at its fields what is wrong, leaves nothing half made, and keeps what was typed", async (page) => {
    await page.logIn(tenant, "#/rules/dead-mans-switch");
    const form = page.getByRole("form", { name: "Dead man's switch" });
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "at least one destination is needed" }).waitFor();
    await form.getByLabel("Destinations", { exact: true }).fill("pager");
    await form.getByLabel("Destinations", { exact: true }).press("Enter");
    await form.getByLabel("Alert that always fires").fill("");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "metricName, eventName or both" }).waitFor();
    await form.getByLabel("Alert that always fires").fill("Back-up done");
    await form.getByLabel("Stays away for", { exact: true }).fill("600");
    await form.getByLabel("Unit of: Stays away for").selectOption("days");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "34560000" }).waitFor();
    await page.reload();
    expect(await form.getByLabel("Alert that always fires").inputValue()).toBe("Back-up done");
    await form.getByRole("list", { name: "Destinations chosen" }).getByText("pager").waitFor();
    await form.getByLabel("Stays away for", { exact: true }).fill("2");
    await call("/v1/notification/rules", { name: "taken", matchers: ["severity=critical"] });
    await form.getByLabel("Name", { exact: true }).fill("taken");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await form.getByRole("alert").filter({ hasText: "taken" }).waitFor();
    expect(await storedTriggers()).toEqual([]);
    await form.getByRole("button", { name: "Discard changes" }).click();
    expect(await form.getByLabel("Alert that always fires").inputValue()).toBe("Watchdog");
  });

  onPage("watches the entities from which the event came, where these are others", async (page) => {
    await sendEvents(server, tenant, [
      { name: "Watchdog", source: "cluster-a" },
      { name: "Watchdog", source: "cluster-b" },
    ]);
    await page.logIn(tenant, "#/rules/dead-mans-switch");
    const seen = page.getByRole("region", { name: "Has it come?" });
    await seen.getByText("Watchdog has come of 2 entities:").waitFor();
    await seen.getByText("Not all of them are watched.").waitFor();
    await seen.getByRole("button", { name: "Watch each of them" }).click();
    await seen.getByText("Each of them is watched by itself.").waitFor();
    const form = page.getByRole("form", { name: "Dead man's switch" });
    await form.getByLabel("Destinations", { exact: true }).fill("pager");
    await form.getByLabel("Destinations", { exact: true }).press("Enter");
    await form.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("heading", { level: 1, name: "No Watchdog" }).waitFor();
    await eventually(async () => JSON.stringify(await storedTriggers())).toMatch(/"in":/);
  });

  onPage("is only shown to a reader", async (page) => {
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/rules/dead-mans-switch");
    await page.getByLabel("Alert that always fires").waitFor();
    expect(await page.getByRole("button", { name: "Create the rule" }).count()).toBe(0);
  });
});
