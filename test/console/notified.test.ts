import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { raw } from "../support/clients.ts";
import { domPage, eventually } from "../support/dom-page.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";

const receiver = await httpReceiver();
afterAll(() => receiver[Symbol.asyncDispose]());
const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.1" });
const { sql } = server.database;
const { onPage } = domPage(server);

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer(answering(200, "thanks"));
});

/** A tenant with a rule that sends what is critical to the receiver, and ten that match nothing. */
async function withRules(): Promise<TestTenant> {
  const tenant = await testTenant(sql);
  const call = v1(server, tenant);
  const above = (name: string, value: number) =>
    call("/v1/notification/triggers", {
      name,
      type: { event: { query: { clause: { greaterAndEquals: { field: "severity", value: { numberVal: value } } } } } },
    });
  await above("critical", Severity.CRITICAL);
  await above("never", 1000);
  await call("/v1/notification/destinations", {
    name: "pager",
    type: { webhook: { url: `${receiver.url}/hook` } },
  });
  const rule = (name: string, trigger: string) =>
    call("/v1/notification/rules", {
      name,
      enabled: true,
      triggerNames: [trigger],
      destinationNames: ["pager"],
      message: "{{event.name}}",
    });
  for (let at = 0; at < 10; at += 1) await rule(`CPU <i>${at}</i>`, "never");
  await rule("page", "critical");
  return tenant;
}

const critical = (name: string) => [{ name, source: "web-1", severity: Severity.CRITICAL }];

async function occurrenceOf(tenant: TestTenant): Promise<string> {
  const { results } = await v1(server, tenant)("/v1/events:search", { query: {} });
  return results[0].occurrences[0].id;
}

async function failedCount({ headers }: TestTenant): Promise<string> {
  const asked = { method: "GET", path: "/v1/notification/deliveries?status=FAILED", headers };
  const { body } = await raw(server.target, "2", asked);
  return JSON.parse(body.toString()).totalCount;
}

describe("who was notified of an occurrence", () => {
  onPage("stands open: the rule that sent with what came back, and the others folded below", async (page) => {
    const tenant = await withRules();
    await sendEvents(server, tenant, critical("disk full"));
    await eventually(() => receiver.received.length).toBe(1);
    await page.logIn(tenant, `#/occurrences/${await occurrenceOf(tenant)}`);
    const notified = page.getByRole("region", { name: "Who was notified" });
    const sent = notified.getByRole("article", { name: "Rule page" });
    await sent.getByText("Sent").first().waitFor();
    await sent
      .getByText(/thanks/)
      .first()
      .waitFor();
    await notified.getByText("10 rules do not apply").click();
    expect(notified.getByRole("article", { name: /^Rule/ }).allTextContents()[0]).toMatch(/page/);
    await notified
      .getByRole("article", { name: "Rule CPU <i>3</i>" })
      .getByText("No trigger of the rule matches.")
      .waitFor();
  });

  onPage("follows what is decided and answered while one looks", async (page) => {
    const tenant = await withRules();
    await sendEvents(server, tenant, [{ name: "load", source: "web-1", severity: Severity.WARNING }]);
    await page.logIn(tenant, `#/occurrences/${await occurrenceOf(tenant)}`);
    const notified = page.getByRole("region", { name: "Who was notified" });
    await notified.getByText("Nobody: no rule applies to it.").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, critical("load"));
    await notified
      .getByRole("article", { name: "Rule page" })
      .getByText(/thanks/)
      .first()
      .waitFor();
  });

  onPage("without a rule it says so, and a failure can be asked again", async (page) => {
    const tenant = await testTenant(sql);
    await sendEvents(server, tenant, critical("lonely"));
    const id = await occurrenceOf(tenant);
    await page.logIn(tenant);
    await page.settled();
    const failed = page.fail("ExplainOccurrence");
    await page.goto(`#/occurrences/${id}`);
    await failed;
    const notified = page.getByRole("region", { name: "Who was notified" });
    await notified.getByText(/there is no rule/).waitFor();
  });
});

