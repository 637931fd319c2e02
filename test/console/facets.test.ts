import { beforeEach, describe, expect } from "vitest";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { openFilters, sendEvents } from "./console-page.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);
let tenant: TestTenant;

beforeEach(async () => {
  tenant = await testTenant(sql);
  const teams = ["storage", "storage", "network", "<b>odd</b>, 100 %"];
  await sendEvents(server, tenant, [
    ...teams.map((team, at) => ({ name: "disk full", source: `db-${at}`, metadataFields: { team } })),
    { name: "slow", source: "web-1", severity: Severity.CRITICAL },
  ]);
});

const facet = (page: DomPage, name: string | RegExp) => page.getByRole("group", { name });
const found = (page: DomPage, count: string) => page.getByText(count, { exact: true }).waitFor();

async function addFacet(page: DomPage, label: string): Promise<void> {
  await openFilters(page);
  await page.getByLabel("Label to filter by").fill(label);
  await page.getByRole("button", { name: "Add", exact: true }).click();
}

describe("a facet of a label of one's own", () => {
  onPage("counts its values, of which several can be chosen; each is a chip that is removed", async (page) => {
    await page.logIn(tenant);
    await found(page, "5 occurrences");
    await addFacet(page, "team");
    await facet(page, /^team/)
      .filter({ hasText: /storage\s*2/ })
      .waitFor();
    await facet(page, /^team/).getByLabel("storage").check();
    await found(page, "2 occurrences");
    // Others are counted as if they were chosen, too.
    await facet(page, /^team/)
      .filter({ hasText: /network\s*1/ })
      .waitFor();
    await facet(page, /^team/).getByLabel("<b>odd</b>, 100 %").check();
    await found(page, "3 occurrences");
    await page.getByRole("button", { name: "Remove team: storage" }).click();
    await found(page, "1 occurrence");
    await page.getByRole("button", { name: "Remove team: <b>odd</b>, 100 %" }).click();
    await found(page, "5 occurrences");
  });

  onPage("stays in the browser, and goes with a view to others", async (page) => {
    await page.logIn(tenant);
    await addFacet(page, "team");
    await facet(page, /^team/).filter({ hasText: "network" }).waitFor();
    await page.reload();
    await facet(page, /^team/).waitFor();
    await facet(page, /^team/).getByLabel("network").check();
    await found(page, "1 occurrence");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByLabel("Name of this view").fill("network");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Delete view" }).waitFor();
    await page.getByRole("button", { name: "Remove the facet team" }).click();
    await facet(page, /^team/).waitFor({ state: "detached" });
    await page.getByLabel("Views").selectOption({ index: 0 });
    await found(page, "5 occurrences");
    expect(facet(page, /^team/).count()).toBe(0);
    await page.getByLabel("Views").selectOption("network");
    await facet(page, /^team/).waitFor();
    await found(page, "1 occurrence");
  });

  onPage("that no event has says so, and goes again", async (page) => {
    await page.logIn(tenant);
    await addFacet(page, "nobody");
    await page.getByText("Nothing that is listed has this label.").waitFor();
    await page.getByRole("button", { name: "Remove the facet nobody" }).click();
    await facet(page, /^nobody/).waitFor({ state: "detached" });
  });
});

