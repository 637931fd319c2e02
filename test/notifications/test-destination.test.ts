import { createClient } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { transport } from "../support/clients.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { secrets, successes } from "./kinds.ts";

const receiver = await httpReceiver();
afterAll(() => receiver[Symbol.asyncDispose]());
const server = await testServer({
  BELFRY_OUTBOUND_ALLOW: "127.0.0.1",
  BELFRY_OUTBOUND_TIMEOUT: "5000ms",
  BELFRY_TEAM_CHAT_URL: `${receiver.url}/api`,
  BELFRY_INCIDENT_PAGING_URL: receiver.url,
});
const guarded = await testServer({});
const tenant = await testTenant(server.database.sql);

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer(answering(200));
});

interface Tested {
  code: number;
  message: string;
  destination: { type: Record<string, unknown> };
  answer: string;
}

/** Tests a destination over /v1. */
async function tested(type: object, { name = "ops", headers = tenant.headers, url = server.url } = {}) {
  const answer = await fetch(`${url}/v1/notification/destinations:test`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ name, type }),
  });
  return { status: answer.status, body: (await answer.json()) as Tested };
}

const webhook = (value: object = {}) => ({ webhook: { url: `${receiver.url}/hook`, ...value } });

describe("a test", () => {
  test("sends for real, and answers the destination without its secrets", async () => {
    const type = webhook({ signingSecret: secrets.signingSecret, headers: { authorization: secrets.header } });
    const { status, body } = await tested(type);
    expect(status).toBe(200);
    expect(body.destination).toMatchObject({
      name: "ops",
      type: {
        webhook: { url: `${receiver.url}/hook`, signingSecret: "********", headers: { authorization: "********" } },
      },
    });
    expect(receiver.received).toHaveLength(1);
    expect(receiver.received[0]?.headers.authorization).toBe(secrets.header);
    expect(JSON.parse(receiver.received[0]?.body ?? "")).toMatchObject({
      tenant: tenant.name,
      message: "INFO: belfry-test on belfry-test: Test of destination ops",
      clear: false,
      event: { name: "belfry-test" },
    });
  });

  test("answers what the receiver said, without secrets", async () => {
    receiver.answer((request, response) => response.writeHead(202).end(`taken: ${request.headers.authorization}`));
    const { body } = await tested(webhook({ headers: { authorization: secrets.header } }));
    expect(body.answer).toBe("HTTP 202: taken: ********");
  });

  test("answers code 9 with what the receiver said when it fails, and no secret", async () => {
    receiver.answer((request, response) => response.writeHead(422).end(`no: ${request.headers.authorization}`));
    const { status, body } = await tested(webhook({ headers: { authorization: secrets.header } }));
    expect(status).toBe(400);
    expect(body).toMatchObject({
      code: 9,
      message: "the test notification was not taken (rejected): HTTP 422: no: ********",
    });
  });

  test("makes an event with the kind of that name", async () => {
    const event = {
      nameTemplate: "from a {{rule.name}}",
      typeTemplate: "x",
      summaryTemplate: "y",
      severity: "SEVERITY_INFO",
    };
    expect((await tested({ event })).status).toBe(200);
    const client = createClient(EventQueryService, transport(server.target, "grpc", tenant.headers));
    const { results } = await client.searchEvents({ query: {} });
    expect(results.map(({ name }) => name)).toContain("from a test");
  });

  test("leaves an audit row when it succeeds and when it fails", async () => {
    const own = await testTenant(server.database.sql);
    await tested(webhook(), { headers: own.headers });
    receiver.answer(answering(400));
    await tested(webhook(), { headers: own.headers });
    const client = createClient(AuditLogService, transport(server.target, "grpc", own.headers));
    await expect
      .poll(async () =>
        (await client.listAuditEntries({})).entries.map(({ outcome, resource }) => `${resource} ${outcome}`),
      )
      .toEqual(["destination/ops FAILED_PRECONDITION", "destination/ops OK"]);
  });
});

