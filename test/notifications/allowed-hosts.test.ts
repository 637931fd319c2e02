import { randomUUID } from "node:crypto";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { CredentialService } from "#gen/belfry/credentials/v1/credential_service_pb.ts";
import { DestinationSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { allowsHost, checkKeptHosts, hostOf } from "../../src/credentials/allowed-hosts.ts";
import { transport } from "../support/clients.ts";
import { httpReceiver } from "../support/receivers.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { secrets, successes } from "./kinds.ts";
import { destinationsPath, eventJson } from "./samples.ts";

const receiver = await httpReceiver();
afterAll(() => receiver[Symbol.asyncDispose]());
const server = await testServer({
  BELFRY_OUTBOUND_ALLOW: "127.0.0.1",
  BELFRY_OUTBOUND_TIMEOUT: "5s",
  BELFRY_TEAM_CHAT_URL: `${receiver.url}/api`,
  BELFRY_INCIDENT_PAGING_URL: receiver.url,
});
const tenant = await testTenant(server.database.sql);
const json = v1(server.url, tenant.headers);
const destinations = createClient(DestinationService, transport(server.target, "connect", tenant.headers));
const credentials = createClient(CredentialService, transport(server.target, "connect", tenant.headers));

beforeEach(() => {
  receiver.received.length = 0;
  receiver.answer((request, response, socket) => {
    if (request.path.startsWith("/token")) {
      response.writeHead(200).end('{"access_token":"an-access-token","expires_in":1800}');
    } else if (request.path.startsWith("/api/chat")) successes.teamChat(request, response, socket);
    else if (request.path.startsWith("/v2/")) successes.incidentPaging(request, response, socket);
    else successes.itsm(request, response, socket);
  });
});

describe("a host is allowed", () => {
  test.each([
    [[], "a.example", true],
    [["a.example"], "a.example", true],
    [["A.Example"], "a.example", true],
    [["a.example"], "b.a.example", false],
    [["a.example"], "xa.example", false],
    [["*.example.com"], "a.example.com", true],
    [["*.example.com"], "b.a.example.com", true],
    [["*.example.com"], "example.com", false],
    [["*.example.com"], "badexample.com", false],
    [["*.example.com"], "example.com.evil.example", false],
    [["b.example", "*.example.com"], "a.example.com", true],
    [["127.0.0.1"], "127.0.0.1", true],
    [["xn--bcher-kva.example"], "xn--bcher-kva.example", true],
  ])("%j, %s: %s", (names, host, allowed) => expect(allowsHost(names, host)).toBe(allowed));

  test.each([
    ["https://A.Example:8443/x", "a.example"],
    ["https://a.example./", "a.example"],
    ["https://bücher.example", "xn--bcher-kva.example"],
    ["http://0x7f.1", "127.0.0.1"],
    ["https://a.example@b.example/", "b.example"],
    ["ftp://a.example", undefined],
  ])("by the name that %s has: %s", (address, host) => expect(hostOf(address)).toBe(host));
});

test.each([
  [[], ["a.example"], true],
  [["a.example"], ["a.example"], true],
  [["*.a.example"], ["b.a.example", "*.b.a.example"], true],
  [["a.example"], [], false],
  [["a.example"], ["a.example", "b.example"], false],
  [["b.a.example"], ["*.a.example"], false],
  [["*.b.a.example"], ["*.a.example"], false],
])("from %j to %j stored secrets may stay: %s", (before, after, may) => {
  const check = () => checkKeptHosts(after, { allowedHosts: before, boundHosts: [] });
  if (may) check();
  else expect(check).toThrow("must be given again");
});

const kinds = {
  teamChat: ["teamChat", { token: secrets.token }, { teamChat: { channel: "ops" } }, "teamChat.credentialId"],
  incidentPaging: [
    "incidentPaging",
    { routingKey: secrets.integrationKey },
    { incidentPaging: {} },
    "incidentPaging.credentialId",
  ],
  "itsm, basic": [
    "usernamePassword",
    { username: "u", password: secrets.password },
    { itsm: { baseUrl: receiver.url, shortDescription: "x" } },
    "itsm.baseUrl",
  ],
  "itsm, tokens": [
    "itsmOAuth",
    { clientId: "c", clientSecret: secrets.clientSecret },
    {
      itsm: {
        baseUrl: "https://a.b.example",
        shortDescription: "x",
        oauth: { tokenUrl: `${receiver.url}/token`, authUrl: "https://a.b.example", refreshToken: "r" },
      },
    },
    "itsm.oauth.tokenUrl",
  ],
  "itsm, the address of the instance": [
    "itsmOAuth",
    { clientId: "c", clientSecret: secrets.clientSecret },
    {
      itsm: {
        baseUrl: receiver.url,
        shortDescription: "x",
        oauth: { tokenUrl: "https://a.b.example/token", authUrl: "https://a.b.example", refreshToken: "r" },
      },
    },
    "itsm.baseUrl",
  ],
} as const;
const others = ["*.b.example", "elsewhere.example"];

let made = 0;
async function credential(type: string, own: Record<string, string>, allowedHosts: string[]): Promise<string> {
  made += 1;
  const info = { name: `c ${made}`, type, allowedHosts };
  return (await credentials.createCredential({ info, secrets: own })).info?.id ?? "";
}
/** A type that names a credential. */
function naming(type: object, credentialId: string): Record<string, object> {
  return Object.fromEntries(Object.entries(type).map(([kind, value]) => [kind, { ...value, credentialId }]));
}

describe.each(Object.entries(kinds))("a credential for %s", (_label, [type, own, given, field]) => {
  const rule = `type.${field}: sends the credential to 127.0.0.1, which is none of its allowedHosts`;

  test("is sent to no other host, whichever way its destination is stored or tested", async () => {
    const id = await credential(type, own as Record<string, string>, others);
    const destination = { name: `d ${made}`, type: naming(given, id) };
    const any = { name: destination.name, type: { teamChat: { channel: "a", token: "t" } } };
    const refused = { status: 400, body: { code: 3, message: expect.stringContaining(rule) } };
    expect(await json("POST", destinationsPath, destination)).toMatchObject(refused);
    expect(await json("POST", `${destinationsPath}:test`, destination)).toMatchObject(refused);
    expect(await json("POST", destinationsPath, any)).toMatchObject({ status: 200 });
    expect(await json("PUT", `${destinationsPath}/${encodeURIComponent(any.name)}`, destination)).toMatchObject(
      refused,
    );
    const message = { destination: fromJson(DestinationSchema, destination as JsonValue) };
    for (const call of [destinations.testDestination, destinations.replaceDestination]) {
      const error = await call(message).then(() => undefined, ConnectError.from);
      expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: expect.stringContaining(field) });
    }
    expect(receiver.received).toEqual([]);
  });
});

