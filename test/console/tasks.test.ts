import { beforeAll, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { ordinaryDay, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
beforeAll(() => ordinaryDay(server, tenant));

describe("one occurrence", () => {
  onPage("says what was sent, what came back, and why a rule kept silent", async (page) => {
    await page.logIn(tenant);
    await page.getByRole("row").filter({ hasText: "disk full" }).getByText("disk full").click();
    await page.getByRole("heading", { level: 1, name: "disk full" }).waitFor();
    const notified = page.getByRole("region", { name: "Who was notified" });
    await notified.getByText("on call").waitFor();
    await notified
      .getByText(/the name does not resolve/)
      .first()
      .waitFor();
    await notified.getByText("1 rule does not apply").click();
    const quiet = notified.getByRole("article", { name: "Rule quiet" });
    await quiet.getByText("The rule is disabled, or names no destination.").waitFor();
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page
      .getByRole("region", { name: "Life cycle" })
      .getByText(/Acknowledgement or status set by/)
      .waitFor();
    await page.getByRole("button", { name: "Unacknowledge" }).click();
    await page.getByText("acknowledged", { exact: true }).waitFor({ state: "detached" });
  });

  onPage("has no buttons for what its key may not do", async (page) => {
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader);
    await page.getByRole("row").filter({ hasText: "link down" }).getByText("link down").click();
    await page.getByRole("region", { name: "Who was notified" }).getByText("on call").waitFor();
    for (const name of ["Acknowledge", "Close", "Annotate…"]) {
      await page.getByRole("button", { name, exact: true }).waitFor({ state: "detached" });
    }
  });
});

describe("entities", () => {
  onPage("are found by words, counted by a field, and given a property", async (page) => {
    await page.logIn(tenant, "#/entities");
    await page.getByText("6 entities").waitFor();
    await page.getByLabel("Search by name").fill("web-1");
    await page.getByText("1 entity").waitFor();
    await page.getByLabel("Search by name").fill("");
    await page.getByLabel("Group by a field").fill("rack");
    await page.getByLabel("Group by a field").press("Enter");
    await page.getByRole("list", { name: "Groups by rack" }).getByRole("link", { name: "r0" }).click();
    await page.getByText("2 entities").waitFor();
    await page.getByRole("grid", { name: "Entities" }).press("Enter");
    const form = page.getByRole("form", { name: "Set a property" });
    await form.getByLabel("Name").fill("owner");
    await form.getByLabel("Value").fill("storage");
    await form.getByRole("button", { name: "Set" }).click();
    const properties = page.getByRole("region", { name: "Custom properties" });
    await properties.getByText("storage").waitFor();
    await properties.getByRole("button", { name: "Delete the property owner" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await properties.getByText("None.").waitFor();
    const undo = page.getByRole("status", { name: "Done" }).getByRole("button", { name: "Undo" });
    await undo.click();
    await properties.getByText("storage").waitFor();
    await form.getByLabel("Name").fill("owner");
    await form.getByLabel("Value").fill("network");
    await form.getByRole("button", { name: "Set" }).click();
    await properties.getByText("network").waitFor();
    await undo.click();
    await properties.getByText("storage").waitFor();
  });
});

describe("metrics", () => {
  onPage("of an entity are chosen, read by keyboard and as a table; the address keeps the choice", async (page) => {
    await page.logIn(tenant, "#/metrics");
    await page.getByRole("combobox", { name: "Entity" }).fill("web-1");
    await page.getByRole("option", { name: "web-1" }).waitFor();
    await page.getByRole("combobox", { name: "Entity" }).press("Enter");
    const plot = page.getByRole("application", { name: /CPU utilization/ });
    await plot.focus();
    await plot.press("End");
    await page.getByText(/CPU utilization: [\d.]+ %/).waitFor();
    await page.getByLabel("Aggregator").selectOption("MAX");
    await page.getByRole("checkbox", { name: /latency/ }).uncheck();
    await page.getByText("2 of 3 series are drawn").waitFor();
    await page.reload();
    await page.getByText("2 of 3 series are drawn").waitFor();
    await page.getByRole("button", { name: "Values as tables" }).click();
    await page
      .getByRole("grid", { name: /Values of CPU utilization/ })
      .getByText(/%$/)
      .first()
      .waitFor();
  });

  onPage("of all entities that meet conditions are on one plot, by entity and labels", async (page) => {
    const metrics = ["0", "1"].flatMap((core) =>
      [0, 1, 2].map((ago) => ({
        metric: "system.cpu.utilization",
        value: 0.5,
        labels: { core },
        dimensions: { source: "web-2" },
        timestamp: Date.now() - ago * 60_000,
      })),
    );
    await v1(server, tenant)("/v1/data-receiver/metrics", { metrics });
    await page.logIn(tenant, "#/metrics");
    await page.getByRole("button", { name: "Conditions" }).click();
    const conditions = page.getByRole("form", { name: "Conditions" });
    await conditions.getByLabel("Field").fill("name");
    await conditions.getByLabel("Comparison").selectOption("regex");
    await conditions.getByLabel("Value", { exact: true }).fill("web-(");
    await conditions.getByRole("button", { name: "Apply" }).click();
    await conditions.getByRole("alert").waitFor();
    await conditions.getByLabel("Comparison").selectOption("starts");
    await conditions.getByLabel("Value", { exact: true }).fill("web-");
    await conditions.getByRole("button", { name: "Apply" }).click();
    await page.getByText("5 of 5 series are drawn").waitFor();
    await page.getByLabel("Metric", { exact: true }).fill("system.cpu.utilization");
    await page.getByLabel("Metric", { exact: true }).press("Enter");
    await page.getByText("3 of 3 series are drawn").waitFor();
    await page.getByRole("checkbox", { name: "web-2 · CPU utilization {core=0}" }).uncheck();
    await page.reload();
    await page.getByText("2 of 3 series are drawn").waitFor();
    await page.getByRole("link", { name: "2 entities" }).waitFor();
    const plot = page.getByRole("application", { name: "2 series in %" });
    const read = () =>
      [/^web-1 · CPU utilization: /, /^web-2 · CPU utilization \{core=1\}: /].map((text) =>
        page.getByText(text).isVisible(),
      );
    await eventually(async () => {
      await plot.press("End");
      return read();
    }).toEqual([true, true]);
    await page.getByRole("button", { name: "Values as tables" }).click();
    const values = page.getByRole("grid", { name: "Values of 2 series in %" });
    await values.getByRole("columnheader", { name: "web-2 · CPU utilization {core=1}" }).waitFor();
  });

  onPage("of more entities than are read: the page says so, and equal names have their dimensions", async (page) => {
    const many = await testTenant(sql);
    const sources = Array.from({ length: 120 }, (_, at) => ({
      timestamp: Date.now(),
      dimensions: { source: `s${at}` },
    }));
    const call = v1(server, many);
    const models = sources.map((each) => ({ ...each, metadataFields: { name: "eth0", source_type: "interface" } }));
    await call("/v1/data-receiver/models", { models });
    const metrics = sources.map((each) => ({ ...each, metric: "queue.length", value: 1 }));
    await call("/v1/data-receiver/metrics", { metrics });
    await page.logIn(many, "#/metrics?metric=queue.length");
    await page.getByText("of 120 entities, of which the first 100 were read").waitFor();
    await page.getByText("24 of 100 or more series are drawn").waitFor();
    expect(await page.getByRole("checkbox", { name: /^eth0 \(source=s\d+\) · queue.length$/ }).count()).toBe(100);
  });
});

describe("deliveries", () => {
  onPage("are filtered by state and rule; one says how its rule decided", async (page) => {
    await sendEvents(server, tenant, [{ name: "another", source: "db-1", severity: Severity.CRITICAL }]);
    await page.logIn(tenant, "#/deliveries");
    await page.getByText("3 in all").waitFor();
    await page.getByLabel("State").selectOption({ label: "Sent" });
    await page.getByText("No delivery matches these filters.").waitFor();
    await page.getByLabel("State").selectOption("");
    await page.getByLabel("Rule", { exact: true }).fill("page on critical");
    await page.getByLabel("Rule", { exact: true }).press("Enter");
    await page.getByText("3 in all").waitFor();
    await page.getByLabel("Rule", { exact: true }).fill("");
    await page.getByLabel("Time range").selectOption("15m");
    await page.getByText("3 in all").waitFor();
    await page.getByRole("grid", { name: "Deliveries" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Delivery" });
    await dialog.getByText("the rule is enabled").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });
});
