import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect } from "vitest";
import { TriggerService } from "#gen/belfry/notifications/v1/trigger_service_pb.ts";
import { transport } from "../support/clients.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { ordinaryDay } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const { onPage } = domPage(server);
const call = v1(server, tenant);
const triggers = createClient(TriggerService, transport(server.target, "connect", tenant.headers));
beforeAll(() => ordinaryDay(server, tenant));

const stored = async (name: string) => (await triggers.getTrigger({ name })).trigger;
const make = (name: string, clause: object) =>
  call("/v1/notification/triggers", { name, type: { event: { query: { clause } } } });
const named = (value: string) => ({ equals: { field: "name", value: { stringVal: value } } });

const form = (page: DomPage) => page.getByRole("form", { name: "Trigger" });
const conditions = (page: DomPage) => page.getByRole("group", { name: "An event matches when" });
const preview = (page: DomPage) => page.getByRole("region", { name: "Would have matched" });

describe("the list of triggers", () => {
  onPage("says what each looks at, which rules use it, and what is wrong with it", async (page) => {
    await make("broken one", named("disk full"));
    await sql`update triggers set type = '{"event": {"query": {"clause": {"and": {"clauses": []}}}}}' where name = 'broken one'`;
    await page.logIn(tenant, "#/rules/triggers");
    const critical = page.getByRole("row").filter({ hasText: "critical" }).first();
    await critical.getByText("severity is at least critical").waitFor();
    await critical.getByRole("link", { name: "page on critical" }).waitFor();
    await page.getByRole("row").filter({ hasText: "broken one" }).getByText("must not be empty").waitFor();
    await page.getByLabel("Part of the name").fill("criti");
    await page.getByText("1 trigger", { exact: true }).waitFor();
    await page.getByLabel("Source").selectOption("staleData");
    await page.getByText("No trigger matches these filters.").waitFor();
    await page.goBack();
    await critical.getByText("critical", { exact: true }).first().click();
    await page.getByRole("heading", { level: 1, name: "critical" }).waitFor();
    await sql`delete from triggers where name = 'broken one'`;
  });
});

describe("a trigger on events", () => {
  onPage("says at a condition what is wrong with it, while it is typed and when it is sent", async (page) => {
    await page.logIn(tenant, "#/rules/triggers?new=1");
    await conditions(page).getByLabel("Field").fill("name");
    await conditions(page).getByLabel("Value", { exact: true }).fill("disk full");
    await conditions(page).getByRole("button", { name: "+ Condition" }).click();
    await conditions(page).getByLabel("Field").nth(1).fill("severity");
    await conditions(page).getByLabel("Comparison").nth(1).selectOption("among");
    await conditions(page).getByLabel("Value", { exact: true }).nth(1).fill("SEVERITY_ERROR, SEVERITY_BAD");
    await preview(page).getByText("A condition is wrong: see the message beside it.").waitFor();
    const wrong = conditions(page).getByRole("alert");
    expect(await wrong.textContent()).toContain("which is none of");
    expect(await conditions(page).locator("[data-condition]", { has: wrong }).getByLabel("Field").inputValue()).toBe(
      "severity",
    );
    await page.getByLabel("Name", { exact: true }).fill("wrong one");
    await form(page).getByRole("button", { name: "Create the trigger" }).click();
    await page.getByText("Refused: see “An event matches when”.").waitFor();
    await conditions(page).locator("[data-condition]", { has: wrong }).locator(":focus").waitFor();
    await conditions(page).getByLabel("Value", { exact: true }).nth(1).fill("SEVERITY_ERROR, SEVERITY_CRITICAL");
    await wrong.waitFor({ state: "detached" });
    await preview(page).getByText("1 event of this time:").waitFor();
    await page.reload();
    await page.getByLabel("Name", { exact: true }).waitFor();
    expect(await conditions(page).getByLabel("Field").nth(1).inputValue()).toBe("severity");
    await form(page).getByRole("button", { name: "Discard changes" }).click();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("");
  });

  onPage("keeps a clause that the editor has no form for, which can be edited as JSON", async (page) => {
    const odd = { in: { field: "name", values: [{ stringVal: "a, b" }, { numberVal: 4 }] } };
    await make("odd", { or: { clauses: [odd, { not: { clause: named("link down") } }] } });
    await page.logIn(tenant, "#/rules/triggers/odd");
    expect(await conditions(page).getByLabel("Comparison").inputValue()).toBe("differs");
    await page.getByLabel("Description").fill("a strange one");
    await form(page).getByRole("button", { name: "Save" }).click();
    await page.getByText('The trigger "odd" was changed.').waitFor();
    const before = await stored("odd");
    expect(before?.description).toBe("a strange one");
    const json = conditions(page).getByLabel("Condition as JSON");
    await json.fill("{");
    await conditions(page)
      .getByText(/cannot be read/)
      .waitFor();
    await form(page).getByRole("button", { name: "Save" }).click();
    expect((await stored("odd"))?.etag).toBe(before?.etag);
    await json.fill('{"in": {"field": "name", "values": [{}]}}');
    await conditions(page)
      .getByRole("alert")
      .getByText(/stringVal|exactly one|required/)
      .waitFor();
    await json.fill('{"in": {"field": "name", "values": [{"stringVal": "a, c"}]}}');
    await form(page).getByRole("button", { name: "Save" }).click();
    await eventually(async () => JSON.stringify((await stored("odd"))?.type)).toContain("a, c");
    await page.settled();
    await page.getByRole("status", { name: "Done" }).getByRole("button", { name: "Undo" }).click();
    await eventually(async () => JSON.stringify((await stored("odd"))?.type)).toContain("a, b");
    await eventually(async () => await json.inputValue()).toContain("a, b");
  });
});

