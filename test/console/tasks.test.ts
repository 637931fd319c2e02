import { beforeAll, describe, expect } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
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
    const lifeCycle = page.getByRole("region", { name: "Life cycle" });
    await lifeCycle.getByText(/^Acknowledged by/).waitFor();
    await page.getByRole("button", { name: "Unacknowledge" }).click();
    await page.getByText("acknowledged", { exact: true }).waitFor({ state: "detached" });
    // Two changes that leave no trace in the occurrence are not guessed at.
    await lifeCycle
      .getByText(/Acknowledgement or status set by/)
      .first()
      .waitFor();
  });

  onPage("says who closed it, in one step with its end, and who acknowledged it with all that match", async (page) => {
    await page.logIn(tenant);
    await sendEvents(server, tenant, [{ name: "closed by hand", source: "db-2", severity: Severity.WARNING }]);
    await page.getByRole("row").filter({ hasText: "closed by hand" }).getByText("closed by hand").click();
    await page.getByRole("heading", { level: 1, name: "closed by hand" }).waitFor();
    const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "closed by hand" } };
    await v1(server, tenant)("/v1/event-management/status:matching", { query: { clause }, acknowledged: true });
    const lifeCycle = page.getByRole("region", { name: "Life cycle" });
    await lifeCycle.getByText(/^Acknowledged by/).waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    await lifeCycle.getByText(/^Closed after .* by (?!hand$)/).waitFor();
    await lifeCycle.getByText(/^Acknowledged by/).waitFor();
    expect(lifeCycle.getByText(/Acknowledgement or status set/).count()).toBe(0);
  });

  onPage("says what closed it where no person did", async (page) => {
    await page.logIn(tenant);
    const over = { name: "soon over", source: "db-2" };
    await sendEvents(server, tenant, [over]);
    await page.getByRole("row").filter({ hasText: "soon over" }).getByText("soon over").click();
    await page.getByRole("heading", { level: 1, name: "soon over" }).waitFor();
    await sendEvents(server, tenant, [{ ...over, status: Status.CLOSED }]);
    const lifeCycle = page.getByRole("region", { name: "Life cycle" });
    await lifeCycle.getByText(/^Closed after .* by a report$/).waitFor();
  });

  onPage("keeps who changed it in sight until it is known who did so last", async (page) => {
    await page.logIn(tenant);
    await sendEvents(server, tenant, [{ name: "taken on", source: "db-2", severity: Severity.WARNING }]);
    await page.getByRole("row").filter({ hasText: "taken on" }).getByText("taken on").click();
    await page.getByRole("heading", { level: 1, name: "taken on" }).waitFor();
    await page.settled();
    await page.getByRole("button", { name: "Acknowledge" }).click();
    const lifeCycle = page.getByRole("region", { name: "Life cycle" });
    await lifeCycle.getByText(/^Acknowledged by/).waitFor();
    await page.settled();
    const held = page.hold("ListAuditEntries");
    await page.getByRole("button", { name: "Unacknowledge" }).click();
    await page.getByText("acknowledged", { exact: true }).waitFor({ state: "detached" });
    const { release } = await held;
    expect(lifeCycle.getByText(/^Acknowledged by/).count()).toBe(1);
    expect(lifeCycle.getByText(/Acknowledgement or status set/).count()).toBe(0);
    release();
    await eventually(() => lifeCycle.getByText(/^Acknowledgement or status set by/).count()).toBe(2);
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
