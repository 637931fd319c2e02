import { afterAll, beforeEach, describe, expect } from "vitest";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { raw } from "../support/clients.ts";
import type { Place } from "../support/dom-locator.ts";
import { type DomPage, domPage, eventually } from "../support/dom-page.ts";
import { answering, httpReceiver, mailReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, type TestTenant, testTenant } from "../support/tenant.ts";
import { sendEvents } from "./console-page.ts";
import { v1 } from "./json-call.ts";
import { written } from "./written-kinds.ts";

const receiver = await httpReceiver();
const relay = await mailReceiver();
afterAll(() => Promise.all([receiver[Symbol.asyncDispose](), relay[Symbol.asyncDispose]()]));
const server = await testServer({
  BELFRY_OUTBOUND_ALLOW: "127.0.0.1",
  BELFRY_SMTP_URL: `smtp://127.0.0.1:${relay.port}?ignoreTLS=true`,
  BELFRY_SMTP_SENDER: "belfry@example.com",
});
const { sql } = server.database;
const { onPage } = domPage(server);

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer(answering(200, "thanks"));
});

const header = "Bearer h3ader-s3cret";
const signing = `whsec_${Buffer.from("a signing secret of some bytes").toString("base64")}`;

/** What is stored of a destination, over /v1. */
async function stored(tenant: TestTenant, name: string) {
  const path = `/v1/notification/destinations/${encodeURIComponent(name)}`;
  const answer = await raw(server.target, "2", { method: "GET", path, headers: tenant.headers });
  return JSON.parse(answer.body.toString()).destination;
}

/** Opens the form of a new destination of a kind, which the choice calls `word`. */
async function newDestination(page: DomPage, tenant: TestTenant, name: string, word: string): Promise<Place> {
  await page.logIn(tenant, "#/rules/destinations?new=1");
  return await nextDestination(page, name, word);
}

async function nextDestination(page: DomPage, name: string, word: string): Promise<Place> {
  const form = page.getByRole("form", { name: "New destination" });
  await form.getByLabel("Name", { exact: true }).first().fill(name);
  await form.getByLabel("Kind").selectOption({ label: word });
  return form;
}

const one = (page: DomPage) => page.getByRole("form", { name: "Destination", exact: true });
const resultOf = (page: DomPage) => page.getByRole("status", { name: "Result of the test" });