describe("what is asked while a condition is typed", () => {
  onPage("is cancelled when it is out of date", async (page) => {
    await page.logIn(tenant, "#/rules/triggers?new=1");
    const held = page.hold("PreviewTrigger");
    await conditions(page).getByLabel("Field").fill("name");
    await conditions(page).getByLabel("Value", { exact: true }).fill("disk");
    const { signal } = await held;
    await conditions(page).getByLabel("Value", { exact: true }).fill("disk full");
    await eventually(() => signal.aborted).toBe(true);
    await preview(page).getByText("1 event of this time:").waitFor();
    await page.getByLabel("Time range").selectOption("15m");
    await page.waitForHash(/range=15m/);
  });
});

describe("hostile names and texts of a trigger", () => {
  onPage("are text", async (page) => {
    const hostile = "<img src=x onerror=alert(1)>";
    await call("/v1/notification/triggers", {
      name: hostile,
      description: hostile,
      tags: [hostile],
      type: { event: { query: { clause: { contains: { field: hostile, value: hostile } } } } },
    });
    await page.logIn(tenant, "#/rules/triggers");
    await page.getByRole("row").getByText(`${hostile} contains “${hostile}”`).waitFor();
    await page.getByRole("row").getByText(hostile, { exact: true }).first().click();
    await page.getByRole("heading", { level: 1, name: hostile }).waitFor();
    await preview(page).getByText("No event of this time.").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(`The trigger "${hostile}" was deleted.`).waitFor();
    expect(await page.locator("img").count()).toBe(0);
  });
});

describe("a trigger on a metric", () => {
  onPage("has its values beside its bounds, and what is wrong at its fields", async (page) => {
    await page.logIn(tenant, "#/rules/triggers?new=1");
    await page.getByLabel("Name", { exact: true }).fill("slow answers");
    await page.getByLabel("Looks at").selectOption({ label: "Values of a metric" });
    await page.getByLabel("Metric", { exact: true }).fill("latency.p99");
    await page.locator('datalist option[value="latency.p99"]').waitFor();
    const values = page.getByRole("region", { name: "Values and bounds" });
    await values.getByText("1 series. Set a bound to see which were outside of it.").waitFor();
    await form(page).getByRole("button", { name: "Create the trigger" }).click();
    const bounds = page.getByRole("group", { name: "Good values" });
    await bounds.getByText("must have min, max or both, and min not above max").waitFor();
    await bounds.getByLabel("Highest good value").and(page.locator(":focus")).waitFor();
    await bounds.getByLabel("Highest good value").fill("1000");
    await values.getByText("0 of 1 series were out of bounds in this time.").waitFor();
    await bounds.getByLabel("Highest good value").fill("0.4");
    await values.getByText("1 of 1 series was out of bounds in this time.").waitFor();
    await values.getByRole("application", { name: /values and bounds/ }).waitFor();
    const entities = page.getByRole("group", { name: "Entities that count" });
    await entities.getByLabel("Field").fill("name");
    await entities.getByLabel("Comparison").selectOption("regex");
    await entities.getByLabel("Value", { exact: true }).fill("web-(");
    await form(page).getByRole("button", { name: "Create the trigger" }).click();
    await entities.getByRole("alert").getByText("a parenthesis that is not closed").waitFor();
    await entities.getByLabel("Value", { exact: true }).fill("web-.");
    const series = page.getByRole("group", { name: "Series that count" });
    await series.getByLabel("Field").fill("labels.core");
    await series.getByLabel("Comparison").selectOption("missing");
    await form(page).getByRole("button", { name: "Create the trigger" }).click();
    await page.getByRole("heading", { level: 1, name: "slow answers" }).waitFor();
    const source = (await stored("slow answers"))?.type?.source;
    expect(source).toMatchObject({ case: "metricThreshold", value: { metricName: "latency.p99", max: 0.4 } });
    expect(source?.case === "metricThreshold" && source.value.min).toBeUndefined();
    await page.goto("#/rules/triggers?text=slow");
    const words = "latency.p99 above 0.4, where labels.core does not exist, of entities whose name matches “web-.”";
    await page.getByRole("row").getByText(words).waitFor();
  });
});