describe("the health of notifying", () => {
  onPage("stands on the first screen, and all that failed is sent again, with what came back", async (page) => {
    const tenant = await withRules();
    receiver.answer(answering(400, "no such hook"));
    const names = Array.from({ length: 5 }, (_, at) => `disk ${at}`);
    await sendEvents(server, tenant, names.flatMap(critical));
    await eventually(() => failedCount(tenant)).toBe("5");
    await page.logIn(tenant);
    const strip = page.getByRole("region", { name: "Health of notifying" });
    await strip.getByText("5 failed in the last hour.").waitFor();
    await strip.getByRole("link", { name: "What failed" }).click();
    const troubles = page.getByRole("region", { name: "Destinations in trouble" });
    const again = async () => {
      await troubles.getByRole("button", { name: "Send all that failed to pager again…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Send again", exact: true }).click();
    };
    await again();
    await troubles.getByText(/5 sent again; 0 arrived; 5 failed: .*no such hook/).waitFor();
    receiver.answer(answering(200, "thanks"));
    await again();
    await troubles.getByText("5 sent again; 5 arrived", { exact: true }).waitFor();
  });

  onPage("counts the destinations that take nothing, in the navigation too", async (page) => {
    const tenant = await withRules();
    receiver.answer(answering(410, "gone <b>for good</b>"));
    await sendEvents(server, tenant, critical("disk full"));
    await eventually(() => failedCount(tenant)).toBe("1");
    await page.logIn(tenant);
    await page.getByText("1 of 1 destination takes no notifications.").waitFor();
    const link = page.getByRole("link", { name: /^Deliveries/ });
    await link.getByText("destination takes no notifications").waitFor();
    await link.click();
    await page
      .getByRole("region", { name: "Destinations in trouble" })
      .getByText(/disabled/)
      .waitFor();
  });
});

describe("a message of a group", () => {
  onPage("is known by the labels of its group in the list", async (page) => {
    const tenant = await withRules();
    await v1(server, tenant)("/v1/notification/rules", {
      name: "by name",
      enabled: true,
      matchers: ["severity=critical"],
      destinationNames: ["pager"],
      grouping: { by: ["alertname", "source"], waitSec: 0 },
    });
    await sendEvents(server, tenant, critical("disk full"));
    await eventually(() => receiver.received.length).toBe(2);
    await page.logIn(tenant, "#/deliveries?rule=by%20name");
    const grid = page.getByRole("grid", { name: "Deliveries" });
    await grid.getByText(/alertname=disk full, source=web-1/).waitFor();
  });
});

