import { describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

describe("addresses that an occurrence names", () => {
  const graph = "https://prometheus.example.com/graph?g0.expr=up&g0.tab=1";

  onPage("are links out, the runbook and the graph are buttons, and no script is one", async (page) => {
    const tenant = await testTenant(sql);
    const metadataFields = {
      runbook_url: "https://runbooks.example.com/disk",
      generatorURL: graph,
      dashboard_url: "javascript:alert(1)",
      "annotation.description": "Free space runs out, see https://docs.example.com/space.",
    };
    const summary = "see (https://wiki.example.com/disk), <b>not</b> data:text/html,x";
    await sendEvents(server, tenant, [
      { name: "disk", source: "a", severity: Severity.ERROR, summary, metadataFields },
    ]);
    const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
    const [{ id: eventId, occurrences }] = results;
    const annotation = "as in https://tickets.example.com/7";
    const annotations = [{ eventId, occurrenceId: occurrences[0].id, annotation }];
    await v1(server, tenant)("/v1/event-management/annotate", { annotations });
    await page.logIn(tenant, `#/occurrences/${occurrences[0].id}`);
    const linkOut = async (name: string | RegExp) => {
      const link = page.getByRole("link", { name }).first();
      expect(await link.getAttribute("rel")).toBe("noreferrer noopener");
      return await link.getAttribute("href");
    };
    await page.getByRole("link", { name: /^Runbook/ }).waitFor();
    expect(await linkOut(/^Runbook/)).toBe(metadataFields.runbook_url);
    expect(await linkOut(/^Graph/)).toBe(graph);
    expect(await linkOut(/^https:\/\/prometheus.example.com/)).toBe(graph);
    expect(await linkOut(/wiki/)).toBe("https://wiki.example.com/disk");
    expect(await linkOut(/docs/)).toBe("https://docs.example.com/space");
    expect(await linkOut(/tickets/)).toBe("https://tickets.example.com/7");
    // The button says where it leads.
    await page.getByRole("link", { name: /^Runbook: runbooks\.example\.com/ }).waitFor();
    await page.getByRole("link", { name: /^Graph: prometheus\.example\.com/ }).waitFor();
    const description = page.getByRole("definition").filter({ hasText: "Free space" });
    const narrowing = description.getByRole("link", { name: /^Events with annotation/ });
    expect(await narrowing.count()).toBe(1);
    expect(await description.locator('a[href^="#/events"]').count()).toBe(2);
    expect(await page.getByRole("link", { name: /^Dashboard/ }).count()).toBe(0);
    expect(await page.locator('a[href^="javascript:"], a[href^="data:"]').count()).toBe(0);
  });

  onPage("narrow the list by + and − beside each label", async (page) => {
    const tenant = await testTenant(sql);
    const of = (team: string) => ({ name: `disk of ${team}`, source: team, metadataFields: { team } });
    await sendEvents(server, tenant, [of("a"), of("b"), of("c")]);
    const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
    const one = results.find(({ name }: { name: string }) => name === "disk of a");
    const here = `#/occurrences/${one.occurrences[0].id}`;
    await page.logIn(tenant, here);
    await page.getByRole("link", { name: "Events without team=a" }).click();
    await page.getByText("2 occurrences").waitFor();
    await page.goto(here);
    await page.getByRole("link", { name: "Events with team=a" }).click();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
  });
});

describe("an occurrence", () => {
  onPage("says in its head how bad it is, its state, age, entity and owner; keys are folded", async (page) => {
    const tenant = await testTenant(sql);
    const summary = "97 % of /var is used";
    const metadataFields = {
      team: "storage",
      "annotation.summary": summary,
      "annotation.impact": "writes will fail",
    };
    const timestamp = BigInt(Date.now() - 3 * 3_600_000);
    await sendEvents(server, tenant, [
      { name: "disk", source: "a", severity: Severity.ERROR, summary, metadataFields, timestamp, dedupKey: "var-1" },
      { name: "disk", source: "b", metadataFields: { team: "network" } },
    ]);
    const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
    const one = results.find(({ dedupKey }: { dedupKey?: string }) => dedupKey === "var-1");
    const here = `#/occurrences/${one.occurrences[0].id}`;
    await page.logIn(tenant, here);
    const head = page.getByRole("list", { name: "At a glance" });
    await head.waitFor();
    expect(await head.getByRole("listitem").allTextContents()).toEqual([
      expect.stringMatching(/Error$/),
      "Open",
      "Age 3h",
      "Entity a",
      "Owner storage",
    ]);
    expect(await head.getByRole("link", { name: "a", exact: true }).getAttribute("href")).toBe(
      `#/entities/${encodeURIComponent(one.entity)}`,
    );
    const labels = page.getByRole("region", { name: "Labels" });
    expect(await labels.getByText(summary).count()).toBe(0);
    await labels.getByText("writes will fail").waitFor();
    expect(await labels.locator("details:not([open])").filter({ hasText: "Dedup key" }).allTextContents()).toEqual([
      "Dedup keyvar-1",
    ]);
    await head.getByRole("link", { name: "storage" }).click();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
  });

  onPage("has labels that filter events when pressed, and leave out what has them with Alt", async (page) => {
    const tenant = await testTenant(sql);
    const of = (team: string) => ({ name: `disk of ${team}`, source: team, metadataFields: { team } });
    await sendEvents(server, tenant, [of("a"), of("b"), of("c")]);
    const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
    await page.logIn(tenant, `#/occurrences/${results[0].occurrences[0].id}`);
    await page.getByRole("link", { name: /^Events with team=/ }).click({ modifiers: ["Alt"] });
    await page.getByText("2 occurrences").waitFor();
  });
});

describe("metrics around the start of an occurrence", () => {
  onPage("are those that share its words, the one of the trigger that made it first", async (page) => {
    const tenant = await testTenant(sql);
    const call = v1(server, tenant);
    const names = [
      "a_b",
      "a_c",
      "a_d",
      "a_e",
      "a_f",
      "a_g",
      "node_disk_reads",
      "node_filesystem_free",
      "z_temperature",
    ];
    const metrics = names.map((metric) => ({ metric, timestamp: Date.now(), dimensions: { source: "a" }, value: 1 }));
    await call("/v1/data-receiver/metrics", { metrics });
    const metricThreshold = { metricName: "z_temperature", max: 90 };
    await call("/v1/notification/triggers", { name: "hot", type: { metricThreshold } });
    const made = { rule: "tell", trigger: "hot", cause: "z_temperature" };
    await sendEvents(server, tenant, [
      { name: "disk full", source: "a" },
      { name: "disk hot", source: "a", metadataFields: made },
    ]);
    const { results } = await call("/v1/events:search", { query: {} });
    const around = page.getByRole("region", { name: "Metrics of the entity around its start" });
    const shown = async (name: string) => {
      const { occurrences } = results.find((event: { name: string }) => event.name === name);
      const hash = `#/occurrences/${occurrences[0].id}`;
      if (page.hash() === "") await page.logIn(tenant, hash);
      else await page.goto(hash);
      await page.getByRole("heading", { level: 1, name }).waitFor();
      await around.locator("figcaption").first().waitFor();
      await page.settled();
      return around.locator("figcaption a").allTextContents();
    };
    expect(await shown("disk full")).toEqual(["node_disk_reads", "node_filesystem_free", "a_b", "a_c", "a_d", "a_e"]);
    expect((await shown("disk hot")).slice(0, 3)).toEqual(["z_temperature", "node_disk_reads", "node_filesystem_free"]);
    await around.getByRole("link", { name: "All its series" }).waitFor();
  });
});

describe("entities", () => {
  const model = (source: string, metadataFields: object) => ({
    timestamp: Date.now(),
    dimensions: { source },
    metadataFields: { name: source, ...metadataFields },
  });

  onPage("have the parent that their model names by its dimensions, and the parent has them", async (page) => {
    const tenant = await testTenant(sql);
    const call = v1(server, tenant);
    await call("/v1/data-receiver/models", {
      models: [model("rack-1", {}), model("web-1", { parent: "source=rack-1" }), model("web-2", {})],
    });
    await page.logIn(tenant, "#/entities?text=web-1");
    await page.getByRole("link", { name: "web-1" }).click();
    const family = page.getByRole("region", { name: "Parent and children" });
    await family.getByRole("link", { name: "rack-1" }).click();
    await page.getByRole("heading", { level: 1, name: "rack-1" }).waitFor();
    await family.getByRole("link", { name: "web-1" }).waitFor();
    expect(await family.getByRole("link", { name: "web-2" }).count()).toBe(0);
  });

  onPage("without the field that they are grouped by are one group, which is listed", async (page) => {
    const tenant = await testTenant(sql);
    await v1(server, tenant)("/v1/data-receiver/models", {
      models: [model("web-1", { rack: "r1" }), model("web-2", {}), model("web-3", {})],
    });
    await page.logIn(tenant, "#/entities?group=metadataFields.rack");
    await page.getByRole("list", { name: "Groups by metadataFields.rack" }).getByRole("link", { name: "none" }).click();
    await page.getByText("2 entities").waitFor();
  });

  onPage("of a group are those among what was found, by words and by conditions", async (page) => {
    const tenant = await testTenant(sql);
    const racks = [
      ["web-1", "r1"],
      ["web-2", "r1"],
      ["web-3", "r2"],
      ["db-1", "r1"],
    ] as const;
    const models = racks.map(([name, rack]) => model(name, { rack, site: name === "web-2" ? "b" : "a" }));
    await v1(server, tenant)("/v1/data-receiver/models", { models });
    const where = JSON.stringify({ filter: { field: "metadataFields.site", operation: "OP_EQUALS", value: "a" } });
    const address = new URLSearchParams({ text: "web", where, group: "metadataFields.rack" });
    await page.logIn(tenant, `#/entities?${address}`);
    await page.getByText("2 entities").waitFor();
    await page.getByRole("list", { name: "Groups by metadataFields.rack" }).getByRole("link", { name: "r1" }).click();
    await page.getByText("1 entity", { exact: true }).waitFor();
    await page.getByRole("row").getByText("web-1").waitFor();
    expect(await page.getByLabel("Search by name").inputValue()).toBe("web");
  });
});

describe("moments", () => {
  onPage("are moments in columns and in files", async (page) => {
    const tenant = await testTenant(sql);
    const at = Date.now() - 60_000;
    await sendEvents(server, tenant, [{ name: "disk", source: "a", timestamp: BigInt(at) }]);
    await page.logIn(tenant, "#/events?columns=startTime");
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    const row = page.getByRole("row").filter({ hasText: "disk" });
    await row.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/).waitFor();
    const iso = new Date(at).toISOString();
    for (const name of ["Export CSV", "Export JSON"]) {
      await page.getByRole("button", { name }).click();
      const { text } = await page.downloaded();
      expect(text).toContain(iso);
      expect(text).not.toContain(String(at));
    }
  });

  onPage("are moments where a label holds one", async (page) => {
    const tenant = await testTenant(sql);
    const metadataFields = { "annotation.due": "2026-03-01T10:00:00+02:00", "annotation.build": "2026-03-01" };
    await sendEvents(server, tenant, [{ name: "disk", source: "a", metadataFields }]);
    const [{ occurrences }] = (await v1(server, tenant)("/v1/events:search", { query: {} })).results;
    await page.logIn(tenant, `#/occurrences/${occurrences[0].id}`);
    const due = page.getByRole("region", { name: "Labels" }).locator("time");
    await due.waitFor();
    expect(await due.getAttribute("datetime")).toBe("2026-03-01T08:00:00.000Z");
    await page.getByRole("definition").getByText("2026-03-01", { exact: true }).waitFor();
  });
});