describe("a value", () => {
  onPage("is left out by its minus, of a label, name or entity, and comes back by chip or minus", async (page) => {
    await page.logIn(tenant);
    await found(page, "5 occurrences");
    await addFacet(page, "team");
    await facet(page, /^team/).getByRole("button", { name: "Leave out storage" }).click();
    await found(page, "3 occurrences");
    // It says how many it leaves out.
    await facet(page, /^team/)
      .filter({ hasText: /storage\s*2/ })
      .waitFor();
    await facet(page, /^team/).getByLabel("network").check();
    await found(page, "1 occurrence");
    await facet(page, /^team/).getByLabel("storage").check();
    await found(page, "3 occurrences");
    await page.getByRole("button", { name: "Remove team: storage" }).click();
    await page.getByRole("button", { name: "Remove team: network" }).click();
    await found(page, "5 occurrences");
    await facet(page, "Name").getByRole("button", { name: "Leave out disk full" }).click();
    await found(page, "1 occurrence");
    await facet(page, "Entity").getByRole("button", { name: "Leave out web-1" }).click();
    await found(page, "0 occurrences");
    await page.getByRole("button", { name: "Remove Name: not disk full" }).click();
    await found(page, "4 occurrences");
    await page.getByRole("button", { name: "Remove Entity: not web-1" }).waitFor();
    const leaving = facet(page, "Entity").getByRole("button", { name: "Leave out web-1" });
    expect(await leaving.getAttribute("aria-pressed")).toBe("true");
    await leaving.click();
    await found(page, "5 occurrences");
  });

  onPage("is left out of severities and of acknowledgements, also where the address alone says it", async (page) => {
    await page.logIn(tenant);
    await found(page, "5 occurrences");
    await openFilters(page);
    await facet(page, "Severity").getByRole("button", { name: "Leave out Error" }).click();
    await found(page, "1 occurrence");
    await facet(page, "Severity")
      .filter({ hasText: /Error\s*4/ })
      .waitFor();
    await page.reload();
    await found(page, "1 occurrence");
    await facet(page, "Acknowledged").getByRole("button", { name: "Leave out No" }).click();
    await found(page, "0 occurrences");
    await page.getByRole("button", { name: "Remove Severity: not Error" }).click();
    await found(page, "0 occurrences");
    await page.getByRole("button", { name: "Remove Acknowledged: not No" }).click();
    await found(page, "5 occurrences");
  });

  onPage("of the statuses that is left out lists all others, and given up only what is open", async (page) => {
    const suppressed = { name: "disk full", source: "db-0", metadataFields: { team: "storage" } };
    await sendEvents(server, tenant, [{ ...suppressed, status: Status.SUPPRESSED }]);
    await sendEvents(server, tenant, [{ name: "slow", source: "web-1", status: Status.CLOSED }]);
    await page.logIn(tenant);
    await found(page, "3 occurrences");
    await openFilters(page);
    await facet(page, "Status").getByRole("button", { name: "Leave out Closed" }).click();
    await found(page, "4 occurrences");
    await page.getByRole("button", { name: "Remove Status: not Closed" }).waitFor();
    expect(page.getByRole("button", { name: "Remove Status: Open" }).count()).toBe(0);
    await facet(page, "Status").getByRole("button", { name: "Leave out Open" }).click();
    await found(page, "1 occurrence");
    await facet(page, "Status").getByRole("button", { name: "Leave out Open" }).click();
    await found(page, "4 occurrences");
    await facet(page, "Status").getByRole("button", { name: "Leave out Closed" }).click();
    await found(page, "3 occurrences");
    await page.getByRole("button", { name: "Remove Status: Open" }).click();
    await found(page, "5 occurrences");
    await facet(page, "Status").getByRole("button", { name: "Leave out Open" }).click();
    await found(page, "2 occurrences");
    await facet(page, "Status").getByLabel("Open").check();
    await found(page, "3 occurrences");
  });

  onPage("of a label in a row narrows the list to it, or with Alt to the others", async (page) => {
    await page.logIn(tenant);
    await found(page, "5 occurrences");
    await page.getByRole("gridcell").getByRole("button", { name: "network" }).click();
    await found(page, "1 occurrence");
    await page.getByRole("button", { name: "Remove team: network" }).click();
    await found(page, "5 occurrences");
    await page
      .getByRole("gridcell")
      .getByRole("button", { name: "network" })
      .click({ modifiers: ["Alt"] });
    await found(page, "4 occurrences");
    await page.getByRole("button", { name: "Remove team: not network" }).waitFor();
  });
});

describe("what the list is narrowed by", () => {
  onPage("stands in the search field, in words, and is given up there", async (page) => {
    await page.logIn(tenant);
    await found(page, "5 occurrences");
    await openFilters(page);
    await facet(page, "Severity").getByLabel("Critical").check();
    await found(page, "1 occurrence");
    await facet(page, "Entity").getByLabel("web-1").check();
    await page.getByRole("button", { name: "Remove Entity: web-1" }).waitFor();
    await page.getByRole("button", { name: "Remove Severity: Critical" }).click();
    await page.getByRole("button", { name: "Remove Severity: Critical" }).waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Remove Entity: web-1" }).click();
    await found(page, "5 occurrences");
    await page.getByRole("button", { name: "Remove Status: Open" }).click();
    await page.waitForHash(/status=any/);
  });

  onPage("is never called by the name of a dimension that all entities share", async (page) => {
    await page.logIn(tenant);
    await openFilters(page);
    await facet(page, "Entity").filter({ hasText: "web-1" }).waitFor();
    await eventually(() => page.held().includes(">source=")).toBe(false);
  });
});