/** Records the texts that canvases are given from now on, with the middle of each. Returns the end of that, too. */
function canvasTexts() {
  const { document } = globalThis as unknown as { document: { createElement(tag: string): object } };
  const prototype = Object.getPrototypeOf(document.createElement("canvas")) as { getContext(): unknown };
  const texts: { text: string; x: number }[] = [];
  const before = prototype.getContext;
  prototype.getContext = () =>
    new Proxy({} as Record<string | symbol, unknown>, {
      get: (state, name) => {
        if (name === "fillText") return (text: string, x: number) => texts.push({ text, x });
        return name in state ? state[name] : () => undefined;
      },
    });
  return { texts, end: () => Object.assign(prototype, { getContext: before }) };
}

describe("the values of a metric beside its bounds", () => {
  const hourMs = 3_600_000;
  const open = async (page: DomPage, metric: string, range = "6h") => {
    await page.logIn(tenant, `#/rules/triggers?new=1&range=${range}`);
    await page.getByLabel("Looks at").selectOption({ label: "Values of a metric" });
    await page.getByLabel("Metric", { exact: true }).fill(metric);
    return page.getByRole("region", { name: "Values and bounds" });
  };

  onPage("are in the unit in which bounds are typed; a bound has no series' colour", async (page) => {
    // The dictionary shows it in percent.
    const values = await open(page, "system.cpu.utilization");
    await page.getByLabel("Highest good value").fill("0.95");
    await values.getByText("Highest good value: 0.95").waitFor();
    const plot = values.getByRole("application", { name: /values and bounds/ });
    await plot.focus();
    await plot.press("End");
    await values.getByText(/^web-1 .*: 0\.\d+$/).waitFor();
    const colours = values
      .locator("li > span[style]")
      .all()
      .map(async (each) => /color: ([^;]+)/.exec((await each.getAttribute("style")) ?? "")?.[1]);
    const [bound, ...series] = await Promise.all(colours);
    expect(bound).toBeTruthy();
    expect(series).toHaveLength(1);
    expect(series).not.toContain(bound);
  });

  onPage("have room for the time at the very end of the axis", async (page) => {
    const { texts, end } = canvasTexts();
    try {
      const last = (Math.floor(Date.now() / hourMs) + 1) * hourMs;
      const values = await open(page, "latency.p99", `${last - 6 * hourMs}-${last}`);
      await values.getByRole("application", { name: /values and bounds/ }).waitFor();
      await eventually(() => texts.some(({ text }) => /^\d\d:00$/.test(text))).toBe(true);
      const times = texts.filter(({ text }) => /^\d\d:00$/.test(text));
      // Half of five digits of eleven pixels beyond the middle; the frame is 1280 wide.
      expect(Math.max(...times.map(({ x }) => x))).toBeLessThanOrEqual(1280 - 15);
    } finally {
      end();
    }
  });

  onPage("say of how many entities they are", async (page) => {
    const own = await testTenant(sql);
    const models = Array.from({ length: 21 }, (_, at) => ({
      timestamp: Date.now(),
      dimensions: { source: `host-${at}` },
      metadataFields: { name: `host-${at}`, source_type: "host" },
    }));
    await v1(server, own)("/v1/data-receiver/models", { models });
    await page.logIn(own, "#/rules/triggers?new=1");
    await page.getByLabel("Looks at").selectOption({ label: "Values of a metric" });
    await page.getByLabel("Metric", { exact: true }).fill("load");
    await page
      .getByText("No series of this metric in this time. Only the first 20 of 21 entities were looked at.")
      .waitFor();
  });
});