describe("a delivery that failed", () => {
  onPage("is sent again, says what came back, and stays open beyond the filter that found it", async (page) => {
    const tenant = await withRules();
    receiver.answer(answering(400, "no such hook"));
    await sendEvents(server, tenant, critical("disk full"));
    await eventually(() => failedCount(tenant)).toBe("1");
    await page.logIn(tenant, "#/deliveries?status=3");
    await page.getByText("1 in all").waitFor();
    await page.getByRole("grid", { name: "Deliveries" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Delivery" });
    await dialog.getByRole("button", { name: "Send again" }).click();
    await dialog.getByText(/Sent again. Failed: .*no such hook/).waitFor();
    receiver.answer(answering(200, "thanks"));
    await dialog.getByRole("button", { name: "Send again" }).click();
    await dialog.getByText(/Sent again. Sent: .*thanks/).waitFor();
    await page.getByText("No delivery matches these filters.").waitFor();
    await dialog.getByText("the rule is enabled").waitFor();
  });
});

describe("the list of deliveries", () => {
  onPage("names what each is about, and is filtered by an event, an entity and time", async (page) => {
    const tenant = await withRules();
    await sendEvents(server, tenant, [
      { name: "disk <b>full</b>", source: "web-1", severity: Severity.CRITICAL },
      { name: "disk slow", source: "web-1", severity: Severity.CRITICAL },
      { name: "link down", source: "web-2", severity: Severity.CRITICAL },
    ]);
    await eventually(() => receiver.received.length).toBe(3);
    await page.logIn(tenant, "#/deliveries");
    const about = page.getByLabel("About");
    const choose = async (words: string, whole: string) => {
      await about.type(words);
      await page.locator(`option[value="${whole}"]`).waitFor({ state: "attached" });
      await about.fill(whole);
    };
    await page.getByRole("row").filter({ hasText: "link down on web-2" }).waitFor();
    await choose("full", "disk <b>full</b> on web-1");
    await page.getByText("1 in all").waitFor();
    await page.getByRole("button", { name: "Of disk <b>full</b> on web-1 ×" }).click();
    await page.getByText("3 in all").waitFor();
    await choose("web-1", "web-1");
    await page.getByText("2 in all").waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Of web-1 ×" }).waitFor();
    await page.goto(`#/deliveries?range=1-${Date.now() - 3_600_000}`);
    await page.getByText("No delivery matches these filters.").waitFor();
  });

  onPage("is found by a part of a name and Enter, which offers the names where several have it", async (page) => {
    const tenant = await withRules();
    await sendEvents(server, tenant, critical("disk full"));
    await page.logIn(tenant, "#/deliveries");
    await page.getByText("1 in all").waitFor();
    const enter = async (label: string, text: string) => {
      await page.getByLabel(label, { exact: true }).fill(text);
      await page.getByLabel(label, { exact: true }).press("Enter");
    };
    await enter("Rule", "pag");
    await page.waitForHash(/rule=page$/);
    await page.getByText("1 in all").waitFor();
    await enter("Rule", "CPU");
    await page
      .getByRole("group", { name: "Rules with this name" })
      .getByRole("button", { name: "CPU <i>3</i>" })
      .click();
    await page.waitForHash(/rule=CPU\+%3Ci%3E3%3C%2Fi%3E$/);
    await page.getByText("No delivery matches these filters.").waitFor();
    await page.getByRole("group", { name: "Rules with this name" }).waitFor({ state: "detached" });
    // What is deleted is found by its whole name.
    await enter("Rule", "gone");
    await page.waitForHash(/rule=gone$/);
  });

  onPage("keeps words that nothing has or that the server did not look for, and says so", async (page) => {
    const tenant = await withRules();
    await page.logIn(tenant, "#/deliveries");
    await page.getByText("Nothing was sent yet.").waitFor();
    const enter = async (label: string, text: string) => {
      await page.getByLabel(label, { exact: true }).fill(text);
      await page.getByLabel(label, { exact: true }).press("Enter");
    };
    await enter("About", "nowhere");
    await page.getByRole("status").getByText("Nothing has this name.").waitFor();
    expect(page.getByLabel("About").value()).toBe("nowhere");
    await page.getByLabel("About").fill("");
    await page.settled();
    const away = () => () => Promise.reject(new ConnectError("Failed to fetch", Code.Unavailable));
    for (let call = 0; call < 10; call += 1) page.passBy("ListDestinations", away);
    await enter("Destination", "pag");
    await page.getByRole("status").getByText("The server did not answer.").waitFor();
    expect(page.getByLabel("Destination").value()).toBe("pag");
    expect(page.hash()).toBe("#/deliveries");
  });

  onPage("takes no name any more once one has gone to another screen", async (page) => {
    const tenant = await withRules();
    await page.logIn(tenant, "#/deliveries");
    await page.getByText("Nothing was sent yet.").waitFor();
    const search = page.hold("ListRules");
    await page.getByLabel("Rule", { exact: true }).fill("pag");
    const { release } = await search;
    await page.goto("#/silences?state=any");
    release();
    await page.settled();
    expect(page.hash()).toBe("#/silences?state=any");
  });

  onPage("shows what is decided and answered while one looks; while one reads, new ones wait", async (page) => {
    const tenant = await withRules();
    await page.logIn(tenant, "#/deliveries");
    await page.getByText("Nothing was sent yet.").waitFor();
    await page.getByText("Live", { exact: true }).waitFor();
    await sendEvents(server, tenant, critical("first"));
    await page.getByRole("row").filter({ hasText: "first on" }).filter({ hasText: "Sent" }).waitFor();
    const grid = await page.getByRole("grid", { name: "Deliveries" }).element();
    const { Event } = grid.ownerDocument.defaultView as unknown as { Event: new (type: string) => never };
    grid.dispatchEvent(new Event("pointermove"));
    await sendEvents(server, tenant, critical("second"));
    await page.getByRole("button", { name: "1 new" }).click();
    await page.getByRole("row").filter({ hasText: "second on" }).waitFor();
  });

  onPage("leads by its link to a delivery that is not among the newest", async (page) => {
    const tenant = await withRules();
    await sendEvents(server, tenant, critical("disk full"));
    const list = async () => {
      const asked = { method: "GET", path: "/v1/notification/deliveries", headers: tenant.headers };
      return JSON.parse((await raw(server.target, "2", asked)).body.toString());
    };
    await eventually(async () => (await list()).totalCount).toBe("1");
    const [{ id }] = (await list()).deliveries;
    // A filter that does not list it stands for newer ones that fill the page.
    await page.logIn(tenant, `#/deliveries?rule=other&open=${id}`);
    await page.getByText("No delivery matches these filters.").waitFor();
    await page.getByRole("dialog", { name: "Delivery" }).getByText("the rule is enabled").waitFor();
  });
});