describe("a webhook", () => {
  onPage("is made with secrets that the page forgets once it is saved; its test shows the answer", async (page) => {
    const tenant = await testTenant(sql);
    const form = await newDestination(page, tenant, "on call", "Webhook");
    await form.getByLabel("Address").fill(`${receiver.url}/hook`);
    await form.getByLabel("Signing secret", { exact: true }).fill(signing);
    await form.getByRole("button", { name: "Add a header" }).click();
    await form.getByLabel("Name of header 1").fill("authorization");
    await form.getByLabel("Value of header 1").fill(header);
    expect(JSON.stringify(page.sessionStored())).not.toContain("s3cret");
    await form.getByRole("button", { name: "Send a test" }).click();
    await resultOf(page).getByText("HTTP 200: thanks").waitFor();
    await form.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "on call" }).waitFor();
    await one(page).waitFor();
    for (const secret of [header, signing]) expect(await page.held()).not.toContain(secret);

    // The stored secrets are used, though the page has them no more.
    await one(page).getByRole("button", { name: "Send a test" }).click();
    await resultOf(page).getByText("HTTP 200: thanks").waitFor();
    expect(receiver.received.map(({ headers }) => headers.authorization)).toEqual([header, header]);
    receiver.answer(answering(500, "the disk is full"));
    await one(page).getByRole("button", { name: "Send a test" }).click();
    await resultOf(page).getByText("the test notification was not taken (busy): HTTP 500: the disk is full").waitFor();
  });

  onPage("keeps its secrets while the rest is changed, undone and reloaded, until they are removed", async (page) => {
    const tenant = await testTenant(sql);
    const secrets = { signingSecret: signing, headers: { authorization: header } };
    const type = { webhook: { url: `${receiver.url}/hook`, ...secrets } };
    await v1(server, tenant)("/v1/notification/destinations", { name: "on call", type });
    await page.logIn(tenant, "#/rules/destinations/on%20call");
    await one(page).getByLabel("Description").fill("who is awake");
    await one(page).getByLabel("Signing secret", { exact: true }).fill("half of a new one");
    await page.reload();
    await one(page).getByRole("button", { name: "Save" }).click();
    await page.getByRole("status", { name: "Done" }).getByText('The destination "on call" was changed.').waitFor();
    expect(await stored(tenant, "on call")).toMatchObject({
      description: "who is awake",
      type: { webhook: { signingSecret: "********", headers: { authorization: "********" } } },
    });
    await page.getByRole("button", { name: "Undo" }).click();
    await eventually(() => one(page).getByLabel("Description").inputValue()).toBe("");
    const [name, value] = ["Name", "Value"].map((part) => one(page).getByLabel(`${part} of header 1`));
    await name?.fill("x-authorization");
    expect(await value?.getAttribute("placeholder")).toBe("value");
    await name?.fill("authorization");
    expect(await value?.getAttribute("placeholder")).toBe("stored; type to replace it");
    await one(page).getByRole("button", { name: "Remove: Signing secret" }).click();
    await one(page).getByRole("button", { name: "Remove header 1, authorization" }).click();
    await one(page).getByRole("button", { name: "Save" }).click();
    await eventually(async () => (await stored(tenant, "on call")).type.webhook).toMatchObject({
      signingSecret: "",
      headers: {},
    });
  });

  onPage("has a signing secret made, which is shown once", async (page) => {
    const tenant = await testTenant(sql);
    const form = await newDestination(page, tenant, "signed", "Webhook");
    await form.getByLabel("Address").fill(`${receiver.url}/hook`);
    await form.getByRole("checkbox", { name: /Have a signing secret made/ }).check();
    await form.getByRole("button", { name: "Create" }).click();
    const shown = page.getByRole("region", { name: "Signing secret of the webhook" });
    const secret = await shown.getByLabel("Signing secret of the webhook").inputValue();
    expect(secret).toMatch(/^whsec_.{40,}$/);
    await shown.getByRole("button", { name: "Done" }).click();
    await page.getByRole("heading", { level: 1, name: "signed" }).waitFor();
    await one(page).waitFor();
    expect(await page.held()).not.toContain(secret);
  });

  onPage("sends what its template makes, which is shown as it is typed", async (page) => {
    const tenant = await testTenant(sql);
    const form = await newDestination(page, tenant, "chat", "Webhook");
    await form.getByLabel("Address").fill(`${receiver.url}/hook`);
    const body = form.getByLabel("Body", { exact: true });
    expect(form.getByLabel("Format").locator("option").allTextContents()).toEqual([
      "Belfry's own",
      "Alertmanager",
      "Template",
    ]);
    await form.getByLabel("Format").selectOption({ label: "Alertmanager" });
    expect(body.count()).toBe(0);
    await form.getByLabel("Format").selectOption({ label: "Template" });
    await body.fill("{{#alerts}}");
    await form.getByText(/The body is no Mustache template: unclosed/).waitFor();
    await body.fill("no JSON");
    await form.getByText(/The body makes no JSON/).waitFor();
    await body.fill('{"count": ');
    await form.getByText("Insert a variable").click();
    await form.getByLabel("Variables with").fill("count");
    await form.getByRole("button", { name: "Insert count", exact: true }).click();
    expect(await body.inputValue()).toBe('{"count": {{count}}');
    await body.fill('{"count": {{count}}, "rule": "{{rule.name}} \\"it\\""}');
    await form.getByRole("region", { name: "Body of a group of three" }).getByText('{"count": 3,').waitFor();
    // What was written comes back with its format.
    await form.getByLabel("Format").selectOption({ label: "Belfry's own" });
    await form.getByLabel("Format").selectOption({ label: "Template" });
    await form.getByRole("button", { name: "Send a test" }).click();
    await resultOf(page).getByText("HTTP 200: thanks").waitFor();
    expect(JSON.parse(receiver.received.at(-1)?.body ?? "")).toMatchObject({ count: 1 });
    await form.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { level: 1, name: "chat" }).waitFor();
    expect((await stored(tenant, "chat")).type.webhook).toMatchObject({
      format: "WEBHOOK_FORMAT_TEMPLATE",
      body: '{"count": {{count}}, "rule": "{{rule.name}} \\"it\\""}',
    });
    await one(page).getByLabel("Format").selectOption({ label: "Alertmanager" });
    await one(page).getByRole("button", { name: "Save" }).click();
    await eventually(async () => (await stored(tenant, "chat")).type.webhook).toMatchObject({
      format: "WEBHOOK_FORMAT_ALERTMANAGER",
      body: "",
    });
  });

  onPage("whose receiver keeps silent: the test is cancelled, and the request ends", async (page) => {
    const tenant = await testTenant(sql);
    const ended = Promise.withResolvers<void>();
    receiver.answer((_request, response) => {
      response.on("close", () => ended.resolve());
    });
    const form = await newDestination(page, tenant, "silent", "Webhook");
    await form.getByLabel("Address").fill(`${receiver.url}/hook`);
    await form.getByRole("button", { name: "Send a test" }).click();
    await eventually(() => receiver.received.length).toBe(1);
    await form.getByRole("button", { name: "Cancel the test" }).click();
    await resultOf(page).getByText("Cancelled.").waitFor();
    await ended.promise;
  });

  onPage("that is refused says so at its fields, in the API's words; a test as well", async (page) => {
    const tenant = await testTenant(sql);
    const form = await newDestination(page, tenant, "wrong", "Webhook");
    await form.getByLabel("Address").fill("ftp://example.com");
    await form.getByRole("button", { name: "Add a header" }).click();
    await form.getByLabel("Name of header 1").fill("host");
    await form.getByLabel("Value of header 1").fill("example.com");
    for (const press of ["Send a test", "Create"]) {
      await form.getByLabel("Limit per minute").focus();
      await form.getByRole("button", { name: press }).click();
      await form.getByText("must be an address that begins with http:// or https://").waitFor();
      await form.getByText('["host"] is set by the service').waitFor();
      await form.getByText("Refused: see “Address” and “Headers”.").waitFor();
      // The first of them has the focus, and nothing else says so once more.
      await form.getByLabel("Address").and(page.locator(":focus")).waitFor();
      expect(await form.getByText(/the form says why|see the messages/).count()).toBe(0);
    }
    const described = await form.getByLabel("Address").getAttribute("aria-describedby");
    expect(await page.locator(`[id="${described?.split(" ").at(-1)}"]`).textContent()).toContain("must be an address");
  });
});