describe("a credential whose hosts are changed", () => {
  const path = (id: string) => `/v1/credentials/${id}`;

  test("is not sent any more, which fails deliveries for good and says why", async () => {
    const id = await credential("usernamePassword", { username: "u", password: "secret" }, ["127.0.0.1", "a.example"]);
    const type = naming({ itsm: { baseUrl: receiver.url, shortDescription: "x" } }, id);
    expect((await json("POST", `${destinationsPath}:test`, { name: "desk", type })).status).toBe(200);
    expect((await json("POST", destinationsPath, { name: "desk", type })).status).toBe(200);
    await json("POST", "/v1/notification/triggers", { name: "t", type: eventJson("disk") });
    const rule = { name: "r", enabled: true, triggerNames: ["t"], destinationNames: ["desk"] };
    expect((await json("POST", "/v1/notification/rules", rule)).status).toBe(200);
    const info = { name: "c", type: "usernamePassword", allowedHosts: ["a.example"] };
    expect((await json("PUT", path(id), { info })).body.info.info.allowedHosts).toEqual(["a.example"]);
    receiver.received.length = 0;
    const event = { name: "disk", timestamp: Date.now(), dimensions: { source: "a" }, status: "STATUS_OPEN" };
    expect((await json("POST", "/v1/data-receiver/events", { events: [event] })).body.failed).toBe(0);
    const delivery = async () => (await json("GET", "/v1/notification/deliveries")).body.deliveries[0];
    await expect.poll(async () => (await delivery())?.status).toBe("FAILED");
    expect(await delivery()).toMatchObject({
      attempts: 1,
      error:
        "refused_address: the credential is not sent: itsm.baseUrl sends the credential to 127.0.0.1, which is none of its allowedHosts",
      tries: [{ reason: "refused_address" }],
    });
    expect(receiver.received).toEqual([]);
  });

  test("is replaced with them, and keeps its secrets only for hosts that it had", async () => {
    const id = await credential("teamChat", { token: "t" }, ["a.example", "*.b.example"]);
    const put = (allowedHosts: string[] | undefined, more = {}) =>
      json("PUT", path(id), { info: { name: "c", type: "teamChat", ...(allowedHosts && { allowedHosts }) }, ...more });
    expect((await put(["a.example", "c.b.example"])).body.info.info.allowedHosts).toEqual(["a.example", "c.b.example"]);
    for (const wider of [undefined, [], ["a.example", "d.b.example"]]) {
      const answer = await put(wider);
      expect(answer).toMatchObject({ status: 500, body: { code: 3 } });
      expect(answer.body.message).toBe(
        "secrets: must be given again: allowedHosts names hosts that were not allowed before",
      );
    }
    expect((await put([], { secrets: { token: "u" } })).status).toBe(200);
    expect((await put(["z.example"])).status).toBe(200);
    const { credentials: listed } = (await json("GET", "/v1/credentials?pageSize=1000")).body;
    expect(listed.find((each: { id: string }) => each.id === id).info.allowedHosts).toEqual(["z.example"]);
  });
});