describe("a trigger on missing data", () => {
  onPage("takes its time in any unit, and shows whose data would be missed", async (page) => {
    await page.logIn(tenant, "#/rules/triggers?new=1");
    await page.getByLabel("Name", { exact: true }).fill("silent");
    await page.getByLabel("Looks at").selectOption({ label: "Missing data" });
    const entities = page.getByRole("region", { name: "Entities that count" });
    await entities.getByText("6 entities:").waitFor();
    await form(page).getByRole("button", { name: "Create the trigger" }).click();
    await page
      .getByRole("group", { name: "What is missed" })
      .getByText("must have metricName, eventName or both")
      .waitFor();
    await page.getByLabel("Event", { exact: true }).fill("backup finished");
    await page.getByLabel("Matches after this time without data", { exact: true }).fill("1.5");
    await page.getByLabel("Unit of: Matches after this time without data").selectOption("days");
    await form(page).getByRole("button", { name: "Create the trigger" }).click();
    await page.getByRole("heading", { level: 1, name: "silent" }).waitFor();
    const source = (await stored("silent"))?.type?.source;
    expect(source).toMatchObject({ value: { eventName: "backup finished", durationSec: 129_600n } });
    await page.reload();
    expect(await page.getByLabel("Matches after this time without data", { exact: true }).inputValue()).toBe("36");
    await page.getByRole("link", { name: "Duplicate" }).click();
    await page.getByRole("heading", { level: 1, name: "Copy of silent" }).waitFor();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("silent copy");
    expect(await page.getByLabel("Event", { exact: true }).inputValue()).toBe("backup finished");
  });
});

describe("two people who change the same trigger", () => {
  const both = async (second: DomPage, name: string) => {
    await make(name, named("disk full"));
    await second.logIn(tenant, `#/rules/triggers/${encodeURIComponent(name)}`);
    await second.getByLabel("Description").fill("of the second");
    const first = await stored(name);
    await triggers.updateTrigger({ trigger: { ...first, name, description: "of the first" } } as never);
    await form(second).getByRole("button", { name: "Save" }).click();
    const conflict = second.getByRole("alert", { name: "Changed meanwhile" });
    const row = conflict.getByRole("row").filter({ hasText: "description" });
    await row.getByRole("cell", { name: "of the first" }).waitFor();
    await row.getByRole("cell", { name: "of the second" }).waitFor();
    expect((await stored(name))?.description).toBe("of the first");
    return conflict;
  };

  onPage("are told: the second sees both changes, and saves over the other one", async (page) => {
    const conflict = await both(page, "for two");
    await conflict.getByRole("button", { name: "Overwrite it with mine" }).click();
    await page.getByText('The trigger "for two" was changed.').waitFor();
    await conflict.waitFor({ state: "detached" });
    expect((await stored("for two"))?.description).toBe("of the second");
    // It takes back what was saved here, and leaves what the other person saved.
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    expect((await stored("for two"))?.description).toBe("of the first");
    await eventually(() => page.getByLabel("Description").inputValue()).toBe("of the first");
    await page.getByLabel("Description").fill("once more");
    await form(page).getByRole("button", { name: "Save" }).click();
    await eventually(async () => (await stored("for two"))?.description).toBe("once more");
  });

  onPage("are told: the second takes what is on the server", async (page) => {
    const conflict = await both(page, "for both");
    await conflict.getByRole("button", { name: "Use the version on the server" }).click();
    await conflict.waitFor({ state: "detached" });
    expect(await page.getByLabel("Description").inputValue()).toBe("of the first");
    await page.getByLabel("Description").fill("after both");
    await form(page).getByRole("button", { name: "Save" }).click();
    await eventually(async () => (await stored("for both"))?.description).toBe("after both");
  });
});

describe("deleting a trigger", () => {
  onPage("asks, says which rules use it, and can be taken back", async (page) => {
    await page.logIn(tenant, "#/rules/triggers/critical");
    await page.getByRole("button", { name: "Delete…" }).click();
    const question = page.getByRole("dialog", { name: 'Delete the trigger "critical"?' });
    await question.getByRole("link", { name: "page on critical" }).waitFor();
    await question.getByRole("button", { name: "Delete" }).click();
    await question.getByRole("alert").getByText("is used by").waitFor();
    await question.getByRole("button", { name: "Cancel" }).click();
    await make("unused", named("disk full"));
    const before = await stored("unused");
    await page.goto("#/rules/triggers/unused");
    await page.getByText("No rule uses it: no one is notified.").waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText('The trigger "unused" was deleted.').waitFor();
    await page.getByRole("heading", { level: 1, name: "Triggers" }).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("heading", { level: 1, name: "unused" }).waitFor();
    expect(await stored("unused")).toEqual(before);
  });

  onPage("has no button for a key that may only read, which still sees what would match", async (page) => {
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/rules/triggers/critical");
    await preview(page).getByRole("link", { name: "link down" }).waitFor();
    expect(await page.getByRole("button", { name: /Delete|Save/ }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Duplicate" }).count()).toBe(0);
    expect(await page.getByLabel("Description").isDisabled()).toBe(true);
  });
});
