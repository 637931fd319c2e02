import { describe, expect } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { openFilters, sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

const rowOf = (page: DomPage, name: string) => page.getByRole("row").filter({ hasText: name });
const selectRow = (page: DomPage, name: string) => rowOf(page, name).getByRole("gridcell").first().click();

/** Points at the list, whose rows stay where they are then. */
async function pointAt(page: DomPage): Promise<void> {
  const grid = await page.getByRole("grid", { name: "Events" }).element();
  const { Event } = grid.ownerDocument.defaultView as never as { Event: new (type: string, init: object) => never };
  grid.dispatchEvent(new Event("pointermove", { bubbles: true }));
}

describe("a row that no longer matches while one reads", () => {
  onPage("has the actions of what it is now, by button and by key, and its undo leads back there", async (page) => {
    const tenant = await testTenant(sql);
    const send = (status: Status) => sendEvents(server, tenant, [{ name: "disk full", source: "a", status }]);
    await send(Status.OPEN);
    await sendEvents(server, tenant, [{ name: "slow", source: "b" }]);
    const call = v1(server, tenant);
    const stored = async () => {
      const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "disk full" } };
      const { results } = await call("/v1/events:search", { query: { clause } });
      const { status, acknowledged } = results[0].occurrences[0];
      return [status, acknowledged ?? false];
    };
    await page.logIn(tenant);
    await rowOf(page, "disk full").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await pointAt(page);
    await selectRow(page, "disk full");
    await page.getByRole("button", { name: "Acknowledge", exact: true }).waitFor();
    await send(Status.CLOSED);
    await rowOf(page, "disk full").getByText("No longer matches").waitFor();
    await page.getByRole("button", { name: "Reopen", exact: true }).waitFor();
    for (const name of ["Acknowledge", "Close", "Suppress"])
      expect(page.getByRole("button", { name, exact: true }).count(), name).toBe(0);
    await page.keyboard.press("a");
    await page.keyboard.press("c");
    await page.settled();
    expect(await stored()).toEqual(["STATUS_CLOSED", false]);
    await page.getByRole("button", { name: "Reopen", exact: true }).click();
    await page.getByText("1 open again").waitFor();
    await eventually(() => rowOf(page, "disk full").getByText("No longer matches").count()).toBe(0);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    expect(await stored()).toEqual(["STATUS_CLOSED", false]);
  });

  onPage("that has changed while the watch was away is known, too", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "disk full", source: "a" },
      { name: "slow", source: "b" },
    ]);
    await page.logIn(tenant, "#/events?acknowledged=false");
    await rowOf(page, "disk full").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await pointAt(page);
    await selectRow(page, "disk full");
    page.see("hidden");
    const call = v1(server, tenant);
    const { results } = await call("/v1/events:search", { query: {} });
    const { id, occurrences } = results.find(({ name }: { name: string }) => name === "disk full");
    const acknowledged = { eventId: id, occurrenceId: occurrences[0].id, acknowledged: true };
    await call("/v1/event-management/status", { statuses: [acknowledged] });
    page.see("visible");
    await rowOf(page, "disk full").getByText("No longer matches").waitFor();
    await page.getByRole("button", { name: "Unacknowledge", exact: true }).waitFor();
    expect(page.getByRole("button", { name: "Acknowledge", exact: true }).count()).toBe(0);
  });
});

