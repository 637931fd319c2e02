import { describe, expect, test } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 as gets } from "../support/v1.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { onPage } = domPage(server);

/** A tenant with a rule that groups what is of the team `it` by these labels, or what a metric's trigger matches. */
async function groupingBy(by: readonly string[], more: object = { matchers: ["team=it"] }): Promise<TestTenant> {
  const tenant = await testTenant(server.database.sql);
  const call = v1(server, tenant);
  const webhook = { url: "https://hooks.example.invalid/" };
  await call("/v1/notification/destinations", { name: "d", type: { webhook } });
  await call("/v1/notification/triggers", { name: "load", type: { metricThreshold: { metricName: "load", max: 1 } } });
  const grouping = { by, waitSec: 0, intervalSec: 1 };
  await call("/v1/notification/rules", { name: "r", enabled: true, destinationNames: ["d"], grouping, ...more });
  return tenant;
}

const disk = (source: string, labels: Record<string, string>, more: object = {}) => ({
  name: "disk",
  source,
  severity: Severity.ERROR,
  summary: "is full",
  metadataFields: { team: "it", ...labels },
  ...more,
});

interface Stored {
  readonly id: string;
  readonly groupKey: string;
  readonly groupLabels: Readonly<Record<string, string>>;
  readonly memberCount: number;
}

/** Waits for a message of a group that has these labels and so many members. */
async function messageOf(tenant: TestTenant, labels: object, memberCount: number): Promise<Stored> {
  let found: Stored | undefined;
  await eventually(async () => {
    const { body } = await gets(server.url, tenant.headers)("GET", "/v1/notification/deliveries");
    found = (body.deliveries as Stored[]).find(
      (each) => each.memberCount === memberCount && JSON.stringify(each.groupLabels) === JSON.stringify(labels),
    );
    return found !== undefined;
  }).toBe(true);
  return found as Stored;
}

const linkOf = ({ groupKey }: Stored) => `#/events?groupKey=${encodeURIComponent(groupKey)}`;

describe("the link of a group's message", () => {
  onPage("leads to the list of what has the group's labels, open or ended, and back skips it", async (page) => {
    const tenant = await groupingBy(["rack", "my label"]);
    await sendEvents(server, tenant, [
      disk("db-1", { rack: "r,1", "my label": "x" }),
      disk("db-2", { rack: "r,1", "my label": "x" }),
      disk("db-3", { rack: "r,1", "my label": "y" }),
    ]);
    const message = await messageOf(tenant, { "my label": "x", rack: "r,1" }, 2);
    await sendEvents(server, tenant, [disk("db-2", { rack: "r,1", "my label": "x" }, { status: Status.CLOSED })]);
    await page.logIn(tenant, "#/silences");
    await page.goto(linkOf(message));
    await page.getByText("2 occurrences").waitFor();
    await page.getByRole("button", { name: "Remove rack: r,1" }).waitFor();
    const rows = page.getByRole("row");
    await rows.filter({ hasText: "db-1" }).waitFor();
    await rows.filter({ hasText: "db-2" }).filter({ hasText: "Closed" }).waitFor();
    expect(page.hash()).not.toContain("groupKey");
    page.goBack();
    await page.waitForHash(/^#\/silences/);
  });

  onPage("leaves out what has a label that the group has not", async (page) => {
    const tenant = await groupingBy(["alertname", "rack"]);
    await sendEvents(server, tenant, [disk("db-1", {}), disk("db-2", {}), disk("db-3", { rack: "r1" })]);
    await page.logIn(tenant, linkOf(await messageOf(tenant, { alertname: "disk" }, 2)));
    await page.getByText("2 occurrences").waitFor();
    await page.getByRole("button", { name: "Remove rack: none" }).click();
    await page.getByText("3 occurrences").waitFor();
  });

  onPage("lists the members of a group without labels", async (page) => {
    const tenant = await groupingBy([]);
    await sendEvents(server, tenant, [disk("db-1", {}), disk("db-2", {}), { ...disk("db-3", {}), metadataFields: {} }]);
    await page.logIn(tenant, linkOf(await messageOf(tenant, {}, 2)));
    await page.getByText("2 occurrences").waitFor();
    expect(await page.getByRole("row").filter({ hasText: "db-3" }).count()).toBe(0);
  });

  onPage("leads to the message of a group of series, which names them", async (page) => {
    const tenant = await groupingBy(["cluster"], { triggerNames: ["load"] });
    const metrics = ["web-1", "web-2"].map((host) => ({
      metric: "load",
      timestamp: Date.now(),
      dimensions: { host, cluster: "c1" },
      value: 5,
    }));
    await v1(server, tenant)("/v1/data-receiver/metrics", { metrics });
    await page.logIn(tenant, linkOf(await messageOf(tenant, { cluster: "c1" }, 2)));
    const dialog = page.getByRole("dialog", { name: "Delivery" });
    await dialog.getByRole("link", { name: /^load is 5 on .*web-1/ }).waitFor();
    await page.getByRole("button", { name: "Of one group ×" }).waitFor();
  });

  onPage("says so where nothing of the group is stored", async (page) => {
    await page.logIn(await groupingBy([]), "#/events?groupKey=bm9uZQ");
    await page.getByText("No message of this group is stored any more.").waitFor();
    await page.getByRole("link", { name: "events", exact: true }).click();
    await page.waitForHash(/^#\/events\?status=any$/);
  });

  onPage("as 0.3.0 sent it opens the message, whose members are named and lead on", async (page) => {
    const tenant = await groupingBy(["team"]);
    await sendEvents(server, tenant, [disk("db-1", {}), disk("db-2", {})]);
    const { id } = await messageOf(tenant, { team: "it" }, 2);
    await page.logIn(tenant, `#/deliveries?open=${id}`);
    const dialog = page.getByRole("dialog", { name: "Delivery" });
    await dialog.getByText("2 firing, 0 resolved: team=it").waitFor();
    await dialog.getByRole("link", { name: "is full on db-1" }).waitFor();
    expect(dialog.allTextContents().join()).not.toContain("trigger");
    await dialog.getByRole("link", { name: "The group in Events" }).click();
    await page.getByText("2 occurrences").waitFor();
  });
});

interface Modules {
  labelClause(label: string, value: string): object;
  matchersOf(clause: object): string[];
}

test("a group's silence says which labels its members have not", async () => {
  // By paths that are no literals: their types are of a browser.
  const of = async (path: string) =>
    (await import(new URL(`../../console/events/${path}`, import.meta.url).pathname)) as Modules;
  const [{ matchersOf }, { labelClause }] = await Promise.all([of("clause-matchers.ts"), of("terms.ts")]);
  const clauses = [labelClause("rack", ""), labelClause("rack", "r1")];
  expect(clauses.flatMap((clause) => matchersOf(clause))).toEqual(['rack=""', 'rack="r1"']);
});