describe("the kinds", () => {
  onPage("are those of the API, and each is made in its own form", async (page) => {
    const tenant = await testTenant(sql);
    await page.logIn(tenant, "#/rules/destinations?new=1");
    const kinds = page.getByRole("form").getByLabel("Kind").locator("option");
    await kinds.first().waitFor({ state: "attached" });
    expect(kinds.all().map((each) => each.value())).toEqual(
      DestinationTypeSchema.fields.map(({ jsonName }) => jsonName),
    );
    expect(kinds.allTextContents().sort()).toEqual(Object.keys(written).sort());
    for (const [word, { fields, type }] of Object.entries(written)) {
      await page.goto("#/rules/destinations?new=1");
      const form = await nextDestination(page, `a ${word}`, word);
      for (const [label, text] of fields) await enter(form, label, text);
      await form.getByRole("button", { name: "Create" }).click();
      await page.getByRole("heading", { level: 1, name: `a ${word}` }).waitFor();
      expect((await stored(tenant, `a ${word}`)).type, word).toMatchObject(type);
    }
    await page.getByRole("link", { name: "Destinations" }).first().click();
    await page.getByText("7 in all").waitFor();
    await page.getByLabel("Kind").selectOption({ label: "Slack (teamChat)" });
    await page.getByText("1 in all").waitFor();
    await page.getByRole("row").filter({ hasText: "#ops" }).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("nothing");
    await page.getByText("No destination matches these filters.").waitFor();
  });

  /** Presses a button of this name, or fills the last field of it. */
  async function enter(form: Place, label: string, text: string) {
    const button = form.getByRole("button", { name: label });
    if (text === "") return void (await button.click());
    const field = form.getByLabel(label, { exact: true }).last();
    const isChoice = (await field.element()).tagName === "SELECT";
    if (isChoice) await field.selectOption({ label: text });
    else await field.fill(text);
  }

  onPage("an e-mail's test reaches the mail relay, and says what that answered", async (page) => {
    const form = await newDestination(page, await testTenant(sql), "mail", "E-mail");
    await form.getByLabel("To").fill("ops@example.com");
    await form.getByLabel("Subject").fill("{{#clear}}");
    await form.getByRole("button", { name: "Send a test" }).click();
    await form
      .getByText(/unclosed|not closed|must/i)
      .first()
      .waitFor();
    await form.getByLabel("Subject").fill("Look: {{{event.name}}}");
    await form.getByRole("button", { name: "Send a test" }).click();
    await resultOf(page).getByText(/^250 /).waitFor();
    expect(await form.getByText(/line 1, column/).count()).toBe(0);
    expect(relay.mails.at(-1)).toMatchObject({ to: ["ops@example.com"] });
    expect(relay.mails.at(-1)?.raw).toContain("Subject: Look: belfry-test");
  });
});

