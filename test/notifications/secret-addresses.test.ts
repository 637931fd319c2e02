import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { DestinationSchema, DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import { DestinationService } from "#gen/belfry/notifications/v1/destination_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { storedRefreshToken } from "../../src/notifications/kinds/refresh-token.ts";
import { fixedOrigin, originOf } from "../../src/notifications/kinds/secret-addresses.ts";
import { transport } from "../support/clients.ts";
import { answering, httpReceiver } from "../support/receivers.ts";
import { masterKeys, testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { secrets, site, successes } from "./kinds.ts";
import { destinationsPath, eventJson } from "./samples.ts";

/** Where the secrets belong, and a receiver of whoever wants to read them. */
const home = await httpReceiver();
const thief = await httpReceiver();
afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await thief[Symbol.asyncDispose]();
});
const server = await testServer({ BELFRY_OUTBOUND_ALLOW: "127.0.0.1", BELFRY_OUTBOUND_TIMEOUT: "5s" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const json = v1(server.url, tenant.headers);
const client = createClient(DestinationService, transport(server.target, "connect", tenant.headers));
const typed = (name: string, type: object) => fromJson(DestinationSchema, { name, type } as JsonValue);

interface Result {
  code: number;
  message: string;
}

async function overConnect(call: Promise<unknown>): Promise<Result> {
  try {
    await call;
    return { code: 0, message: "" };
  } catch (error) {
    const { code, rawMessage } = ConnectError.from(error);
    return { code, message: rawMessage };
  }
}
const overV1 = async (method: string, path: string, body: object): Promise<Result> => {
  const answer = await json(method, path, body);
  return { code: answer.body?.code ?? 0, message: answer.body?.message ?? "" };
};

/** The ways in which a destination is stored or tested. */
const routes = {
  "PUT over /v1": (name: string, type: object) =>
    overV1("PUT", `${destinationsPath}/${encodeURIComponent(name)}`, { type }),
  "PUT over Connect": (name: string, type: object) =>
    overConnect(client.replaceDestination({ destination: typed(name, type) })),
  ":test over /v1": (name: string, type: object) => overV1("POST", `${destinationsPath}:test`, { name, type }),
  ":test over Connect": (name: string, type: object) =>
    overConnect(client.testDestination({ destination: typed(name, type) })),
};
const puts = [routes["PUT over /v1"], routes["PUT over Connect"]];
const creates = [
  (name: string, type: object) => overV1("POST", destinationsPath, { name, type }),
  (name: string, type: object) => overConnect(client.createDestination({ destination: typed(name, type) })),
];

let made = 0;
/** Stores a destination, and returns its name and its type as it is shown. */
async function stored(type: object): Promise<{ name: string; type: Record<string, Record<string, unknown>> }> {
  made += 1;
  const name = `kept ${made}`;
  const answer = await json("POST", destinationsPath, { name, type });
  expect(answer).toMatchObject({ status: 200 });
  return { name, type: answer.body.destination.type };
}

beforeEach(() => {
  for (const receiver of [home, thief]) {
    receiver.received.length = 0;
    receiver.answer((request, response, socket) => {
      if (!request.path.startsWith("/token")) return successes.itsm(request, response, socket);
      response.writeHead(200).end('{"access_token":"an-access-token","expires_in":1800}');
    });
  }
});

const headers = { authorization: secrets.header };
const oauth = {
  username: "u",
  password: secrets.password,
  clientId: "c",
  clientSecret: secrets.clientSecret,
  refreshToken: secrets.refreshToken,
  tokenUrl: `${home.url}/token`,
  authUrl: `${home.url}/auth`,
};
const basic = { username: "u", password: secrets.password };

describe("a secret that is kept goes nowhere else", () => {
  test.each(
    Object.entries({
      "the headers of a webhook": [{ webhook: { url: `${home.url}/x`, headers } }, "webhook.url", "webhook.headers["],
      "the signing secret of a webhook": [
        { webhook: { url: `${home.url}/x`, signingSecret: secrets.signingSecret } },
        "webhook.url",
        "webhook.signingSecret",
      ],
      "the headers of a webhook with tags": [
        { webhook: { url: `${home.url}/{{event.name}}`, headers } },
        "webhook.url",
        "webhook.headers[",
      ],
      "a password": [{ itsm: { baseUrl: home.url, shortDescription: "x", basic } }, "itsm.baseUrl", "itsm.basic"],
      "what gets access tokens, by the address of tokens": [
        { itsm: { baseUrl: home.url, shortDescription: "x", oauth } },
        "itsm.oauth.tokenUrl",
        "itsm.oauth.refreshToken",
      ],
      "what gets access tokens, by the address of log-ins": [
        { itsm: { baseUrl: home.url, shortDescription: "x", oauth } },
        "itsm.oauth.authUrl",
        "itsm.oauth.clientSecret",
      ],
      "what gets access tokens, by the address of the instance": [
        { itsm: { baseUrl: home.url, shortDescription: "x", oauth } },
        "itsm.baseUrl",
        "itsm.oauth.password",
      ],
    }).flatMap(([what, values]) => Object.keys(routes).map((route) => [what, route, ...values] as const)),
  )("%s: %s", async (_what, route, type, moved, secret) => {
    const own = await stored(type as object);
    const changed = structuredClone(own.type);
    const steps = (moved as string).split(".");
    const last = steps.pop() as string;
    const at = steps.reduce<Record<string, unknown>>((of, step) => of[step] as never, changed);
    at[last] = String(at[last]).replace(home.url, thief.url);
    const put = routes[route as keyof typeof routes];
    const refused = await put(own.name, changed);
    expect(refused.code).toBe(Code.InvalidArgument);
    expect(refused.message).toContain(`type.${secret}`);
    expect(refused.message).toContain(`only while scheme, host and port of ${moved} stay`);
    expect(thief.received).toEqual([]);
    // Nothing was changed: the stored one is sent to where it belongs.
    expect(await routes[":test over /v1"](own.name, own.type)).toMatchObject({ code: 0 });
    expect(home.received.length).toBeGreaterThan(0);
  });

  test.each(["https", "port", "host"])("to another %s", async (what) => {
    const own = await stored({ webhook: { url: "http://hooks.example.com/x", headers } });
    const url = {
      https: "https://hooks.example.com/x",
      port: "http://hooks.example.com:81/x",
      host: "http://example.com",
    };
    for (const put of puts) {
      const type = { webhook: { ...own.type.webhook, url: url[what as keyof typeof url] } };
      expect((await put(own.name, type)).code).toBe(Code.InvalidArgument);
    }
  });

  test("when nothing is stored that could be kept", async () => {
    const type = { webhook: { url: thief.url, headers: { authorization: "********" } } };
    for (const way of [...creates, routes[":test over /v1"], routes[":test over Connect"]]) {
      const refused = await way("nothing is stored", type);
      expect(refused.code).toBe(Code.InvalidArgument);
      expect(refused.message).toContain('type.webhook.headers["authorization"]: must be the secret itself');
    }
    expect(thief.received).toEqual([]);
  });

  test("but a secret that is sent again may go anywhere", async () => {
    const own = await stored({ webhook: { url: `${home.url}/x`, headers } });
    const type = { webhook: { url: `${thief.url}/x`, headers: { authorization: "another" } } };
    for (const route of Object.values(routes)) expect(await route(own.name, type)).toMatchObject({ code: 0 });
    expect(thief.received.map((each) => each.headers.authorization)).toEqual(["another", "another"]);
  });
});

test.each([
  ["http://hooks.example.com/x", "http://hooks.example.com/y?z"],
  ["http://hooks.example.com/x", "HTTP://Hooks.Example.COM:80/x"],
  ["https://hooks.example.com:443/x", "https://hooks.example.com./x"],
  ["https://bücher.example/x", "https://xn--bcher-kva.example/x"],
  ["https://hooks.example.com/x", "https://hooks.example.com/{{event.name}}"],
  ["https://hooks.example.com/{{event.name}}", "https://hooks.example.com?{{event.name}}"],
])("from %s to %s a secret is kept", async (before, after) => {
  for (const put of puts) {
    const own = await stored({ webhook: { url: before, headers } });
    expect(await put(own.name, { webhook: { ...own.type.webhook, url: after } })).toMatchObject({ code: 0 });
  }
});

test.each([
  ["https://a.example/", "https://a.example:443"],
  ["https://a.example/{{x}}", "https://a.example:443"],
  ["http://127.1/", "http://127.0.0.1:80"],
])("%s leads to %s", (address, origin) => {
  const { protocol, hostname } = new URL(origin);
  expect(fixedOrigin(address)).toBe(`${protocol}//${hostname}:`);
});

test.each(["ftp://a.example/", "https://u:p@a.example/", "https://u@a.example/", "a.example", ""])(
  "%j leads nowhere",
  (address) => expect(originOf(address)).toBeUndefined(),
);

const misleading = [
  "{{event.name}}",
  "{{{event.body}}}/x",
  "http{{event.name}}://a.example/",
  "https://{{event.name}}.a.example/",
  "https://a.example{{event.name}}",
  "https://a.example{{event.name}}/",
  "https://a.example:{{event.name}}/",
  "https://{{#clear}}a{{/clear}}{{^clear}}b{{/clear}}.example/x",
  "https://u@a.example/{{event.name}}",
  "{{=<% %>=}}https://<%event.name%>/",
];

describe("a webhook with secrets has no tags before its path", () => {
  test.each(misleading)("%s", async (url) => {
    expect(fixedOrigin(url)).toBeUndefined();
    for (const more of [{ headers }, { signingSecret: secrets.signingSecret }]) {
      for (const way of [...creates, routes[":test over /v1"], routes[":test over Connect"]]) {
        const refused = await way(`tags ${made++}`, { webhook: { url, ...more } });
        expect(refused.code).toBe(Code.InvalidArgument);
        expect(refused.message).toContain("type.webhook.url: must begin with scheme, host and a slash, without tags");
      }
    }
  });

  test("and without secrets it may", async () => {
    expect(await creates[0]?.("free", { webhook: { url: "https://{{event.name}}.a.example/" } })).toMatchObject({
      code: 0,
    });
  });
});

describe("one that was stored with tags before its path and with secrets", () => {
  const tagged = `{{#event}}${thief.url}{{/event}}/x`;
  async function old() {
    const own = await stored({ webhook: { url: `${home.url}/x`, headers } });
    await sql`
      update destinations set type = jsonb_set(type, '{webhook,url}', to_jsonb(${tagged}::text))
      where tenant_id = ${tenant.id} and name = ${own.name}`;
    return { name: own.name, type: { webhook: { ...own.type.webhook, url: tagged } } };
  }

  test("is shown, and may be changed elsewhere", async () => {
    const { name, type } = await old();
    const path = `${destinationsPath}/${encodeURIComponent(name)}`;
    expect((await json("GET", path)).body.destination.type).toMatchObject(type);
    const list = (await json("GET", destinationsPath)).body.destinations;
    expect(list.find((each: { name: string }) => each.name === name).type).toMatchObject(type);
    const answer = await json("PUT", path, { description: "changed", tags: ["t"], maxPerMinute: 5, type });
    expect(answer).toMatchObject({ status: 200, body: { destination: { description: "changed" } } });
    const fresh = { webhook: { ...type.webhook, headers: { authorization: "a new one" } } };
    const moved = { webhook: { ...type.webhook, url: `{{event.name}}${thief.url}` } };
    for (const put of puts) {
      expect((await put(name, fresh)).code).toBe(Code.InvalidArgument);
      expect((await put(name, moved)).code).toBe(Code.InvalidArgument);
    }
  });

  test("fails its deliveries, for good and with the reason, and sends nothing", async () => {
    const { name } = await old();
    const names = { triggerNames: [name], destinationNames: [name] };
    await json("POST", "/v1/notification/triggers", { name, type: eventJson("disk") });
    expect(await json("POST", "/v1/notification/rules", { name, enabled: true, ...names })).toMatchObject({
      status: 200,
    });
    const event = { name: "disk", timestamp: Date.now(), dimensions: { source: "a" }, status: "STATUS_OPEN" };
    expect((await json("POST", "/v1/data-receiver/events", { events: [event] })).body.failed).toBe(0);
    const delivery = async () => (await json("GET", "/v1/notification/deliveries")).body.deliveries[0];
    await expect.poll(async () => (await delivery())?.status).toBe("FAILED");
    expect(await delivery()).toMatchObject({
      attempts: 1,
      error: "bad_address: url has tags before its path, and signingSecret or headers would be sent there",
    });
    expect(thief.received).toEqual([]);
  });

  test("fails its tests likewise", async () => {
    const { name, type } = await old();
    const refused = await routes[":test over /v1"](name, type);
    expect(refused.code).toBe(Code.FailedPrecondition);
    expect(refused.message).toContain("(bad_address): url has tags before its path");
    expect(thief.received).toEqual([]);
    await using place = await site();
    const value = { url: tagged, headers };
    expect(await place.send({ case: "webhook", value })).toMatchObject({
      result: "failed",
      reason: "bad_address",
      course: "fail",
    });
    expect(thief.received).toEqual([]);
  });
});

test("an access token goes to the address that it was got for, and to no other", async () => {
  await using place = await site();
  const itsm = (baseUrl: string, refreshToken: string) => ({
    case: "itsm" as const,
    value: {
      baseUrl,
      shortDescription: "x",
      authorization: { case: "oauth" as const, value: { ...oauth, password: "", refreshToken } },
    },
  });
  expect((await place.send(itsm(home.url, secrets.refreshToken))).result).toBe("sent");
  home.answer(answering(400, '{"error":"invalid_grant"}'));
  await place.send(itsm(thief.url, "made up"));
  expect(thief.received).toEqual([]);
});

test("a refresh token that is exchanged elsewhere by now is neither read nor replaced", async () => {
  const keys = keyring(readConfig({ DATABASE_URL: server.database.url, BELFRY_MASTER_KEYS: masterKeys }));
  const type = { itsm: { baseUrl: home.url, shortDescription: "x", oauth } };
  const { name } = await stored(type);
  const tokenOf = (tokenUrl: string) =>
    storedRefreshToken(
      sql,
      tenant.id,
      name,
      fromJson(DestinationTypeSchema, { itsm: { ...type.itsm, oauth: { ...oauth, tokenUrl } } }),
      keys,
    );
  expect(await tokenOf(`${thief.url}/token`).read()).toBe("");
  await tokenOf(`${thief.url}/token`).store("theirs");
  expect(await tokenOf(oauth.tokenUrl).read()).toBe(secrets.refreshToken);
});
