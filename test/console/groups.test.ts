import { Code, ConnectError } from "@connectrpc/connect";
import { beforeEach, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, type TestTenant, testTenant } from "../support/tenant.ts";
import { ungrouped } from "../support/ungrouped.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);
let tenant: TestTenant;
const hostile = '<img src=x onerror="a">';

beforeEach(async () => {
  tenant = await testTenant(sql);
  const disks = Array.from({ length: 7 }, (_, at) => ({
    name: "disk full",
    source: `db-${at}`,
    severity: Severity.ERROR,
  }));
  await sendEvents(server, tenant, [
    ...disks.map((disk, at) => ({ ...disk, ...(at < 3 && { metadataFields: { team: "storage" } }) })),
    { name: hostile, source: "web-1", severity: Severity.CRITICAL, summary: "odd" },
  ]);
});

/** How many occurrences a query finds. */
async function count(query: object): Promise<number> {
  const { pageInfo } = await v1(server, tenant)("/v1/events:search", { query: { ...query, pageInput: { limit: 1 } } });
  return Number(pageInfo.totalCount);
}

const closed = { statuses: ["STATUS_CLOSED"] };

describe("groups of events", () => {
  onPage("have counts, ages and members, the worst first, and lead to the list of one", async (page) => {
    await page.logIn(tenant, "#/events?group=alertname");
    await page.getByText("2 groups").waitFor();
    const list = page.getByRole("list", { name: "Groups by alertname" });
    expect(list.allTextContents()[0]).toMatch(/^▸ Critical<img src=x/);
    await list.getByText("0 of 7 acked").waitFor();
    await list
      .getByRole("button", { name: /disk full/ })
      .first()
      .click();
    await page.getByRole("list", { name: "Members of disk full" }).getByRole("link", { name: /db-/ }).first().waitFor();
    await page.getByRole("link", { name: "Show all 7" }).click();
    await page.getByText("7 occurrences").waitFor();
  });

  onPage("follow the watch, and those without the label are one, which is listed", async (page) => {
    await page.logIn(tenant, "#/events?group=team");
    await page.getByText("0 of 3 acked").waitFor();
    await page.getByText("without team").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, [
      { name: "slow", source: "db-9", severity: Severity.WARNING, metadataFields: { team: "storage" } },
    ]);
    await page.getByText("0 of 4 acked").waitFor();
    await page
      .getByRole("button", { name: /without team/ })
      .first()
      .click();
    await page.getByRole("link", { name: "Show as a list" }).click();
    await page.getByText("5 occurrences").waitFor();
  });

  onPage("are acknowledged and closed whole, and that is undone", async (page) => {
    await page.logIn(tenant, "#/events?group=alertname");
    await page.getByRole("button", { name: "Acknowledge all 7 of disk full" }).click();
    await page.getByText("7 acknowledged").waitFor();
    await page.getByText("7 of 7 acked").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("0 of 7 acked").waitFor();
    await page.getByRole("button", { name: "Close all 7 of disk full…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close", exact: true }).click();
    await page.getByText("1 group", { exact: true }).waitFor();
    expect(await count(closed)).toBe(7);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("2 groups").waitFor();
    expect(await count(closed)).toBe(0);
  });

  onPage("are asked for alone: the list, its counts and its bars are not asked for again", async (page) => {
    await page.logIn(tenant);
    await page.getByText("8 occurrences").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("group", { name: "Totals" }).waitFor();
    await page.settled();
    const asked: string[] = [];
    for (const method of ["SearchEvents", "CountEvents", "CountEventFrequency", "GroupEvents"])
      page.passBy(method, (next) => (request) => {
        asked.push(method);
        return next(request);
      });
    await page.getByLabel("Group by").selectOption("alertname");
    await page.getByText("2 groups").waitFor();
    await page.getByLabel("Group by").selectOption("");
    await page.getByRole("grid", { name: "Events" }).getByRole("row").nth(8).waitFor();
    await page.settled();
    expect(asked).toEqual(["GroupEvents"]);
  });

  onPage("keep the counts beside them where a person comes back while the server is away", async (page) => {
    await page.logIn(tenant);
    await page.getByRole("group", { name: "Totals" }).waitFor();
    await page.getByLabel("Group by").selectOption("alertname");
    await page.getByText("2 groups").waitFor();
    await page.goto("#/entities");
    await page.getByRole("grid", { name: "Entities" }).waitFor();
    // More often than the page asks until it is over.
    for (let calls = 0; calls < 100; calls += 1) void page.fail("CountEvents");
    await page.goto("#/events?group=alertname");
    await page.getByText("2 groups").waitFor();
    await page.getByRole("group", { name: "Totals" }).getByText("7 error").waitFor();
  });

  onPage("are no longer acknowledged, and get a note, whole", async (page) => {
    await page.logIn(tenant, "#/events?group=alertname");
    await page.getByRole("button", { name: "Acknowledge all 7 of disk full" }).click();
    await page.getByText("7 of 7 acked").waitFor();
    await page.getByRole("button", { name: "Unacknowledge all 7 of disk full" }).click();
    await page.getByText("7 no longer acknowledged").waitFor();
    await page.getByText("0 of 7 acked").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("7 of 7 acked").waitFor();
    await page.getByRole("button", { name: "Annotate all 7 of disk full…" }).click();
    await page.getByLabel("Note").fill("looked at");
    await page.getByRole("button", { name: "Annotate", exact: true }).click();
    await page.getByText("7 annotated").waitFor();
    const notes = await sql`select text from annotations where tenant_id = ${tenant.id}`;
    expect(notes.map(({ text }) => text)).toEqual(Array(7).fill("looked at"));
  });

  onPage("take the list's filters along to their silence, as far as these are labels", async (page) => {
    const where = JSON.stringify({ filter: { field: "labels.source", operation: "OP_NOT_EQUALS", value: "x" } });
    const find = "team=storage,team=net.work,site!=zrh,lost%20words";
    await page.logIn(
      tenant,
      `#/events?group=alertname&severity=4&notName=slow&where=${encodeURIComponent(where)}&find=${find}&status=any`,
    );
    await sendEvents(server, tenant, [
      { name: "disk full", source: "b", summary: "lost words", metadataFields: { team: "net.work" } },
    ]);
    await page.getByRole("link", { name: "Silence disk full…" }).click();
    await page.getByLabel("Matchers").waitFor();
    expect((await page.getByLabel("Matchers").inputValue()).split("\n")).toEqual([
      'alertname="disk full"',
      'source!="x"',
      'alertname!="slow"',
      'site!="zrh"',
      'team=~"storage|net\\\\.work"',
    ]);
    await page.getByText("It matches 4 open occurrences").waitFor();
  });

  onPage("lead to a silence of their label; who may only read has no actions", async (page) => {
    await page.logIn(tenant, "#/events?group=alertname");
    await page.getByRole("link", { name: "Silence disk full…" }).click();
    await page.getByText("It matches 7 open occurrences").waitFor();
    expect(await page.getByLabel("Matchers").inputValue()).toBe('alertname="disk full"');
  });

  onPage("by entity have its name, lead to it, its list, and a silence of it with the list's labels", async (page) => {
    await sendEvents(server, tenant, [{ name: "slow", source: "db-1", severity: Severity.CRITICAL }]);
    await page.logIn(tenant);
    await page.getByText("9 occurrences").waitFor();
    await page.getByLabel("Group by").selectOption({ label: "Group: entity" });
    await page.getByText("8 groups").waitFor();
    await page.getByRole("list", { name: "Groups by entity" }).getByText("0 of 2 acked").waitFor();
    await page.getByRole("button", { name: /db-1/ }).first().click();
    const members = page.getByRole("list", { name: "Members of db-1" });
    expect(await members.getByRole("link").count()).toBe(4);
    expect(members.allTextContents()[0]).toMatch(/slow.*disk full/);
    await members.getByRole("link", { name: "Open the entity" }).click();
    await page.getByRole("heading", { level: 1 }).getByText("db-1", { exact: true }).waitFor();
    page.goBack();
    await page.getByText("8 groups").waitFor();
    await members.getByRole("link", { name: "Show as a list" }).click();
    await page.getByText("2 occurrences").waitFor();
    await page.goto("#/events?group=%3Dentity&find=team%3Dstorage");
    await page.getByText("3 groups").waitFor();
    await page.getByRole("link", { name: "Silence db-1…" }).click();
    await page.getByText("It matches 1 open occurrence").waitFor();
    expect(await page.getByLabel("Matchers").inputValue()).toBe('source="db-1"\nteam="storage"');
  });

  onPage("are what a person sees first, by name, until the person chooses otherwise", async (page) => {
    page.forget(ungrouped[0]);
    await page.reload();
    await page.logIn(tenant);
    await page.getByText("2 groups").waitFor();
    const field = page.getByLabel("Search events");
    await field.fill("full");
    await field.press("Enter");
    await page.getByText("1 group", { exact: true }).waitFor();
    await page.getByLabel("Group by").selectOption({ label: "Group: entity" });
    await page.getByText("7 groups").waitFor();
    await page.goto("#/events");
    await page.getByText("8 groups").waitFor();
    await page.getByLabel("Group by").selectOption("");
    await page.getByRole("grid", { name: "Events" }).waitFor();
    await page.goto("#/entities");
    await page.getByRole("grid", { name: "Entities" }).waitFor();
    await page.goto("#/events");
    await page.getByRole("grid", { name: "Events" }).getByRole("row").nth(8).waitFor();
  });

  onPage("by entity have names that tell entities of one name apart", async (page) => {
    const own = await testTenant(sql);
    await v1(server, own)("/v1/data-receiver/models", {
      models: ["a", "b"].map((source) => ({
        timestamp: String(Date.now()),
        dimensions: { source },
        metadataFields: { name: "twin" },
      })),
    });
    await v1(server, own)("/v1/data-receiver/events", {
      events: [{ source: "a" }, { source: "b" }, { source: "web-1" }, { instance: "web-1" }].map((dimensions) => ({
        name: "slow",
        dimensions,
        severity: "SEVERITY_ERROR",
        status: "STATUS_OPEN",
        timestamp: String(Date.now()),
      })),
    });
    await page.logIn(own, "#/events?group=%3Dentity");
    await page.getByText("4 groups").waitFor();
    const links = page.getByRole("link", { name: /^Silence .*…/ });
    const names = await Promise.all([0, 1, 2, 3].map((at) => links.nth(at).getAttribute("aria-label")));
    expect(names.toSorted()).toEqual([
      "Silence instance=web-1…",
      "Silence source=web-1…",
      expect.stringMatching(/^Silence twin \(.+\)…$/),
      expect.stringMatching(/^Silence twin \(.+\)…$/),
    ]);
    expect(new Set(names).size).toBe(4);
  });

  onPage("of one kind leave when another kind is chosen, and going back leads to the list", async (page) => {
    await page.logIn(tenant);
    await page.getByText("8 occurrences").waitFor();
    await page.getByLabel("Group by").selectOption("alertname");
    await page.getByText("2 groups").waitFor();
    const answer = Promise.withResolvers<void>();
    page.passBy("GroupEvents", (next) => async (request) => {
      await answer.promise;
      return await next(request);
    });
    await page.getByLabel("Group by").selectOption({ label: "Group: entity" });
    await page.getByRole("list", { name: "Groups by entity" }).waitFor();
    expect(page.getByRole("button", { name: /^Acknowledge all/ }).count()).toBe(0);
    answer.resolve();
    await page.getByText("8 groups").waitFor();
    page.goBack();
    await page.getByText("2 groups").waitFor();
    page.goBack();
    await page.getByRole("grid", { name: "Events" }).getByRole("row").nth(8).waitFor();
  });

  onPage("without a label offer no silence that would say only that", async (page) => {
    await page.logIn(tenant, "#/events?group=team");
    await page.getByText("without team").waitFor();
    expect(page.getByRole("link", { name: /^Silence .*…/ }).count()).toBe(1);
    await page.goto("#/events?group=team&find=site!%3Dzrh");
    await page.getByRole("link", { name: "Silence without team…" }).waitFor();
  });

  onPage("that cannot be made leave the list; the first screen is no view to save", async (page) => {
    await page.logIn(tenant, "#/events?group=alertname");
    await page.getByText("2 groups").waitFor();
    expect(await page.getByRole("button", { name: "Save view" }).count()).toBe(1);
    await page.getByLabel("Group by").selectOption({ label: "Group: entity" });
    await page.goto("#/events");
    await page.getByText("8 groups").waitFor();
    expect(await page.getByRole("button", { name: "Save view" }).count()).toBe(0);
    page.passBy("GroupEvents", () => () => {
      throw new ConnectError("more than 200000 occurrences match", Code.FailedPrecondition);
    });
    await page.goto("#/events?group=alertname");
    await page.getByRole("button", { name: "Show as a list" }).click();
    await page.getByRole("grid", { name: "Events" }).getByRole("row").nth(8).waitFor();
  });

  onPage("by entity begin their silence with its labels, and with none where it is gone", async (page) => {
    await page.logIn(
      tenant,
      "#/silences/new?entity=00000000-0000-0000-0000-000000000000&matchers=team%3D%22storage%22",
    );
    await page.getByText("There is no such entity any more").waitFor();
    expect(await page.getByLabel("Matchers").inputValue()).toBe("");
  });

  onPage("that are none say how data come here", async (page) => {
    await page.logIn(await testTenant(sql), "#/events?group=alertname");
    await page.getByText("Nothing is open.").waitFor();
    await page.goto("#/events?group=alertname&find=full");
    await page.getByText("No occurrence matches these filters.").waitFor();
  });

  onPage("show no action to who may only read", async (page) => {
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/events?group=alertname");
    await page.getByText("2 groups").waitFor();
    expect(await page.getByRole("button", { name: /^(?:Acknowledge|Close)/ }).count()).toBe(0);
    expect(await page.getByRole("link", { name: /^Silence .*…/ }).count()).toBe(0);
  });
});

