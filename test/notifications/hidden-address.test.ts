import { toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { addressHint } from "../../src/notifications/kinds/hidden-address.ts";
import { sealAddresses } from "../../src/notifications/sending/address-sealing.ts";
import { unsealDestination } from "../../src/notifications/sending/unseal-destination.ts";
import { transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { masterKeys, type TestServer, testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { destinationsPath } from "./samples.ts";

const receiver = await httpReceiver();
afterAll(() => receiver[Symbol.asyncDispose]());
beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer(answering(200));
});
const hidden = "********";

test.each([
  ["https://hooks.slack.com/services/T0/B0/abcdWXYZ", "hooks.slack.com/…WXYZ"],
  ["https://HOOKS.slack.com:443/services/x1234", "hooks.slack.com/…1234"],
  ["https://discord.com/api/webhooks/1/x", "discord.com/…/1/x"],
  ["https://discordapp.com/api/webhooks/1/x", "discordapp.com/…/1/x"],
  ["https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=abcd", "chat.googleapis.com/…abcd"],
  ["https://api.telegram.org/bot1:A/sendMessage", "api.telegram.org/…sage"],
  ["https://acme.webhook.office.com/webhookb2/abcd", "acme.webhook.office.com/…abcd"],
  ["https://prod-1.westeurope.logic.azure.com:8443/workflows/abcd", "prod-1.westeurope.logic.azure.com:8443/…abcd"],
  ["https://a.api.powerplatform.com/abcd", "a.api.powerplatform.com/…abcd"],
  ["https://chat.example.com/hooks/abcdefgh", "chat.example.com/…efgh"],
  ["https://u:p@chat.example.com/hooks/abcdefgh", "chat.example.com/…efgh"],
  ["https://chat.example.com/hooks/{{event.name}}/abcd", "chat.example.com/…abcd"],
  ["https://hooks.slack.com/{{event.name}}", "hooks.slack.com/…me}}"],
  ["https://chat.example.com/api/hooks/abcdefgh", ""],
  ["https://chat.example.com/hooksabcd", ""],
  ["https://notdiscord.com/api/webhooks/1/x", ""],
  ["https://logic.azure.com/abcd", ""],
  ["https://{{event.name}}/hooks/abcd", ""],
  ["https://discord.com.{{event.name}}/abcd", ""],
  ["nonsense", ""],
])("of %s answers show %j", (address, hint) => {
  expect(addressHint(address)).toBe(hint);
});

const settings = { BELFRY_OUTBOUND_ALLOW: "127.0.0.1", BELFRY_MASTER_KEYS: masterKeys };
const later = await testServer(settings);

/** A server beside one of before: what that one cannot read is not stored yet. */
const former = await testDatabase();
await former.sql`update migrations set oldest_server = '0.1.0', applied_at = now() where name = '0026_closed-by'`;
const beside = await testServer({ ...settings, DATABASE_URL: former.url });

const parts = async (server: TestServer, sql = server.database.sql) => {
  const tenant = await testTenant(sql);
  const client = createClient(DestinationService, transport(server.target, "grpc", tenant.headers));
  return { sql, tenant, call: v1(server.url, tenant.headers), client };
};
const both = { later: await parts(later), beside: await parts(beside, former.sql) };
const keys = keyring(readConfig({ DATABASE_URL: former.url, BELFRY_MASTER_KEYS: masterKeys }));
const products = { incidentPagingUrl: "https://pager.example", teamChatUrl: "https://chat.example" };

const address = `${receiver.url}/hooks/AbCdEfGhIjKl`;
const hint = `127.0.0.1:${receiver.port}/…IjKl`;
const path = (name: string) => `${destinationsPath}/${encodeURIComponent(name)}`;

describe.each([
  ["when no server of before is left", "later", true],
  ["beside a server of before", "beside", false],
] as const)("%s", (_when, which, sealed) => {
  const { sql, tenant, call, client } = both[which];
  let made = 0;
  let name = "";
  beforeEach(() => {
    made += 1;
    name = `d ${made}`;
  });
  const create = async (webhook: object = { url: address }) => {
    const answer = await call("POST", destinationsPath, { name, type: { webhook } });
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body.destination;
  };
  const put = (webhook: object) => call("PUT", path(name), { type: { webhook } });
  /** What would be sent. */
  async function opened() {
    const { destination } = await client.getDestination({ name });
    if (destination?.type === undefined) throw new Error("no type");
    const { type } = await unsealDestination(sql, tenant.id, name, destination.type, keys, products, "type");
    return toJson(DestinationTypeSchema, type) as { webhook: { url: string; signingSecret?: string } };
  }
  const stored = async () => {
    const [row] = await sql<{ text: string }[]>`
      select type::text || secrets::text as text from destinations where tenant_id = ${tenant.id} and name = ${name}`;
    return row?.text ?? "";
  };

  test("an address is answered hidden beside its hint, and stored so that all servers can read it", async () => {
    const { type } = await create();
    expect(type.webhook).toMatchObject({ url: hidden, addressHint: hint });
    const list = await call("GET", `${destinationsPath}?name=${encodeURIComponent(name)}`);
    for (const each of [(await call("GET", path(name))).body.destination, list.body.destinations[0]])
      expect(each.type).toEqual(type);
    expect((await stored()).includes("AbCdEfGhIjKl")).toBe(!sealed);
    expect((await stored()).includes("addressHint")).toBe(sealed);
    expect((await opened()).webhook.url).toBe(address);
  });

  test("******** in a PUT keeps it, and is no change", async () => {
    const { type, etag } = await create();
    const kept = await call("PUT", path(name), { type, etag });
    expect(kept).toMatchObject({ status: 200, body: { destination: { type, etag } } });
    expect((await opened()).webhook.url).toBe(address);
    // A client's own hint is none.
    const moved = await put({ url: "https://example.com/x", addressHint: "elsewhere" });
    expect(moved.body.destination.type.webhook).toMatchObject({ url: "https://example.com/x", addressHint: "" });
  });

  test("other secrets are kept for the same host alone", async () => {
    await create({ url: address, headers: { "x-token": "secret" } });
    const headers = { "x-token": hidden };
    expect(await put({ url: hidden, headers })).toMatchObject({ status: 200 });
    expect(await put({ url: `${receiver.url}/hooks/other`, headers })).toMatchObject({ status: 200 });
    expect((await opened()).webhook.url).toBe(`${receiver.url}/hooks/other`);
    const rule = "keeps it only while scheme, host and port of webhook.url stay";
    for (const url of ["https://example.com/hooks/other", "https://discord.com/x", "https://example.com/"]) {
      const refused = await put({ url, headers });
      expect(refused).toMatchObject({ status: 400, body: { message: expect.stringContaining(rule) } });
    }
  });

  test("******** is refused where no such address is stored", async () => {
    const rule = `type.webhook.url: must be the secret itself: none is stored that ${hidden} could keep`;
    const answer = await call("POST", destinationsPath, { name, type: { webhook: { url: hidden } } });
    expect(answer).toMatchObject({ status: 400, body: { message: rule } });
    await create({ url: "https://example.com/" });
    expect(await put({ url: hidden })).toMatchObject({ status: 400, body: { message: rule } });
  });

  test("a test sends to it, and neither its answer nor what templates and receivers say shows it", async () => {
    receiver.answer((request, response) => void response.writeHead(200).end(`took ${request.path}`));
    const webhook = { url: address, format: "WEBHOOK_FORMAT_TEMPLATE", body: '{"t":"{{destination.webhook.url}}"}' };
    const { type } = await create(webhook);
    const tested = await call("POST", `${destinationsPath}:test`, { name, type });
    expect(tested.body).toMatchObject({ destination: { type }, answer: `HTTP 200: took ${hidden}` });
    expect(receiver.received).toMatchObject([{ path: "/hooks/AbCdEfGhIjKl", body: `{"t":"${hidden}"}` }]);
    const given = await call("POST", `${destinationsPath}:test`, { name: "new", type: { webhook } });
    expect(given.body).toMatchObject({ destination: { type }, answer: `HTTP 200: took ${hidden}` });
  });

  test("a delivery is sent to it, and its tries and previews do not show it", async () => {
    receiver.answer((request, response) => void response.writeHead(400).end(`no ${request.path}`));
    await create({ url: `${address}/{{event.name}}` });
    const rule = {
      name,
      enabled: true,
      matchers: ["alertname=Down"],
      destinationNames: [name],
      muteDuringMaintenance: true,
    };
    expect(await call("POST", "/v1/notification/rules", rule)).toMatchObject({ status: 200 });
    const event = { name: "Down", timestamp: Date.now(), dimensions: { source: name }, severity: "SEVERITY_ERROR" };
    const opened = { ...event, status: "STATUS_OPEN" };
    await call("POST", "/v1/data-receiver/events", { events: [opened] });
    await expect
      .poll(
        async () => (await call("GET", `/v1/notification/deliveries?rule=${encodeURIComponent(name)}`)).body.deliveries,
      )
      .toMatchObject([{ status: "FAILED", error: expect.stringContaining("HTTP 400") }]);
    const { deliveries } = (await call("GET", `/v1/notification/deliveries?rule=${encodeURIComponent(name)}`)).body;
    expect(JSON.stringify(deliveries)).not.toContain("AbCdEfGhIjKl");
    expect(receiver.received[0]?.path).toBe("/hooks/AbCdEfGhIjKl/Down");
    const path = `/v1/notification/rules/${encodeURIComponent(name)}:preview`;
    const preview = await call("POST", path, { event: opened });
    expect(preview).toMatchObject({ status: 200, body: { previews: [{ destination: name }] } });
    expect(JSON.stringify(preview.body)).not.toContain("AbCdEfGhIjKl");
  });

  test.each([
    ["https://hooks.slack.com/services/T0/B0/x", "webhook.url: Slack takes its own form of body alone"],
    ["http://10.1.2.3/hooks/x", "webhook.url: the address is not public"],
    ["https://1.1.1.1/hooks/x", ""],
  ])("what cannot work with %s is still said", async (url, trouble) => {
    expect((await create({ url })).trouble).toContain(trouble);
    const { body } = await call("GET", path(name));
    expect(body.destination.trouble).toContain(trouble);
    expect(body.destination.trouble === "").toBe(trouble === "");
  });
});

test("what a version before has stored is sealed once, with its other secrets in place", async () => {
  const { sql, tenant, call } = both.beside;
  const list = async () => (await call("GET", destinationsPath)).body.destinations;
  const before = await list();
  for (const _ of [1, 2]) {
    expect(await sealAddresses(sql, tenant.id, "", keys)).toBeUndefined();
    const rows = await sql<{ text: string }[]>`
      select type::text || secrets::text as text from destinations where tenant_id = ${tenant.id}`;
    expect(rows.map(({ text }) => text).join()).not.toMatch(/AbCdEfGhIjKl|hooks.slack.com.services/);
    const shown = (each: { type: object; trouble: string }) => ({ type: each.type, trouble: each.trouble });
    expect((await list()).map(shown)).toEqual(before.map(shown));
  }
});
