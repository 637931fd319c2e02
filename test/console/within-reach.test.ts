import { describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { type DomPage, domPage } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const { onPage } = domPage(server);

/** A tenant with one open event, its occurrence and its entity. */
async function withEvent(metadataFields: Record<string, string> = {}) {
  const tenant = await testTenant(sql);
  await sendEvents(server, tenant, [
    { name: "disk full", source: "web-1", severity: Severity.CRITICAL, metadataFields },
    { name: "disk full", source: "web-2", severity: Severity.CRITICAL },
  ]);
  const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
  const [event] = results.filter(({ entityName }: { entityName: string }) => /web-1/.test(entityName));
  return { tenant, occurrence: event.occurrences[0].id as string, entity: event.entity as string };
}

const silencesOf = async (tenant: TestTenant) =>
  (await v1(server, tenant)("/v1/notification/silences:preview", { matchers: ["source=web-1"] })).count as string;

/** Makes a silence in the form that is open. */
async function silence(page: DomPage): Promise<void> {
  await page.getByText("It matches 1 open occurrence").waitFor();
  await page.getByLabel("Comment").fill("new disks");
  await page.getByRole("button", { name: "Silence" }).click();
  await page.getByText("Silence created.").waitFor();
}

const head = (page: DomPage) => page.getByRole("link", { name: "Silence…", exact: true });

describe("a silence", () => {
  onPage("is made from the head of an occurrence, which one comes back to, and is taken back there", async (page) => {
    const { tenant, occurrence } = await withEvent();
    await page.logIn(tenant, "#/silences");
    await page.goto(`#/occurrences/${occurrence}`);
    await head(page).click();
    expect(await page.getByLabel("Duration").inputValue()).toBe("2");
    await silence(page);
    await page.waitForHash(new RegExp(`^#/occurrences/${occurrence}$`));
    const card = page.getByRole("region", { name: "Silences" });
    await card.getByRole("link", { name: "new disks" }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await card.getByText("Nothing silences it.").waitFor();
    expect(await silencesOf(tenant)).toBe("1");
    // The place itself, not another entry of the history with its address: lists keep their place by entries.
    page.goBack();
    await page.waitForHash(/^#\/silences$/);
  });

  onPage("that is not made leads back to the place, too", async (page) => {
    const { tenant, occurrence } = await withEvent();
    await page.logIn(tenant, "#/silences");
    await page.goto(`#/occurrences/${occurrence}`);
    await head(page).click();
    await page.getByRole("link", { name: "Cancel" }).click();
    await page.waitForHash(new RegExp(`^#/occurrences/${occurrence}$`));
    await head(page).waitFor();
    page.goBack();
    await page.waitForHash(/^#\/silences$/);
  });

  onPage("has the labels of the occurrence once the server is back", async (page) => {
    const { tenant, occurrence } = await withEvent();
    await page.logIn(tenant, `#/occurrences/${occurrence}`);
    await page.getByText("Nothing silences it.").waitFor();
    const refused = page.fail("ListSilences");
    await head(page).click();
    await refused;
    await page.getByText("It matches 1 open occurrence").waitFor();
    expect(page.getByLabel("Matchers").value()).toContain('source="web-1"');
  });

  onPage("of an entity matches what happens to it alone, and leads back to it", async (page) => {
    const { tenant, entity } = await withEvent();
    await page.logIn(tenant, `#/entities/${entity}`);
    await head(page).click();
    await silence(page);
    await page.waitForHash(new RegExp(`^#/entities/${entity}$`));
    await page.getByRole("button", { name: "Undo" }).waitFor();
  });

  onPage("of a group and of a row that is selected leads back to the list with its filters", async (page) => {
    const { tenant } = await withEvent({ team: "storage" });
    await page.logIn(tenant, "#/events?severity=5&group=team");
    await page.getByRole("link", { name: "Silence storage…" }).click();
    await silence(page);
    await page.waitForHash(/^#\/events\?severity=5&group=team$/);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    await page.goto("#/events?severity=5");
    await page.getByRole("row").filter({ hasText: "web-1" }).getByRole("gridcell").first().click();
    await head(page).click();
    await silence(page);
    await page.waitForHash(/^#\/events\?severity=5$/);
  });

  onPage("that the address sends elsewhere leads to the silences", async (page) => {
    const { tenant } = await withEvent();
    await page.logIn(tenant, "#/silences/new?matchers=source%3Dweb-1&from=javascript:alert(1)");
    expect(await page.getByRole("link", { name: "Cancel" }).getAttribute("href")).toBe("#/silences");
  });

  onPage("that another tab has made is shown once something happens to the occurrence", async (page) => {
    const { tenant, occurrence } = await withEvent();
    await page.logIn(tenant, `#/occurrences/${occurrence}`);
    const card = page.getByRole("region", { name: "Silences" });
    await card.getByText("Nothing silences it.").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    const endsAt = Date.now() + 3_600_000;
    await v1(server, tenant)("/v1/notification/silences", { matchers: ["source=web-1"], comment: "theirs", endsAt });
    await sendEvents(server, tenant, [{ name: "disk full", source: "web-1", severity: Severity.CRITICAL }]);
    await card.getByRole("link", { name: "theirs" }).waitFor();
  });
});

describe("an occurrence that is gone", () => {
  onPage("says so, with the way to the events, whether its event is gone or the occurrence alone", async (page) => {
    const { tenant, occurrence } = await withEvent();
    await page.logIn(tenant, "#/occurrences/xyz");
    for (const id of ["xyz", `${occurrence}999`]) {
      await page.goto(`#/occurrences/${id}`);
      await page.getByText("This occurrence is not stored any more.").waitFor();
      expect(page.getByRole("alert").count()).toBe(0);
      expect(page.getByRole("button", { name: "Try again" }).count()).toBe(0);
      await page.getByRole("link", { name: "To the events" }).waitFor();
    }
    await page.locator("main").getByRole("link", { name: "Events", exact: true }).click();
    await page.waitForHash(/^#\/events$/);
  });
});

describe("the maintenance of an entity", () => {
  const windows = async (tenant: TestTenant) =>
    (await v1(server, tenant)("/v1/modelcontext/maintwindows:list", {})).maintWindows;

  for (const [where, link] of [
    ["entity", "Put into maintenance…"],
    ["occurrence", "Put entity into maintenance…"],
  ] as const)
    onPage(`begins by one press in the form that its ${where} leads to`, async (page) => {
      const { tenant, occurrence, entity } = await withEvent();
      await page.logIn(tenant, where === "entity" ? `#/entities/${entity}` : `#/occurrences/${occurrence}`);
      await page.getByRole("link", { name: link, exact: true }).click();
      const now = page.getByRole("group", { name: "Start now" });
      await now.getByRole("button", { name: "8 h" }).click();
      await page.getByText("Running").waitFor();
      await page.getByRole("button", { name: "Undo" }).waitFor();
      const [made] = await windows(tenant);
      expect([made.runState, Number(made.schedule.duration)]).toEqual(["IN_PROGRESS", 8 * 3_600_000]);
      expect(made.name).toMatch(/^web-1/);
      await page.goto(`#/entities/${entity}`);
      await page
        .getByRole("region", { name: "Maintenance windows that hold it now" })
        .getByRole("link", { name: made.name })
        .waitFor();
    });

  onPage("begins at once though the schedule is left half written", async (page) => {
    const { tenant, entity } = await withEvent();
    await page.logIn(tenant, `#/windows/new?entity=${encodeURIComponent(entity)}`);
    await page.getByLabel("A run takes", { exact: true }).fill("");
    await page.getByLabel("Repeats").selectOption({ label: "As in cron" });
    await page.getByLabel("Minutes", { exact: true }).fill("");
    await page.getByRole("group", { name: "Start now" }).getByRole("button", { name: "2 h" }).click();
    await page.getByText("Running").waitFor();
  });

  onPage("that begins now has no name yet where no entity is named, and says so", async (page) => {
    const { tenant } = await withEvent();
    await page.logIn(tenant, "#/windows/new");
    await page.getByRole("group", { name: "Start now" }).getByRole("button", { name: "2 h" }).click();
    expect(await windows(tenant)).toEqual([]);
    await page.getByRole("heading", { level: 1, name: "New maintenance window" }).waitFor();
  });
});
