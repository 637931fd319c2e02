import type { IncomingHttpHeaders } from "node:http";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { newApiKey } from "../../src/auth/key.ts";
import { adoptKey } from "../../src/auth/key-headers.ts";
import { httpVersions, protocols, raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";

const basicOf = (name: string, password: string) => `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;

function adopted(headers: IncomingHttpHeaders, aliases: string[] = [], foreign = false) {
  adoptKey(headers, { aliases, basic: () => foreign });
  return headers;
}

describe("the key of a request", () => {
  test.each([
    ["Bearer bf_a", "bf_a"],
    ["bearer   bf_a ", "bf_a"],
    ["Bearer eyJhbGciOi", undefined],
    ["Bearer", undefined],
    ["bf_a", undefined],
    ["Digest bf_a", undefined],
    [basicOf("x", "bf_a"), undefined],
  ])("in Authorization: %s is %s", (authorization, key) => {
    expect(adopted({ authorization })["service-api-key"]).toBe(key);
  });

  test.each([
    [basicOf("anyone", "bf_a"), "bf_a"],
    [basicOf("", "bf_a"), "bf_a"],
    [basicOf("anyone", "secret"), undefined],
    ["Basic !!!", undefined],
    ["Bearer bf_a", "bf_a"],
  ])("on the path of a foreign protocol, in Authorization: %s is %s", (authorization, key) => {
    expect(adopted({ authorization }, [], true)["service-api-key"]).toBe(key);
  });

  test("is taken out of Authorization, and what a proxy put there stays", () => {
    expect(adopted({ authorization: "Bearer bf_a" })).toEqual({ "service-api-key": "bf_a" });
    expect(adopted({ authorization: "Bearer of-a-proxy" })).toEqual({ authorization: "Bearer of-a-proxy" });
  });

  test("in a header of another name may have the form of Authorization", () => {
    expect(adopted({ "other-key": "Bearer bf_a" }, ["other-key"])).toMatchObject({ "service-api-key": "bf_a" });
    expect(adopted({ authorization: "Bearer bf_a" }, ["authorization"])).toEqual({ "service-api-key": "bf_a" });
  });

  test("counts once when it comes twice, and is no key when two differ", () => {
    const authorization = "Bearer bf_a";
    expect(adopted({ authorization, "service-api-key": "bf_a" })["service-api-key"]).toBe("bf_a");
    expect(adopted({ authorization, "service-api-key": "bf_b" })["service-api-key"]).toBe("bf_b, bf_a");
    expect(adopted({ authorization, "other-key": "bf_b" }, ["other-key"])["service-api-key"]).toBe("bf_b, bf_a");
    expect(adopted({ authorization, "service-api-key": "" })["service-api-key"]).toBe("bf_a");
    expect(adopted({ authorization: "Bearer of-a-proxy", "service-api-key": "bf_b" })["service-api-key"]).toBe("bf_b");
  });
});

describe("a server", async () => {
  const origin = "https://app.example.com";
  const server = await testServer({ BELFRY_CORS_ORIGINS: origin });
  const tenant = await testTenant(server.database.sql);
  const { "service-api-key": key } = await keyHeaders(server.database.sql, tenant.id, "USER", "read_only_user");
  const path = "/v1/events:search";
  const search = (headers: Record<string, string>, version: "1.1" | "2" = "1.1") =>
    raw(server, version, {
      path,
      headers: { "content-type": "application/json", ...headers },
      body: [Buffer.from(`{"query":{}}`)],
    });
  const errorOf = (answer: Awaited<ReturnType<typeof search>>) => [
    answer.status,
    JSON.parse(String(answer.body)).message,
  ];

  test.each(protocols)("takes a bearer's key over %s", async (protocol) => {
    const client = createClient(
      EventQueryService,
      transport(server.target, protocol, { authorization: `Bearer ${key}` }),
    );
    expect(await client.searchEvents({ query: {} })).toMatchObject({ results: [] });
  });

  test.each(httpVersions)("takes it over /v1 and HTTP/%s, and none of a proxy's", async (version) => {
    expect((await search({ authorization: `Bearer ${key}` }, version)).status).toBe(200);
    expect((await search({ authorization: "Bearer of-a-proxy", "service-api-key": key }, version)).status).toBe(200);
    const none = await search({ authorization: "Bearer of-a-proxy" }, version);
    expect(errorOf(none)).toEqual([
      401,
      "an API key is needed: send it in the header service-api-key, or as Authorization: Bearer",
    ]);
    expect(none.headers["www-authenticate"]).toBeUndefined();
    const unread: Record<string, string>[] = [
      { "x-api-key": key },
      { authorization: basicOf("x", key) },
      { authorization: basicOf(key, "") },
    ];
    for (const headers of unread)
      expect(errorOf(await search(headers, version))).toEqual([
        401,
        "an API key is needed: send it in the header service-api-key, or as Authorization: Bearer; x-api-key and Basic are not read here",
      ]);
    expect(errorOf(await search({ "x-api-key": "of-a-proxy" }, version))).toEqual(errorOf(none));
  });

  test("refuses two keys that differ", async () => {
    const two = { authorization: `Bearer ${key}`, "service-api-key": newApiKey().text };
    expect(errorOf(await search(two))).toEqual([401, "the request has more than one API key; send one"]);
  });

  test("lets pages send it", async () => {
    const headers = {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization",
    };
    const allowed = await fetch(server.url + path, { method: "OPTIONS", headers });
    expect(allowed.headers.get("access-control-allow-headers")).toContain("authorization");
  });
});
