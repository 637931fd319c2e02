import { fromJson, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { beforeEach, describe, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "#gen/belfry/notifications/v1/rule_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { unsealDestination } from "../../src/notifications/sending/unseal-destination.ts";
import { transport } from "../support/clients.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { destinationsPath, webhookJson } from "./samples.ts";

const server = await testServer();
const { sql } = server.database;
const tenant = await testTenant(sql);
const json = v1(server.url, tenant.headers);
const way = transport(server.target, "grpc", tenant.headers);
const destinations = createClient(DestinationService, way);
const rules = createClient(RuleService, way);
const credentials = createClient(CredentialService, way);
const keys = keyring(readConfig({ DATABASE_URL: server.database.url, BELFRY_MASTER_KEYS: masterKeys }));

let made = 0;
let name = "";
let path = "";
beforeEach(() => {
  made += 1;
  name = `destination ${made}`;
  path = `${destinationsPath}/${encodeURIComponent(name)}`;
});
const refused = (message: string) => ({ status: 400, body: { code: 3, message: expect.stringContaining(message) } });

const masked = "********";
const signing = `whsec_${Buffer.alloc(24, 1).toString("base64")}`;
const oauth = {
  username: "u",
  clientId: "id",
  tokenUrl: "https://i.example.com/t",
  authUrl: "https://i.example.com/a",
};
const itsm = {
  baseUrl: "https://i.example.com",
  shortDescription: "{{event.name}}",
  closeState: 7,
  closeCode: "Solved",
  closeNotes: "",
};

/** One of each kind: what is sent, with its secrets, and what is shown. */
const kinds: [string, object, object][] = [
  ["email", { to: "ada@example.com", subject: "{{event.name}}", body: "b", alsoTo: ["bob@example.com"] }, {}],
  [
    "event",
    { nameTemplate: "n", typeTemplate: "t", summaryTemplate: "s", severity: "SEVERITY_ERROR", bodyTemplate: "" },
    {},
  ],
  [
    "officeChat",
    { webhookUrl: "https://chat.example.com/secret", text: "t", facts: Array(20).fill({ name: "a", value: "{{id}}" }) },
    { webhookUrl: masked },
  ],
  ["incidentPaging", { integrationKey: "secret", credentialId: "" }, { integrationKey: masked }],
  [
    "itsm",
    { ...itsm, basic: { username: "u", password: "secret" }, credentialId: "" },
    { basic: { username: "u", password: masked } },
  ],
  [
    "itsm",
    {
      ...itsm,
      oauth: { ...oauth, password: "secret", clientSecret: "secret 2", refreshToken: "secret 3" },
      credentialId: "",
    },
    { oauth: { ...oauth, password: masked, clientSecret: masked, refreshToken: masked } },
  ],
  ["teamChat", { channel: "alerts", token: "xoxb-secret", color: "#ff0000", credentialId: "" }, { token: masked }],
  [
    "webhook",
    {
      url: "https://hooks.example.com/{{id}}",
      signingSecret: signing,
      headers: { "x-api-key": "secret", "x-b": "secret 2" },
      format: "WEBHOOK_FORMAT_ALERTMANAGER",
      body: "",
    },
    { signingSecret: masked, headers: { "x-api-key": masked, "x-b": masked }, addressHint: "" },
  ],
];

const products = { incidentPagingUrl: "https://pager.example", teamChatUrl: "https://chat.example" };
/** What the stored destination would be sent with. */
async function opened(of = name) {
  const { destination } = await destinations.getDestination({ name: of });
  if (destination?.type === undefined) throw new Error("no type");
  const { type } = await unsealDestination(sql, tenant.id, of, destination.type, keys, products, "type");
  return toJson(DestinationTypeSchema, type) as Record<string, never>;
}

const canonical = (type: object) => toJson(DestinationTypeSchema, fromJson(DestinationTypeSchema, type as never));

describe("a new destination", () => {
  test.each(kinds)("of kind %s is shown without its secrets, which are kept: %j", async (kind, sent, hidden) => {
    const shown = { [kind]: { ...sent, ...hidden } };
    const answer = await json("POST", destinationsPath, { name, tags: ["a"], type: { [kind]: sent } });
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body.destination).toEqual({
      name,
      description: "",
      tags: ["a"],
      type: shown,
      ruleNames: [],
      recentNotificationCount: "0",
      maxPerMinute: 0,
      disabledReason: "",
      breakerState: "BREAKER_STATE_CLOSED",
      trouble: expect.any(String),
      etag: expect.stringMatching(/^[\w-]{16}$/),
    });
    expect((await json("GET", path)).body).toEqual(answer.body);
    expect(await opened()).toEqual(canonical({ [kind]: sent }));
  });

  test("with a name that is taken is 409, and changes nothing", async () => {
    await json("POST", destinationsPath, { name, type: webhookJson("a") });
    const answer = await json("POST", destinationsPath, { name, type: { incidentPaging: { integrationKey: "k" } } });
    expect(answer).toMatchObject({ status: 409, body: { code: 6 } });
    expect((await json("GET", path)).body.destination.type.webhook.url).toBe("https://hooks.example.com/a");
  });

  test("may have its signing secret made, which is shown once", async () => {
    const type = { webhook: { url: "https://hooks.example.com", signingSecret: "generate" } };
    const { body } = await json("POST", destinationsPath, { name, type });
    const { signingSecret } = body.destination.type.webhook;
    expect(signingSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect((await json("GET", path)).body.destination.type.webhook.signingSecret).toBe(masked);
    expect(await opened()).toMatchObject({ webhook: { signingSecret } });
  });

  test.each([
    [{ name: "" }, "name: is required"],
    [{ name: "a\nb" }, "name: must not contain control characters"],
    [{ type: undefined }, "type: is required"],
    [{ type: {} }, "type: must hold exactly one of email, event"],
    [{ type: { ...webhookJson("a"), email: { to: "a@b" } } }, "type.email: only one of"],
    [{ type: { carrierPigeon: {} } }, "type.carrierPigeon"],
    [{ type: { email: { subject: "s" } } }, "type.email.to: is required"],
    [{ type: { webhook: {} } }, "type.webhook.url: is required"],
    [
      { type: { event: { nameTemplate: "n", typeTemplate: "t", summaryTemplate: "s" } } },
      "type.event.severity: is required",
    ],
    [
      { type: { officeChat: { webhookUrl: "https://a.b", text: "t", facts: Array(21).fill({}) } } },
      "type.officeChat.facts: must have at most 20 items",
    ],
    [{ type: { itsm: { ...itsm, basic: { username: "u" } } } }, "type.itsm.basic.password: is required"],
    [{ type: { itsm: { ...itsm, basic: {}, oauth: {} } } }, "type.itsm.oauth: only one of"],
    [
      { type: { itsm: { ...itsm, oauth: { tokenUrl: "https://a", authUrl: "https://a", refreshToken: "r" } } } },
      "type.itsm.oauth.clientId: is required; type.itsm.oauth.clientSecret: is required",
    ],
    [{ type: { teamChat: { channel: "a", token: masked } } }, "type.teamChat.token: must be the secret itself"],
    [{ type: { teamChat: { channel: "a", credentialId: "none" } } }, "type.teamChat.credentialId: must be the id"],
    [{ maxPerMinute: -1 }, "maxPerMinute: must be "],
    [{ type: { teamChat: { channel: "#alerts", token: "t" } } }, "type.teamChat.channel: "],
    [{ type: { teamChat: { channel: "alerts" } } }, "type.teamChat.token: must be given, or else credentialId"],
    [{ type: { incidentPaging: {} } }, "type.incidentPaging.integrationKey: must be given, or else credentialId"],
    [{ type: { itsm } }, "type.itsm.basic: must be given, or else oauth or credentialId"],
    [{ type: { email: { to: "ada" } } }, "type.email.to: must be one e-mail address"],
    [{ type: { webhook: { url: "ftp://a.b" } } }, "type.webhook.url: must be an address"],
    [{ type: { webhook: { url: "https://a.b/{{#id}}" } } }, "type.webhook.url: is no Mustache template"],
    [
      { type: { webhook: { url: "https://a.b", signingSecret: "short" } } },
      "type.webhook.signingSecret: must be whsec_",
    ],
    [{ type: { webhook: { url: "https://a.b", headers: { Host: "x" } } } }, 'type.webhook.headers["Host"]: is set by'],
    [
      { type: { officeChat: { webhookUrl: "https://a.b", text: "t", facts: [{}, { name: "a", value: "{{a" }] } } },
      "type.officeChat.facts[1].value: is no Mustache template: unclosed tag at line 1, column 4",
    ],
  ])("with %j is refused with its place, and nothing is stored", async (change, message) => {
    const answer = await json("POST", destinationsPath, { name, type: webhookJson("a"), ...change });
    expect(answer).toMatchObject(refused(message));
    expect(await json("GET", path)).toMatchObject({ status: 404 });
  });
});

describe("a replacement", () => {
  const headers = { a: "secret a", b: "secret b" };
  const before = { webhook: { url: "https://hooks.example.com/1", signingSecret: signing, headers } };
  beforeEach(async () => {
    await json("POST", destinationsPath, { name, description: "before", tags: ["t"], maxPerMinute: 5, type: before });
  });

  test("leaves nothing of what it does not say", async () => {
    const { body, status } = await json("PUT", path, { type: webhookJson("2") });
    expect(status).toBe(200);
    const shown = { url: "https://hooks.example.com/2", signingSecret: "", headers: {} };
    expect(body.destination).toMatchObject({ description: "", tags: [], maxPerMinute: 0, type: { webhook: shown } });
    expect((await json("GET", path)).body).toEqual(body);
    const [row] = await sql`select secrets from destinations where tenant_id = ${tenant.id} and name = ${name}`;
    expect(row?.secrets).toEqual({});
  });

  test("that leads elsewhere forgets where threads were, any other keeps them; a deletion takes them and its counts along", async () => {
    const type = (channel: string, token = masked) => ({ type: { teamChat: { channel, token } } });
    await json("PUT", path, type("ops", "xoxb-1"));
    const kept = { match: "1", ts: "1.2" };
    await sql`
      insert into delivery_threads (tenant_id, destination_name, subject, state, sent, updated_ms)
      values (${tenant.id}, ${name}, ${Buffer.alloc(24)}, ${sql.json(kept)}, true, 1)`;
    await sql`
      insert into delivery_counts (tenant_id, about, name, slot_ms, count)
      values (${tenant.id}, 'destination', ${name}, ${Date.now()}, 3)`;
    const threads = () => sql`select state, sent from delivery_threads where tenant_id = ${tenant.id}`;
    await json("PUT", path, type("ops", "xoxb-2"));
    expect(await threads()).toEqual([{ state: kept, sent: true }]);
    await json("PUT", path, type("other"));
    expect(await threads()).toEqual([{ state: {}, sent: true }]);
    await json("DELETE", path);
    expect(await threads()).toEqual([]);
    const { body } = await json("POST", destinationsPath, { name, ...type("ops", "xoxb-1") });
    expect(body.destination.recentNotificationCount).toBe("0");
  });

  test("with what was shown keeps every secret", async () => {
    const { body } = await json("GET", path);
    expect(await json("PUT", path, body.destination)).toMatchObject({ status: 200, body });
    expect(await opened()).toEqual(before);
  });

  test("changes those secrets that are sent, and keeps those that are masked", async () => {
    const type = { webhook: { ...before.webhook, signingSecret: masked, headers: { a: masked, b: "new" } } };
    expect(await json("PUT", path, { type })).toMatchObject({ status: 200 });
    expect(await opened()).toEqual({ webhook: { ...before.webhook, headers: { a: "secret a", b: "new" } } });
  });

  test.each([
    [
      { webhook: { url: "https://a.b", headers: { c: masked } } },
      'type.webhook.headers["c"]: must be the secret itself',
    ],
    [{ teamChat: { channel: "a", token: masked } }, "type.teamChat.token: must be the secret itself"],
    [{ officeChat: { webhookUrl: masked, text: "t" } }, "type.officeChat.webhookUrl: must be the secret itself"],
  ])("with %j, of which no secret is stored, is refused", async (type, message) => {
    expect(await json("PUT", path, { type })).toMatchObject(refused(message));
    expect(await opened()).toEqual(before);
  });

  test("needs a type, and never changes the name", async () => {
    expect(await json("PUT", path, {})).toMatchObject(refused("type: is required"));
    expect(await json("PUT", path, { name: "other", type: before })).toMatchObject(refused("name: differs"));
  });

  test("clears why the service had disabled it", async () => {
    await sql`
      update destinations set disabled_reason = 'answered 410' where tenant_id = ${tenant.id} and name = ${name}`;
    expect((await json("GET", path)).body.destination.disabledReason).toBe("answered 410");
    expect((await json("PUT", path, { type: before })).body.destination.disabledReason).toBe("");
  });

  test("of a destination that is not there is 404", async () => {
    const answer = await json("PUT", `${destinationsPath}/none`, { type: before });
    expect(answer).toMatchObject({ status: 404, body: { code: 5 } });
  });
});

describe("a deletion", () => {
  test("answers {}, and the destination is gone", async () => {
    await json("POST", destinationsPath, { name, type: webhookJson("a") });
    expect(await json("DELETE", path)).toMatchObject({ status: 200, body: {} });
    expect(await json("DELETE", path)).toMatchObject({ status: 404, body: { code: 5 } });
  });

  test("of a destination in use is 412 and names the rule; once it is gone it succeeds", async () => {
    await json("POST", destinationsPath, { name, type: webhookJson("a") });
    await rules.createRule({ rule: { name, destinationNames: [name] } });
    expect((await json("GET", path)).body.destination.ruleNames).toEqual([name]);
    const answer = await json("DELETE", path);
    expect(answer).toMatchObject({ status: 412, body: { code: 9 } });
    expect(answer.body.message).toContain(`is used by rule "${name}"`);
    await rules.deleteRule({ name });
    expect(await json("DELETE", path)).toMatchObject({ status: 200 });
  });
});

describe("a stored credential", () => {
  async function stored(type: string, secrets: Record<string, string>): Promise<string> {
    return (await credentials.createCredential({ info: { name: type, type }, secrets })).info?.id ?? "";
  }
  async function usedBy(id: string) {
    const list = await credentials.listCredentials({});
    return list.credentials.find((each) => each.id === id)?.info?.usedBy?.destinations?.ids;
  }
  const rest = { tokenUrl: "https://a.b", authUrl: "https://a.b", refreshToken: "r" };

  test.each([
    ["incidentPaging", "incidentPaging", { routingKey: "secret" }, {}, { integrationKey: "secret" }],
    ["teamChat", "teamChat", { token: "secret" }, { channel: "a" }, { token: "secret" }],
    ["itsm", "usernamePassword", { username: "u", password: "p" }, itsm, { basic: { username: "u", password: "p" } }],
    [
      "itsm",
      "itsmOAuth",
      { clientId: "i", clientSecret: "s" },
      { ...itsm, oauth: rest },
      { oauth: { ...rest, clientId: "i", clientSecret: "s" } },
    ],
  ])("stands for the secrets of a destination of kind %s (%s)", async (kind, type, secrets, more, filled) => {
    const credentialId = await stored(type, secrets);
    const sent = { [kind]: { ...more, credentialId } };
    const answer = await json("POST", destinationsPath, { name, type: sent });
    expect(answer.body.destination.type[kind].credentialId).toBe(credentialId);
    expect(await opened()).toEqual(canonical({ [kind]: { ...more, ...filled, credentialId } }));
    expect(await usedBy(credentialId)).toEqual([name]);
    await expect(credentials.deleteCredential({ id: credentialId })).rejects.toMatchObject({ code: 9 });
    await json("DELETE", path);
    expect(await usedBy(credentialId)).toEqual([]);
  });

  test("is free when the destination names another one, or none", async () => {
    const [one, two] = [await stored("teamChat", { token: "1" }), await stored("teamChat", { token: "2" })];
    const type = (more: object) => ({ type: { teamChat: { channel: "a", ...more } } });
    await json("POST", destinationsPath, { name, ...type({ credentialId: one }) });
    await json("PUT", path, type({ credentialId: two }));
    expect([await usedBy(one), await usedBy(two)]).toEqual([[], [name]]);
    await json("PUT", path, type({ token: "inline" }));
    expect([await usedBy(one), await usedBy(two)]).toEqual([[], []]);
  });

  test.each([
    [
      "teamChat",
      { token: "t" },
      "incidentPaging",
      {},
      "credentialId: must be the id of a credential of type incidentPaging, not teamChat",
    ],
    ["itsmOAuth", { clientId: "i", clientSecret: "s" }, "itsm", itsm, "oauth: is required beside credentialId"],
    [
      "itsmOAuth",
      { clientId: "i", clientSecret: "s" },
      "itsm",
      { ...itsm, oauth: { ...rest, clientId: "mine" } },
      "oauth.clientId: must be left out",
    ],
    [
      "usernamePassword",
      { username: "u", password: "p" },
      "itsm",
      { ...itsm, basic: { username: "u", password: "p" } },
      "basic: must be left out",
    ],
  ])("of type %s %j does not fit %s %j", async (type, secrets, kind, more, message) => {
    const credentialId = await stored(type, secrets as Record<string, string>);
    const answer = await json("POST", destinationsPath, { name, type: { [kind]: { ...more, credentialId } } });
    expect(answer).toMatchObject(refused(`type.${kind}.${message}`));
    expect(await usedBy(credentialId)).toEqual([]);
  });

  test("without secrets is refused", async () => {
    const credentialId = await stored("teamChat", {});
    const answer = await json("POST", destinationsPath, { name, type: { teamChat: { channel: "a", credentialId } } });
    expect(answer).toMatchObject(
      refused("type.teamChat.credentialId: must be the id of a credential that has secrets"),
    );
  });

  test("of another tenant is unknown", async () => {
    const credentialId = await stored("teamChat", { token: "t" });
    const other = v1(server.url, (await testTenant(sql)).headers);
    const answer = await other("POST", destinationsPath, { name, type: { teamChat: { channel: "a", credentialId } } });
    expect(answer).toMatchObject(refused("type.teamChat.credentialId: must be the id of a stored credential"));
  });
});

describe("the list", async () => {
  const own = await testTenant(sql);
  const mine = v1(server.url, own.headers);
  const fill = [
    {
      name: "Ops room",
      description: "Night SHIFT",
      tags: ["Chat"],
      type: { teamChat: { channel: "ops", token: "t" } },
    },
    { name: "pager", tags: ["chatty", "24h"], type: { incidentPaging: { integrationKey: "k" } } },
    { name: "Über-Hook", description: "shift lead", type: webhookJson("x") },
  ];
  for (const each of fill) await mine("POST", destinationsPath, each);
  const rule = { name: "Night Watch", destinationNames: ["pager", "Ops room"] };
  await mine("POST", "/v1/notification/rules", rule);

  test.each([
    ["", ["Ops room", "pager", "Über-Hook"]],
    ["?name=OPS", ["Ops room"]],
    ["?name=%C3%BCber", ["Über-Hook"]],
    ["?description=shift", ["Ops room", "Über-Hook"]],
    ["?type=teamChat", ["Ops room"]],
    ["?type=TEAM", ["Ops room"]],
    ["?type=itsm", []],
    ["?ruleNames=watch", ["Ops room", "pager"]],
    ["?tags=chat", ["Ops room", "pager"]],
    ["?tags=24&type=paging&ruleNames=night", ["pager"]],
    ["?tags=24&type=webhook", []],
  ])("of %s", async (query, names) => {
    const { status, body } = await mine("GET", `${destinationsPath}${query}`);
    expect(status).toBe(200);
    expect(body.destinations.map((each: { name: string }) => each.name)).toEqual(names);
    expect(body.totalCount).toBe(String(names.length));
    expect(JSON.stringify(body)).not.toMatch(/"token":"t"|"integrationKey":"k"/);
  });

  test.each(["?tags=a&tags=b", "?pageSize=-1", "?colour=red"])("of %s is refused", async (query) => {
    expect(await mine("GET", `${destinationsPath}${query}`)).toMatchObject({ status: 400, body: { code: 3 } });
  });
});