describe("the list of events", () => {
  onPage("shows what happens without a button, the worst first", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant);
    await page.getByText("Nothing is open.").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, [{ name: "slow", source: "a", severity: Severity.WARNING }]);
    await rowOf(page, "slow").waitFor();
    await sendEvents(server, tenant, [{ name: "down", source: "b", severity: Severity.CRITICAL }]);
    await rowOf(page, "down").waitFor();
    const rows = page.getByRole("row").allTextContents();
    expect(rows.slice(1).map((text) => /down|slow/.exec(text)?.[0])).toEqual(["down", "slow"]);
    expect(rows[1]).toContain("Critical");
  });

  onPage("is filtered by facets with their counts; back undoes it, and the address keeps it", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "one", source: "a", severity: Severity.ERROR },
      { name: "two", source: "a", severity: Severity.ERROR },
      { name: "three", source: "b", severity: Severity.CRITICAL },
    ]);
    await page.logIn(tenant);
    await page.getByText("3 occurrences").waitFor();
    await openFilters(page);
    await page
      .getByRole("group", { name: "Severity" })
      .filter({ hasText: /Critical\s*1.*Error\s*2/ })
      .waitFor();
    await page.getByRole("group", { name: "Severity" }).getByLabel("Error").check();
    await page.getByText("2 occurrences").waitFor();
    await page.getByRole("group", { name: "Name" }).getByLabel("two").check();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await page.reload();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    expect(await rowOf(page, "two").count()).toBe(1);
    await page.goBack();
    await page.getByText("2 occurrences").waitFor();
    await page.goForward();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
  });

  onPage("shows what is acknowledged after all others, and goes on to the next row", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "down", source: "a", severity: Severity.CRITICAL },
      { name: "late", source: "b", severity: Severity.ERROR },
      { name: "slow", source: "c", severity: Severity.WARNING },
    ]);
    await page.logIn(tenant);
    await page.getByText("3 occurrences").waitFor();
    const order = () =>
      page
        .getByRole("row")
        .allTextContents()
        .slice(1)
        .map((text) => /down|late|slow/.exec(text)?.[0]);
    expect(order()).toEqual(["down", "late", "slow"]);
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    await eventually(order).toEqual(["late", "slow", "down"]);
    await page.getByText("1 acknowledged").waitFor();
    await page.keyboard.press("a");
    await eventually(order).toEqual(["slow", "down", "late"]);
    await page.reload();
    await page.getByText("3 occurrences").waitFor();
    await eventually(order).toEqual(["slow", "down", "late"]);
  });

  onPage("leaves out what the names of all entities share", async (page) => {
    const tenant = await testTenant(sql);
    const sources = ["web-1.fra1.example.net", "db-2.ams2.example.net"];
    await sendEvents(
      server,
      tenant,
      sources.map((source) => ({ name: "down", source })),
    );
    await page.logIn(tenant);
    await page.getByText("2 occurrences").waitFor();
    const rows = page.getByRole("row").allTextContents().slice(1);
    expect(rows.filter((text) => /db-2\.ams2|web-1\.fra1/.test(text))).toHaveLength(2);
    expect(rows.join()).not.toMatch(/source=|example/);
  });

  onPage("tells events of one entity apart by any label in which they differ", async (page) => {
    const tenant = await testTenant(sql);
    const shelves = ["upper", "lower"].map((shelf) => ({
      name: "door open",
      source: "a",
      dedupKey: shelf,
      metadataFields: { shelf, colour: "grey" },
    }));
    await sendEvents(server, tenant, shelves);
    await page.logIn(tenant);
    await rowOf(page, "upper").waitFor();
    await rowOf(page, "lower").waitFor();
    expect(page.held()).not.toContain("grey");
  });

  onPage("leaves out a label that tells no more of them apart", async (page) => {
    const tenant = await testTenant(sql);
    const pods = ["shop", "payments"].map((namespace) => ({
      name: "pod restarts",
      source: "a",
      dedupKey: namespace,
      metadataFields: { namespace, team: `team of ${namespace}` },
    }));
    await sendEvents(server, tenant, pods);
    await page.logIn(tenant);
    await rowOf(page, "shop").waitFor();
    await rowOf(page, "payments").waitFor();
    expect(page.held()).not.toContain("team of");
  });

  onPage("tells those of later pages apart, too", async (page) => {
    const tenant = await testTenant(sql);
    const now = Date.now();
    const shelves = Array.from({ length: 250 }, (_, at) => ({
      name: "door open",
      source: "a",
      dedupKey: `${at}`,
      timestamp: BigInt(now - at * 1000),
      metadataFields: { shelf: `shelf ${at}.` },
    }));
    await sendEvents(server, tenant, shelves);
    await page.logIn(tenant);
    await rowOf(page, "shelf 0.").waitFor();
    const grid = await page.getByRole("grid", { name: "Events" }).element();
    const { Event } = grid.ownerDocument.defaultView as unknown as { Event: new (type: string) => never };
    await eventually(() => {
      grid.scrollTop = 8400;
      grid.dispatchEvent(new Event("scroll"));
      return rowOf(page, "shelf 249.").count();
    }).toBe(1);
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  onPage("shows characters that change the direction of reading", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "annex\u202Etxt.exe", source: "a" }]);
    await page.logIn(tenant);
    await page.getByText("annex[U+202E]txt.exe").first().waitFor();
    expect(page.held()).not.toContain("\u202E");
  });

  onPage("takes conditions; what the server refuses stands at its condition", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "disk full", source: "a", metadataFields: { mount: "/var" } },
      { name: "disk slow", source: "b", metadataFields: { mount: "/home" } },
    ]);
    await page.logIn(tenant);
    await page.getByRole("button", { name: "Conditions" }).click();
    const form = page.getByRole("form", { name: "Conditions" });
    await form.getByLabel("Field").fill("metadataFields.mount");
    await form.getByLabel("Value", { exact: true }).fill("/var");
    await form.getByRole("button", { name: "Apply" }).click();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    await form.getByRole("button", { name: "+ Condition" }).click();
    await form.getByLabel("Field").nth(1).fill("name");
    await form.getByLabel("Comparison").nth(1).selectOption({ label: "matches" });
    await form.getByLabel("Value", { exact: true }).nth(1).fill("(disk");
    await form.getByRole("button", { name: "Apply" }).click();
    const refused = form.locator("[data-condition]", { has: page.getByRole("alert") });
    await refused.waitFor();
    expect(await refused.getByLabel("Field").inputValue()).toBe("name");
    await form.getByLabel("Value", { exact: true }).nth(1).fill("^disk");
    await form.getByRole("button", { name: "Apply" }).click();
    await page.getByText("1 occurrence", { exact: true }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  onPage("shows columns of any field, and is exported whole as CSV and JSON", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(
      server,
      tenant,
      Array.from({ length: 120 }, (_, at) => ({
        name: `event ${at}`,
        source: `host ${at}`,
        summary: '=1+1, "quoted"',
      })),
    );
    await page.logIn(tenant, "#/events?columns=dimensions.source");
    await page.getByText("120 occurrences").waitFor();
    expect(await page.getByRole("columnheader", { name: "source" }).count()).toBe(1);
    const saved = async (name: string) => {
      await page.getByRole("button", { name }).click();
      return (await page.downloaded()).text;
    };
    const csv = await saved("Export CSV");
    expect(csv.charCodeAt(0)).toBe(0xfeff);
    const lines = csv.slice(1).trim().split("\r\n");
    expect(lines[0]).toMatch(/^id,severity,status,name,.*,dimensions\.source$/);
    expect(lines).toHaveLength(121);
    expect(lines[1]).toContain(`"'=1+1, ""quoted"""`);
    const json = JSON.parse(await saved("Export JSON"));
    expect(json).toHaveLength(120);
    expect(json[0]).toMatchObject({
      name: expect.stringMatching(/^event/),
      occurrences: [{ summary: '=1+1, "quoted"' }],
    });
  });

  onPage("keeps views under a name for all of the tenant, and gives one back that was deleted", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant, "#/events?severity=5&status=any&columns=type");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByLabel("Name of this view").fill("worst");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Delete view" }).waitFor();
    await page.getByLabel("Views").selectOption({ index: 0 });
    await page.getByText("Nothing is open.").waitFor();
    await page.getByLabel("Views").selectOption("worst");
    await page.waitForHash(/severity=5.*columns=type/);
    await page.getByRole("button", { name: "Delete view" }).click();
    await page.getByText("Deleted worst").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("button", { name: "Delete view" }).waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("API key").waitFor();
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/events?status=any");
    await page.getByLabel("Views").selectOption("worst");
    await page.waitForHash(/severity=5/);
    expect(await page.getByRole("button", { name: /view$/ }).count()).toBe(0);
  });

  onPage("shares the filters that an earlier console has kept in the browser", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant);
    page.keep("belfry.saved-filters", JSON.stringify([{ name: "mine", query: "severity=4" }]));
    await page.goto("#/entities");
    await page.goto("#/events");
    await page.getByLabel("Views").selectOption("mine");
    await page.waitForHash(/severity=4/);
  });
});

