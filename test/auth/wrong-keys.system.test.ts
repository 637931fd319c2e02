import { Code, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { newApiKey } from "../../src/auth/key.ts";
import { newProof, newToken } from "../../src/auth/session-token.ts";
import { networkOf, wrongKeys } from "../../src/auth/wrong-keys.ts";
import { codeOf, httpVersions, protocols, raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { ownClock } from "../support/stretch.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:0DB8:1:2::6", "2001:db8:1:2::/64"],
  ["2001:db8::6", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("%s counts as %s", (address, network) => {
  expect(networkOf(address)).toBe(network);
});

describe("wrong keys of one address", () => {
  const delayMs = 50;

  test("are answered at once up to a number, then late, then refused", async () => {
    const slowed: string[] = [];
    const { note } = wrongKeys({
      perMinuteMax: 3,
      delayMs,
      waitingMax: 2,
      onSlowed: (network) => slowed.push(network),
    });
    for (let i = 0; i < 3; i++) expect(note("192.0.2.7")).toBeUndefined();
    const startMs = performance.now();
    const late = [note("192.0.2.7"), note("::ffff:192.0.2.7")];
    expect(() => note("192.0.2.7")).toThrow(expect.objectContaining({ code: Code.ResourceExhausted }));
    await Promise.all(late);
    expect(performance.now() - startMs).toBeGreaterThan(delayMs - 5);
    expect(note("192.0.2.7")).toBeInstanceOf(Promise);
    expect(slowed).toEqual(["192.0.2.7"]);
    expect(note("192.0.2.8")).toBeUndefined();
  });

  test("are counted for a bounded number of addresses; the oldest is forgotten first", () => {
    const { note } = wrongKeys({ perMinuteMax: 1, delayMs, networksMax: 2 });
    for (const address of ["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"]) expect(note(address)).toBeUndefined();
    expect(note("2001:db8:0:2::2")).toBeInstanceOf(Promise);
    expect(note("2001:db8::1")).toBeUndefined();
  });
});

describe("a server", async () => {
  const server = await testServer({}, { wrongKeysMax: 10 });
  const { sql } = server.database;
  const tenant = await testTenant(sql);
  const path = "/v1/data-receiver/events";
  const send = (headers: Record<string, string>, version: "1.1" | "2" = "1.1") =>
    raw(server, version, {
      path,
      headers: { ...headers, "content-type": "application/json" },
      body: [Buffer.from("{}")],
    });

  test("answers a call without a key at once, however often it comes", async () => {
    for (let i = 0; i < 30; i++) expect((await send({})).status).toBe(401);
    expect((await send({})).ownMs).toBeLessThan(500);
  });

  test("answers wrong keys late beyond the setting, and good ones from the same address as ever", async () => {
    for (let i = 0; i < 10; i++) expect((await send({ "service-api-key": newApiKey().text })).status).toBe(401);
    for (const version of httpVersions) {
      const answer = await send({ "service-api-key": newApiKey().text }, version);
      expect(answer.status).toBe(401);
      expect(answer.ms).toBeGreaterThan(950);
      expect((await send({ "service-api-key": "bf_nonsense" }, version)).ms).toBeGreaterThan(950);
    }
    const flood = Array.from({ length: 200 }, () => send({ "service-api-key": newApiKey().text }));
    for (const protocol of protocols) {
      const client = createClient(DataReceiverService, transport(server, protocol, tenant.headers));
      expect(await client.putEvents({})).toMatchObject({ succeeded: 0 });
      // Also one that this server has never seen.
      const fresh = await keyHeaders(sql, tenant.id, "DATA_INGEST", null);
      const clock = ownClock();
      const other = createClient(DataReceiverService, transport(server, protocol, fresh));
      expect(await other.putEvents({})).toMatchObject({ succeeded: 0 });
      expect(clock()).toBeLessThan(900);
    }
    for (const answer of await Promise.all(flood)) expect([answer.status, codeOf(answer)]).toEqual([401, 16]);
  });
});

describe("log-ins and cookies", async () => {
  const server = await testServer({}, { wrongKeysMax: 10, waitingCallsMax: 4 });
  const tenant = await testTenant(server.database.sql);
  const own = { "content-type": "application/json", "sec-fetch-site": "same-origin" };
  const send = (path: string, headers: Record<string, string>, body: object) =>
    raw(server, "1.1", { path, headers: { ...own, ...headers }, body: [Buffer.from(JSON.stringify(body))] });
  const logIn = (body: object) => send("/v1/console-sessions", {}, body);
  const search = (headers: Record<string, string>) => send("/v1/events:search", headers, { query: {} });
  const forged = () =>
    search({ cookie: `__Host-belfry=${newToken("bs", tenant.id).text}`, "service-session-proof": newProof() });

  test("with wrong ones are answered late beyond the setting, and take no place of the calls in work meanwhile", async () => {
    for (let i = 0; i < 5; i++) {
      expect((await logIn({ key: "wrong" })).status).toBe(401);
      expect((await forged()).status).toBe(401);
    }
    const late = Array.from({ length: 20 }, () => logIn({ key: "wrong" }));
    expect((await search(tenant.headers)).status).toBe(200);
    for (const answer of await Promise.all(late)) {
      expect([answer.status, codeOf(answer)]).toEqual([401, 16]);
      expect(answer.ms).toBeGreaterThan(950);
    }
    const cookie = await forged();
    expect([cookie.status, codeOf(cookie)]).toEqual([401, 16]);
    expect(cookie.ms).toBeGreaterThan(950);
    expect((await logIn({ key: tenant.headers["service-api-key"] })).status).toBe(200);
  });
});