describe("a stored destination", () => {
  /** A destination at the receiver that a rule uses. */
  async function used(tenant: TestTenant) {
    const call = v1(server, tenant);
    const clause = { equals: { field: "name", value: { stringVal: "disk full" } } };
    await call("/v1/notification/triggers", { name: "disks", type: { event: { query: { clause } } } });
    const type = { webhook: { url: `${receiver.url}/hook` } };
    await call("/v1/notification/destinations", { name: "on call", type });
    const rule = { name: "page", enabled: true, triggerNames: ["disks"], destinationNames: ["on call"] };
    await call("/v1/notification/rules", rule);
  }

  onPage("that was disabled says why, and is made active again; a paused one says what that means", async (page) => {
    const tenant = await testTenant(sql);
    await used(tenant);
    receiver.answer(answering(410, "moved away"));
    await sendEvents(server, tenant, [{ name: "disk full", source: "web-1", severity: Severity.ERROR }]);
    await expect.poll(async () => (await stored(tenant, "on call")).disabledReason).not.toBe("");
    await page.logIn(tenant, "#/rules/destinations");
    await page.getByRole("row").filter({ hasText: "on call" }).getByText("Disabled").waitFor();
    await page.getByRole("grid", { name: "Destinations" }).press("Enter");
    const state = page.getByRole("region", { name: "State" });
    await state.getByText((await stored(tenant, "on call")).disabledReason).waitFor();
    await state.getByRole("button", { name: "Make active again" }).click();
    await state.getByText("What rules send to it goes out.").waitFor();
    expect((await stored(tenant, "on call")).disabledReason).toBe("");

    // Five deliveries that fail for the time being.
    receiver.answer(answering(503));
    const sources = ["web-2", "web-3", "web-4", "web-5", "web-6"];
    await sendEvents(
      server,
      tenant,
      sources.map((source) => ({ name: "disk full", source, severity: Severity.ERROR })),
    );
    await expect.poll(async () => (await stored(tenant, "on call")).breakerState).toBe("BREAKER_STATE_OPEN");
    await page.reload();
    await state.getByText("Paused").waitFor();
    await state.getByText(/It failed five times in a row/).waitFor();
    await sql`update destination_states set open_until_ms = 0 where tenant_id = ${tenant.id}`;
    await page.reload();
    await state.getByText("On trial").waitFor();
  });

  onPage("that a rule uses is not deleted: its rules are named; without them it is, and comes back", async (page) => {
    const tenant = await testTenant(sql);
    await used(tenant);
    await page.logIn(tenant, "#/rules/destinations/on%20call");
    await page.getByRole("button", { name: "Delete…" }).click();
    const question = page.getByRole("dialog", { name: 'Delete the destination "on call"?' });
    await question.getByRole("link", { name: "page" }).waitFor();
    await question.getByRole("button", { name: "Delete" }).click();
    await question.getByText('destination "on call" is used by rule "page"').waitFor();
    await question.getByRole("button", { name: "Cancel" }).click();
    const rule = { method: "DELETE", path: "/v1/notification/rules/page", headers: tenant.headers };
    await raw(server.target, "2", rule);
    await page.getByRole("button", { name: "Delete…" }).click();
    await question.getByText("No rule names it.").waitFor();
    await question.getByRole("button", { name: "Delete" }).click();
    await page.getByText("There are no destinations yet.").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Taken back.").waitFor();
    expect(await stored(tenant, "on call")).toMatchObject({ name: "on call" });
  });

  onPage("can only be looked at with a key that may not change it", async (page) => {
    const tenant = await testTenant(sql);
    await used(tenant);
    const reader = { ...tenant, headers: await keyHeaders(sql, tenant.id, "USER", "read_only_user") };
    await page.logIn(reader, "#/rules/destinations/on%20call");
    expect(await one(page).getByLabel("Address").isDisabled()).toBe(true);
    for (const name of ["Save", "Send a test", "Delete…"])
      expect(await page.getByRole("button", { name }).count(), name).toBe(0);
  });
});