describe("a credential without allowedHosts", () => {
  const here = receiver.url;
  const there = `http://localhost:${receiver.port}`;
  const shown = async (id: string) => {
    const { credentials: listed } = (await json("GET", "/v1/credentials?pageSize=1000")).body;
    const { allowedHosts, boundHosts } = listed.find((each: { id: string }) => each.id === id).info;
    return { allowedHosts, boundHosts };
  };
  const itsm = (id: string, baseUrl: string) => naming({ itsm: { baseUrl, shortDescription: "x" } }, id);
  const unbound = () => credential("usernamePassword", { username: "u", password: "secret" }, []);
  const put = (id: string, more: object, secrets?: object) =>
    json("PUT", `/v1/credentials/${id}`, {
      info: { name: "c", type: "usernamePassword", ...more },
      ...(secrets && { secrets }),
    });
  const refused = {
    status: 400,
    body: {
      code: 3,
      message: expect.stringContaining("sends the credential to localhost, which is none of its allowedHosts"),
    },
  };
  const bound = { allowedHosts: [], boundHosts: ["127.0.0.1"] };
  const secrets = { username: "u", password: "other" };
  const newName = () => `bound ${randomUUID()}`;

  test.each(Object.entries(kinds))(
    "of the kind %s is bound to the hosts of the first destination that uses it",
    async (_kind, [type, own, given]) => {
      const id = await credential(type, own as Record<string, string>, []);
      expect(await shown(id)).toEqual({ allowedHosts: [], boundHosts: [] });
      expect(await json("POST", destinationsPath, { name: newName(), type: naming(given, id) })).toMatchObject({
        status: 200,
      });
      const hosts = type === "itsmOAuth" ? ["127.0.0.1", "a.b.example"] : ["127.0.0.1"];
      expect(new Set((await shown(id)).boundHosts)).toEqual(new Set(hosts));
    },
  );

  test("goes to no other host by a second destination, a changed one, a test, or when the first is deleted", async () => {
    const id = await unbound();
    const [first, second] = [newName(), newName()];
    const path = `${destinationsPath}/${encodeURIComponent(first)}`;
    expect(await json("POST", destinationsPath, { name: first, type: itsm(id, here) })).toMatchObject({ status: 200 });
    expect(await shown(id)).toEqual(bound);
    expect(await json("POST", destinationsPath, { name: second, type: itsm(id, there) })).toMatchObject(refused);
    expect(await json("PUT", path, { name: first, type: itsm(id, there) })).toMatchObject(refused);
    expect(await json("POST", `${destinationsPath}:test`, { name: second, type: itsm(id, there) })).toMatchObject(
      refused,
    );
    expect(await json("DELETE", path)).toMatchObject({ status: 200 });
    expect(await json("POST", destinationsPath, { name: second, type: itsm(id, there) })).toMatchObject(refused);
    expect(await json("POST", destinationsPath, { name: second, type: itsm(id, here) })).toMatchObject({ status: 200 });
    expect(receiver.received).toEqual([]);
  });

  test("is bound by a test before it is sent", async () => {
    const id = await unbound();
    expect(await json("POST", `${destinationsPath}:test`, { name: newName(), type: itsm(id, here) })).toMatchObject({
      status: 200,
    });
    expect(await shown(id)).toEqual(bound);
    expect(await json("POST", destinationsPath, { name: newName(), type: itsm(id, there) })).toMatchObject(refused);
  });

  test("is not bound by a destination that is refused", async () => {
    const id = await unbound();
    const type = { teamChat: { channel: "ops", credentialId: id } };
    expect(await json("POST", destinationsPath, { name: newName(), type })).toMatchObject({ status: 400 });
    expect(await shown(id)).toEqual({ allowedHosts: [], boundHosts: [] });
  });

  test("may be renamed and narrowed without its secrets; other hosts need them", async () => {
    const id = await unbound();
    await json("POST", destinationsPath, { name: newName(), type: itsm(id, here) });
    expect(await put(id, { description: "d" })).toMatchObject({ status: 200 });
    expect(await shown(id)).toEqual(bound);
    const wider = await put(id, { allowedHosts: ["127.0.0.1", "localhost"] });
    expect(wider).toMatchObject({
      status: 500,
      body: { code: 3, message: expect.stringMatching(/^secrets: must be given again/) },
    });
    expect(await put(id, { allowedHosts: ["127.0.0.1"] })).toMatchObject({ status: 200 });
    expect(await put(id, { allowedHosts: ["127.0.0.1", "localhost"] }, secrets)).toMatchObject({ status: 200 });
    expect(await json("POST", destinationsPath, { name: newName(), type: itsm(id, there) })).toMatchObject({
      status: 200,
    });
    // With new secrets, and nothing allowed, it is bound to all that use it now.
    expect(await put(id, {}, secrets)).toMatchObject({ status: 200 });
    expect(await shown(id)).toEqual({ allowedHosts: [], boundHosts: ["127.0.0.1", "localhost"] });
  });

  describe("and of before, which several destinations use,", () => {
    /** As a version stored it that knows no bound hosts. */
    async function former() {
      const id = await unbound();
      const names = [newName(), newName()];
      for (const [i, baseUrl] of [here, there].entries()) {
        const own = { name: names[i], type: itsm(id, baseUrl) };
        if (i === 1) await server.database.sql`update credentials set allowed_hosts = '["localhost"]' where id = ${id}`;
        expect(await json("POST", destinationsPath, own)).toMatchObject({ status: 200 });
      }
      await server.database.sql`update credentials set allowed_hosts = null, bound_hosts = null where id = ${id}`;
      return { id, names };
    }
    const both = { allowedHosts: [], boundHosts: ["127.0.0.1", "localhost"] };
    const third = "http://127.0.0.2:1";

    test("is bound to the hosts of them all when another begins to use it, is changed, tested or deleted", async () => {
      for (const use of [
        (id: string, _names: string[]) => json("POST", destinationsPath, { name: newName(), type: itsm(id, third) }),
        (id: string, [name = ""]: string[]) =>
          json("PUT", `${destinationsPath}/${encodeURIComponent(name)}`, { name, type: itsm(id, third) }),
        (id: string, _names: string[]) =>
          json("POST", `${destinationsPath}:test`, { name: newName(), type: itsm(id, third) }),
        (id: string, _names: string[]) => put(id, { allowedHosts: ["127.0.0.2"] }),
      ]) {
        const { id, names } = await former();
        expect((await use(id, names)).body).toMatchObject({ code: 3 });
        expect(await json("POST", destinationsPath, { name: newName(), type: itsm(id, there) })).toMatchObject({
          status: 200,
        });
        expect(await shown(id)).toEqual(both);
      }
      const { id, names } = await former();
      for (const name of names) await json("DELETE", `${destinationsPath}/${encodeURIComponent(name)}`);
      expect(await shown(id)).toEqual(both);
    });

    test("is bound when something is sent", async () => {
      const { id, names } = await former();
      const name = newName();
      await json("POST", "/v1/notification/triggers", { name, type: eventJson(name) });
      const rule = { name, enabled: true, triggerNames: [name], destinationNames: names };
      expect(await json("POST", "/v1/notification/rules", rule)).toMatchObject({ status: 200 });
      const event = { name, timestamp: Date.now(), dimensions: { source: "a" }, status: "STATUS_OPEN" };
      await json("POST", "/v1/data-receiver/events", { events: [event] });
      await expect.poll(() => receiver.received.filter(({ method }) => method === "POST").length).toBe(2);
      expect(await shown(id)).toEqual(both);
    });
  });
});

test.each([["a b"], ["https://a.example"], ["a.example:443"], ["*"], ["a.*.example"], ["*example.com"], [""]])(
  "%j is no name of a host",
  async (name) => {
    const answer = await json("POST", "/v1/credentials", {
      info: { name: "c", type: "teamChat", allowedHosts: [name] },
    });
    expect(answer).toMatchObject({ status: 500, body: { code: 3 } });
    expect(answer.body.message).toContain("info.allowedHosts[0]: ");
  },
);