describe("a stored credential", () => {
  const credentials = createClient(CredentialService, transport(server.target, "grpc", tenant.headers));
  const stored = async (type: string, own: Record<string, string>) =>
    (await credentials.createCredential({ info: { name: `${type} ${Date.now()}`, type }, secrets: own })).info?.id;

  test("replaces a token", async () => {
    receiver.answer(successes.teamChat);
    const credentialId = await stored("teamChat", { token: secrets.token });
    const { status, body } = await tested({ teamChat: { channel: "ops", credentialId } });
    expect(status).toBe(200);
    expect(body.destination.type.teamChat).toMatchObject({ channel: "ops", credentialId, token: "" });
    expect(receiver.received[0]?.headers.authorization).toBe(`Bearer ${secrets.token}`);
  });

  test("replaces an integration key", async () => {
    receiver.answer(successes.incidentPaging);
    const credentialId = await stored("incidentPaging", { routingKey: secrets.integrationKey });
    expect((await tested({ incidentPaging: { credentialId } })).status).toBe(200);
    expect(JSON.parse(receiver.received[0]?.body ?? "").routing_key).toBe(secrets.integrationKey);
  });

  test("replaces user name and password", async () => {
    receiver.answer(successes.itsm);
    const credentialId = await stored("usernamePassword", { username: "u", password: secrets.password });
    expect((await tested({ itsm: { baseUrl: receiver.url, credentialId } })).status).toBe(200);
    const basic = Buffer.from(`u:${secrets.password}`).toString("base64");
    expect(receiver.received[0]?.headers.authorization).toBe(`Basic ${basic}`);
  });

  test("keeps its user name secret, too, when the receiver repeats it", async () => {
    receiver.answer((request, response) => {
      const basic = Buffer.from(request.headers.authorization?.slice("Basic ".length) ?? "", "base64");
      response.writeHead(400).end(`no such user: ${basic}, ${encodeURIComponent(String(basic))}`);
    });
    const credentialId = await stored("usernamePassword", { username: "ada@example.com", password: secrets.password });
    const { body } = await tested({ itsm: { baseUrl: receiver.url, credentialId } });
    expect(body.message).toContain("HTTP 400: no such user: ********:********, ********%3A********");
  });

  test("replaces an OAuth client", async () => {
    receiver.answer((request, response, socket) => {
      if (request.path !== "/oauth_token.do") return successes.itsm(request, response, socket);
      response.writeHead(200).end('{"access_token":"an-access-token","expires_in":1800}');
    });
    const credentialId = await stored("itsmOAuth", { clientId: "c", clientSecret: secrets.clientSecret });
    const addresses = { tokenUrl: `${receiver.url}/oauth_token.do`, authUrl: receiver.url };
    const oauth = { ...addresses, refreshToken: secrets.refreshToken };
    expect((await tested({ itsm: { baseUrl: receiver.url, credentialId, oauth } })).status).toBe(200);
    const [token, lookUp] = receiver.received;
    expect(Object.fromEntries(new URLSearchParams(token?.body))).toEqual({
      grant_type: "refresh_token",
      refresh_token: secrets.refreshToken,
      client_id: "c",
      client_secret: secrets.clientSecret,
    });
    expect(lookUp?.headers.authorization).toBe("Bearer an-access-token");
  });

  test("of another type, of another tenant, or that is not there, is refused", async () => {
    const credentialId = await stored("teamChat", { token: secrets.token });
    const wrong = await tested({ incidentPaging: { credentialId } });
    expect(wrong).toMatchObject({ status: 400, body: { code: 3 } });
    expect(wrong.body.message).toMatch(/^type\.incidentPaging\.credentialId: must be/);
    expect((await tested({ incidentPaging: { credentialId: "none" } })).status).toBe(400);
    const other = await testTenant(server.database.sql);
    expect((await tested({ teamChat: { channel: "ops", credentialId } }, { headers: other.headers })).status).toBe(400);
    expect(receiver.received).toEqual([]);
  });
});