describe("columns of a person's own", () => {
  onPage("are widened, ordered and removed, and the address keeps that", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "disk", source: "a", metadataFields: { team: "storage" } }]);
    await page.logIn(tenant, "#/events?columns=dimensions.source,metadataFields.team");
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    const heads = () => page.getByRole("columnheader").allTextContents();
    const tracks = async () => (await page.getByRole("row").first().getAttribute("style")) ?? "";
    expect((await heads()).join()).toContain("source,team");
    expect(await tracks()).not.toContain("220px");
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByLabel("Wide column metadataFields.team").check();
    await page.waitForHash(/wide=metadataFields\.team/);
    expect(await tracks()).toContain("220px");
    await page.getByRole("button", { name: "Move the column metadataFields.team forward" }).click();
    await page.waitForHash(/columns=metadataFields\.team%2Cdimensions\.source/);
    expect((await heads()).join()).toContain("team,source");
    await page.getByRole("button", { name: "Remove the column metadataFields.team" }).click();
    await page.waitForHash(/^#\/events\?columns=dimensions\.source$/);
    expect(await tracks()).not.toContain("220px");
    await page.getByLabel("Field", { exact: true }).fill("labels.team");
    await page.getByRole("button", { name: "Add", exact: true }).click();
    await page.waitForHash(/columns=dimensions\.source%2Cteam$/);
    await page.getByRole("row").filter({ hasText: "storage" }).waitFor();
  });

  onPage("and all built-in ones but the name are hidden, shown and ordered; the address keeps that", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "disk", source: "a", summary: "97 % of /var" }]);
    await page.logIn(tenant, "#/events?columns=dimensions.source");
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    const heads = () =>
      page
        .getByRole("columnheader")
        .allTextContents()
        .join()
        .replace(/^,|[ ↑↓]+(?=,|$)/g, "");
    expect(heads()).toBe("Severity,Event,Entity,Summary,source,Age,Last seen");
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
    await press("Columns");
    for (const name of ["Summary", "Severity", "Age"]) await press(`Hide the column ${name}`);
    await eventually(heads).toBe("Event,Entity,source,Last seen");
    const focused = async () => (await page.element()).ownerDocument.activeElement?.getAttribute("aria-label");
    await eventually(focused).toBe("Move the column Entity forward");
    expect(page.getByRole("button", { name: "Hide the column Event" }).count()).toBe(0);
    await page.getByRole("row").filter({ hasText: "disk" }).waitFor();
    expect(page.getByRole("row").filter({ hasText: "97 %" }).count()).toBe(0);
    await press("Move the column Entity forward");
    await eventually(heads).toBe("Entity,Event,source,Last seen");
    await page.reload();
    await eventually(heads).toBe("Entity,Event,source,Last seen");
    // The page that was loaded again has read all it reads by itself.
    await page.getByRole("row").filter({ hasText: "disk" }).waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await page.settled();
    await press("Columns");
    let searches = 0;
    for (let call = 0; call < 10; call += 1)
      page.passBy("SearchEvents", (next) => (request) => {
        searches += 1;
        return next(request);
      });
    for (const name of ["Severity", "Summary", "Age"]) await press(`Show the column ${name}`);
    await press("Move the column Event forward");
    await eventually(heads).toBe("Severity,Event,Entity,Summary,source,Age,Last seen");
    await page.settled();
    // One can be of the list itself: none for each of the four presses.
    expect(searches).toBeLessThan(2);
    await page.getByLabel("Field", { exact: true }).fill("type");
    await press("Add");
    await eventually(heads).toBe("Severity,Event,Entity,Summary,source,type,Age,Last seen");
    await page.waitForHash(/^#\/events\?columns=dimensions\.source%2Ctype$/);
  });
});