describe("many occurrences at once", () => {
  onPage("are acknowledged, annotated and closed, with what came of each", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "one", source: "a" },
      { name: "two", source: "b" },
      { name: "three", source: "c" },
    ]);
    await page.logIn(tenant, "#/events?status=any");
    await page.getByText("3 occurrences").waitFor();
    await selectRow(page, "one");
    await selectRow(page, "two");
    await page.getByText("2 selected").waitFor();
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("2 acknowledged").waitFor();
    await page.getByText("acked").nth(1).waitFor();
    await page.getByRole("button", { name: "Annotate…" }).click();
    await page.getByLabel("Note").fill("seen by <b>me</b>");
    await page.getByRole("button", { name: "Annotate", exact: true }).click();
    await page.getByText("2 annotated").waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    await page.getByText("2 closed").waitFor();
    const { results } = await v1(server, tenant)("/v1/events:search", { query: { statuses: ["STATUS_CLOSED"] } });
    expect(results.map(({ name }: { name: string }) => name).sort()).toEqual(["one", "two"]);
    await rowOf(page, "one").getByText("one").click();
    await page.getByText("seen by <b>me</b>", { exact: true }).waitFor();
    await page.getByText(/^Closed after/).waitFor();
  });

  onPage("that went wrong say why, and can be tried again", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "stays", source: "a" },
      { name: "leaves", source: "b" },
    ]);
    await page.logIn(tenant);
    await page.getByText("2 occurrences").waitFor();
    await page.getByRole("checkbox", { name: "Select all rows that are loaded" }).check();
    void page.fail("SetEventStatus");
    await page.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("0 acknowledged, 2 not").waitFor();
    await page.getByRole("button", { name: "Try these again" }).click();
    await page.getByText("2 acknowledged").waitFor();
  });

  onPage("are taken back by Undo, each to what it was", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [
      { name: "was acknowledged", source: "a" },
      { name: "was not", source: "b" },
    ]);
    // No news reach the page: it has to know by itself what it changed.
    void page.hold("WatchEvents");
    await page.logIn(tenant, "#/events?status=any");
    await selectRow(page, "was acknowledged");
    await page.getByRole("button", { name: "Acknowledge", exact: true }).click();
    await page.getByText("1 acknowledged").waitFor();
    const done = page.getByRole("status", { name: "Done" });
    const states = async () => {
      const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
      return Object.fromEntries(
        results.map(({ name, occurrences: [of] }: { name: string; occurrences: [Record<string, unknown>] }) => [
          name,
          [of.acknowledged, of.status],
        ]),
      );
    };
    const before = await states();
    expect(before).toEqual({ "was acknowledged": [true, "STATUS_OPEN"], "was not": [false, "STATUS_OPEN"] });
    await selectRow(page, "was not");
    await page.getByText("2 selected").waitFor();
    for (const [button, said] of [
      ["Acknowledge", "2 acknowledged"],
      ["Close", "2 closed"],
    ] as const) {
      await page.getByRole("button", { name: button, exact: true }).click();
      await done.getByText(said).waitFor();
      await done.getByRole("button", { name: "Undo" }).click();
      await done.getByText("Taken back.").waitFor();
      expect(await states()).toEqual(before);
    }
  });
});

describe("a suppressed occurrence", () => {
  onPage("is opened again and suppressed again, by buttons and by Undo", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, [{ name: "known", source: "a", status: Status.SUPPRESSED }]);
    await page.logIn(tenant, `#/events?status=${Status.SUPPRESSED}`);
    await rowOf(page, "known").getByText("known").click();
    const done = page.getByRole("status", { name: "Done" });
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const head = page.getByRole("list", { name: "At a glance" });
    const became = async (word: string, said: string) => {
      await done.getByText(said).waitFor();
      await head.getByText(word).waitFor();
    };
    await button("Reopen").click();
    await became("Open", "1 open again");
    expect(await button("Reopen").count()).toBe(0);
    await button("Undo").click();
    await became("Suppressed", "Taken back.");
    await button("Reopen").click();
    await became("Open", "1 open again");
    await button("Suppress").click();
    await became("Suppressed", "1 suppressed");
    expect(await button("Suppress").count()).toBe(0);
    await button("Close").click();
    await became("Closed", "1 closed");
    expect(await button("Suppress").count()).toBe(0);
    await button("Reopen").click();
    await became("Open", "1 open again");
  });
});