describe("a stored destination", () => {
  const call = async (method: string, path: string, body: object) => {
    const answer = await fetch(`${server.url}/v1/notification/destinations${path}`, {
      method,
      headers: { ...tenant.headers, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(200);
    return (await answer.json()) as Tested;
  };

  test("is tested with the secrets that it has, where hidden ones are sent", async () => {
    const type = webhook({ headers: { authorization: secrets.header } });
    const { destination } = await call("POST", "", { name: "stored", type });
    expect(JSON.stringify(destination)).not.toContain(secrets.header);
    expect((await tested(destination.type, { name: "stored" })).status).toBe(200);
    expect(receiver.received[0]?.headers.authorization).toBe(secrets.header);
  });

  test("keeps what its refresh token was exchanged for", async () => {
    let good = secrets.refreshToken as string;
    let issued = 0;
    receiver.answer((request, response, socket) => {
      if (request.path !== "/token") return successes.itsm(request, response, socket);
      if (new URLSearchParams(request.body).get("refresh_token") !== good) {
        return void response.writeHead(400).end('{"error":"invalid_grant"}');
      }
      good = `exchanged-${++issued}`;
      const answer = { access_token: `access-${issued}`, refresh_token: good, expires_in: 1 };
      response.writeHead(200).end(JSON.stringify(answer));
    });
    const addresses = { tokenUrl: `${receiver.url}/token`, authUrl: receiver.url };
    const oauth = {
      ...addresses,
      clientId: "c",
      clientSecret: secrets.clientSecret,
      refreshToken: secrets.refreshToken,
    };
    const { destination } = await call("POST", "", {
      name: "rotating",
      type: { itsm: { baseUrl: receiver.url, oauth } },
    });
    for (let i = 0; i < 3; i++) expect((await tested(destination.type, { name: "rotating" })).status).toBe(200);
    expect(issued).toBeGreaterThanOrEqual(3);
  });
});

describe("what is wrong with a destination is named by its path, and nothing is sent", () => {
  const facts = Array.from({ length: 21 }, () => ({ name: "a", value: "b" }));
  test.each([
    ["a channel with its sign", { teamChat: { channel: "#ops", token: "xoxb" } }, "type.teamChat.channel"],
    ["a bad template", { email: { to: "a@example.com", subject: "{{#a}}" } }, "type.email.subject"],
    [
      "the second bad fact",
      { officeChat: { webhookUrl: "http://x", text: "x", facts: [{}, { value: "{{a" }] } },
      "type.officeChat.facts[1].value",
    ],
    ["21 facts", { officeChat: { webhookUrl: "http://x", text: "x", facts } }, "type.officeChat.facts"],
    ["two type objects", { email: { to: "a@example.com" }, webhook: { url: "http://x" } }, "type"],
    ["no type object", {}, "type"],
    ["hidden secrets of nothing", { teamChat: { channel: "ops", token: "********" } }, "type.teamChat.token"],
  ])("%s", async (_name, type, path) => {
    const { status, body } = await tested(type);
    expect(status).toBe(400);
    expect(body.code).toBe(3);
    expect(body.message).toMatch(new RegExp(`^${path.replace(/[[\]]/g, "\\$&")}\\b`));
    expect(receiver.received).toEqual([]);
  });
});

test("addresses that are not public are refused unless the operator allows them", async () => {
  const own = await testTenant(guarded.database.sql);
  const answer = await tested(webhook(), { headers: own.headers, url: guarded.url });
  expect(answer).toMatchObject({ status: 400, body: { code: 9, message: expect.stringContaining("refused_address") } });
  expect(receiver.received).toEqual([]);
});

test.each([
  ["USER", "user", 403],
  ["USER", "read_only_user", 403],
  ["DATA_INGEST", null, 403],
] as const)("a client of type %s %s may not", async (type, role, status) => {
  const headers = await keyHeaders(server.database.sql, tenant.id, type, role);
  expect((await tested(webhook(), { headers: headers as typeof tenant.headers })).status).toBe(status);
  expect(receiver.received).toEqual([]);
});

test("without a key no one may", async () => {
  expect((await tested(webhook(), { headers: {} })).status).toBe(401);
});
