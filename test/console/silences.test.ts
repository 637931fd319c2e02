import { describe, expect } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { raw } from "../support/clients.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);

describe("silences", async () => {
  const names = Array.from({ length: 25 }, (_, i) => `fan ${i}`);
  await sendEvents(server, tenant, [
    { name: "disk full", source: "db-2", severity: Severity.CRITICAL },
    ...names.map((name) => ({ name, source: "web-1", severity: Severity.ERROR })),
  ]);
  const { results } = await call("/v1/events:search", { query: {} });
  const occurrence = results.find(({ name }: { name: string }) => name === "disk full").occurrences[0].id as string;
  const matches = async () => (await call("/v1/notification/silences:preview", { matchers: ["source=db-2"] })).count;

  onPage("one is made from an occurrence, whose page shows it, and is ended", async (page) => {
    await page.logIn(tenant, `#/occurrences/${occurrence}`);
    await page.getByText("Nothing silences it.").waitFor();
    await page.getByRole("link", { name: "Silence…" }).click();
    await page.getByText("It matches 1 open occurrence").waitFor();
    await page.getByLabel("Comment").fill("new <b>disks</b>");
    await page.getByRole("button", { name: "Silence" }).click();
    await page.getByRole("link", { name: "new <b>disks</b>" }).click();
    await page.getByRole("button", { name: "End now…", exact: true }).click();
    await page.getByRole("button", { name: "End now", exact: true }).click();
    await page.getByText("The silence has ended").waitFor();
    await page.getByLabel("State").selectOption("expired");
    await page.getByRole("article", { name: "new <b>disks</b>" }).waitFor();
    expect(await matches()).toBe("1");
  });

  onPage("one that matches many asks first", async (page) => {
    await page.logIn(tenant, "#/silences/new");
    await page.getByLabel("Matchers").fill("source=~.+\nalertname=(");
    await page.getByLabel("Matchers").fill("source=~web.+");
    await page.getByText("It matches 25 open occurrences").waitFor();
    await page.getByLabel("Comment").fill("move");
    await page.getByRole("button", { name: "Silence" }).click();
    await page.getByText("Silence 25 open occurrences?").waitFor();
    await page.getByRole("button", { name: "Silence them" }).click();
    await page.getByRole("article", { name: "move" }).waitFor();
  });

  onPage("matchers are completed, name and value, from what is open and the other lines match", async (page) => {
    await page.logIn(tenant, "#/silences/new");
    const matchers = page.getByLabel("Matchers");
    await matchers.fill("source=db-2\nsev");
    await page.getByRole("button", { name: "severity", exact: true }).click();
    await page.getByRole("button", { name: "critical", exact: true }).click();
    expect(await matchers.inputValue()).toBe('source=db-2\nseverity="critical"');
    await matchers.fill("source=web-1\nalertname=fan");
    // 20 of the 25 values are offered.
    await page
      .getByRole("button", { name: /^fan \d+$/ })
      .first()
      .click();
    expect(await matchers.inputValue()).toMatch(/^source=web-1\nalertname="fan \d+"$/);
    await page.goto("#/rules/rules?new=1");
    await page.getByLabel("Label 1").focus();
    await eventually(() => page.locator('datalist option[value="source"]').count()).toBeGreaterThan(0);
  });

  onPage("a trigger and a rule are made of matchers, whose mistakes stand at their field", async (page) => {
    await page.logIn(tenant, "#/rules/triggers?new=1");
    await page.getByLabel("Name", { exact: true }).fill("by labels");
    await page.getByLabel("Or, instead of conditions, when its labels match").fill("source=~web.+");
    await page.getByText("25 events of this time").waitFor();
    await page.getByRole("button", { name: "Create the trigger" }).click();
    await page.getByRole("heading", { level: 1, name: "by labels" }).waitFor();
    await page.goto("#/rules/rules?new=1");
    await page.getByLabel("Name", { exact: true }).fill("by labels");
    await page.getByLabel("Label 1").fill("source");
    await page.getByLabel("Comparison 1").selectOption("=~ matches");
    await page.getByLabel("Value 1").fill("(");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByText("missing closing )").waitFor();
    await page.getByLabel("Value 1").fill("db-2");
    await page.getByRole("button", { name: "Create the rule" }).click();
    await page.getByRole("heading", { level: 1, name: "by labels" }).waitFor();
  });

  describe("of several rows", () => {
    const chosen = (page: DomPage, name: string) =>
      page.getByRole("row").filter({ hasText: name }).getByRole("gridcell").first().click();

    onPage("match the labels that all of them have, by the values that these have", async (page) => {
      const own = await testTenant(server.database.sql);
      const event = (name: string, source: string, metadataFields: Record<string, string>) => ({
        name,
        source,
        severity: Severity.ERROR,
        metadataFields,
      });
      await sendEvents(server, own, [
        event("disk full", "db.1", { team: "storage", rack: "r1", text: "a".repeat(1500) }),
        event("disk slow", "db-2", { team: "storage", text: "b".repeat(1500) }),
        event("disk late", "db-1", { team: "network", rack: "r1", text: "c" }),
        event("disk gone", "db-2", { team: "storage", text: "b" }),
      ]);
      await page.logIn(own);
      await page.getByText("4 occurrences").waitFor();
      await chosen(page, "disk full");
      await chosen(page, "disk slow");
      await page.getByText("2 selected").waitFor();
      await page.getByRole("button", { name: "Silence…" }).click();
      await page.getByText("It matches 2 open occurrences").waitFor();
      expect((await page.getByLabel("Matchers").inputValue()).split("\n")).toEqual([
        'alertname=~"disk full|disk slow"',
        'severity="error"',
        'team="storage"',
        'source=~"db-2|db\\\\.1"',
      ]);
      await page.getByRole("link", { name: "Cancel" }).click();
      await page.getByText("2 selected").waitFor();
    });

    onPage("match nothing of earlier occurrences of the same events", async (page) => {
      const own = await testTenant(server.database.sql);
      const sent = (name: string, severity: Severity, status: Status, summary: string) =>
        sendEvents(server, own, [{ name, source: "db-1", severity, status, summary }]);
      for (const status of [Status.OPEN, Status.CLOSED]) await sent("disk full", Severity.CRITICAL, status, "earlier");
      for (const status of [Status.OPEN, Status.CLOSED]) await sent("disk full", Severity.ERROR, status, "later");
      for (const status of [Status.OPEN, Status.CLOSED]) await sent("disk slow", Severity.ERROR, status, "late");
      await page.logIn(own, `#/events?status=${Status.CLOSED}`);
      await page.getByText("3 occurrences").waitFor();
      await chosen(page, "later");
      await chosen(page, "disk slow");
      await page.getByText("2 selected").waitFor();
      await page.getByRole("button", { name: "Silence…" }).click();
      await eventually(() => page.hash()).toMatch(/^#\/silences\/new/);
      expect((await page.getByLabel("Matchers").inputValue()).split("\n")).toContain('severity="error"');
    });

    onPage("count those rows alone where their events began together before and after", async (page) => {
      const own = await testTenant(server.database.sql);
      const now = Date.now();
      for (const [ago, severity, status] of [
        [4000, Severity.ERROR, Status.OPEN],
        [3000, Severity.ERROR, Status.CLOSED],
        [2000, Severity.WARNING, Status.OPEN],
        [1000, Severity.WARNING, Status.CLOSED],
      ] as const) {
        const sent = { severity, status, timestamp: BigInt(now - ago) };
        await sendEvents(server, own, [
          { name: "disk full", source: "db-1", ...sent },
          { name: "disk slow", source: "db-2", ...sent },
        ]);
      }
      await page.logIn(own, `#/events?status=${Status.CLOSED}`);
      await page.getByText("4 occurrences").waitFor();
      const one = async (name: string, severity: string) =>
        page
          .getByRole("row")
          .filter({ hasText: name })
          .filter({ hasText: severity })
          .getByRole("gridcell")
          .first()
          .click();
      await one("disk full", "Error");
      await one("disk slow", "Warning");
      await page.getByText("2 selected").waitFor();
      await page.getByRole("button", { name: "Silence…" }).click();
      await eventually(() => page.hash()).toMatch(/^#\/silences\/new/);
      expect((await page.getByLabel("Matchers").inputValue()).split("\n")[0]).toBe('alertname=~"disk full|disk slow"');
    });
  });

  onPage("of an entity whose alerts came without its dimensions begins with no matcher, and says so", async (page) => {
    const own = await testTenant(server.database.sql);
    const headers = { ...own.headers, "content-type": "application/json" };
    const alerts = Buffer.from(JSON.stringify([{ labels: { alertname: "Lag", namespace: "shop" } }]));
    const { status } = await raw(server.target, "2", { path: "/api/v2/alerts", headers, body: [alerts] });
    expect(status).toBe(200);
    const { results } = await v1(server, own)("/v1/events:search", { query: { fields: [{ field: "entity" }] } });
    await page.logIn(own, `#/silences/new?entity=${encodeURIComponent(results[0].entity)}`);
    await page.getByText("came without its dimensions as labels").waitFor();
    expect(await page.getByLabel("Matchers").inputValue()).toBe("");
  });
});