describe("the search field", () => {
  onPage("an address with a filter that is no number says so", async (page) => {
    await page.logIn(tenant);
    for (const [filter, wrong] of [
      ["notSeverity=critical", `"critical" in this address is no number of a severity`],
      ["notStatus=any", `"any" in this address is no number of a status`],
      ["severity=worst", `"worst" in this address is no number of a severity`],
    ] as const) {
      await page.goto(`#/events?${filter}`);
      await page.getByText(wrong).first().waitFor();
    }
  });

  onPage("finds by words and by labels, each a chip that is removed alone", async (page) => {
    await page.logIn(tenant);
    await page.getByText("8 occurrences").waitFor();
    const field = page.getByLabel("Search events");
    const add = async (term: string) => {
      await field.fill(term);
      await field.press("Enter");
    };
    await add("FULL db-");
    await page.getByText("7 occurrences").waitFor();
    await add("team!=storage");
    await page.getByText("4 occurrences").waitFor();
    await page.getByRole("button", { name: "Remove FULL db-" }).click();
    await page.getByText("5 occurrences").waitFor();
    await add("<img src=x");
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    expect(page.hash()).toMatch(/find=/);
    page.goBack();
    await page.getByText("5 occurrences").waitFor();
    await page.getByRole("button", { name: "Remove team: not storage" }).click();
    await add("team=storage");
    await page.getByText("3 occurrences").waitFor();
  });
});

describe("all that is found", () => {
  onPage("is selected beyond what is loaded, acknowledged, and that is undone", async (page) => {
    const many = Array.from({ length: 250 }, (_, at) => ({ name: `many ${at}`, source: "a", severity: Severity.INFO }));
    await sendEvents(server, tenant, many);
    await page.logIn(tenant);
    await page.getByText("258 occurrences").waitFor();
    await page.getByRole("columnheader").first().getByRole("checkbox").click();
    await page.getByRole("button", { name: "Select all 258 found" }).click();
    await page.getByRole("button", { name: "Acknowledge all 258 found", exact: true }).click();
    await page.getByText("258 acknowledged").waitFor();
    const acknowledged = { clause: { filter: { field: "acknowledged", operation: "OP_EQUALS", value: true } } };
    expect(await count(acknowledged)).toBe(258);
    await page.getByRole("button", { name: "Undo" }).click();
    await eventually(() => count(acknowledged)).toBe(0);
  });
});
