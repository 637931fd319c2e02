import { describe, expect, test } from "vitest";
import { newApiKey } from "../../src/auth/key.ts";
import { httpVersions, raw, unfinished } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { tool } from "./calls.ts";

const server = await testServer({ BELFRY_METRICS_ADDRESS: "0" });
const { sql } = server.database;
const tenant = await testTenant(sql);
const call = tool(server, tenant.headers);
const alert = (name: string) => ({ labels: { alertname: name, job: "node", instance: "a:9100" } });
const path = "/api/v2/alerts";

describe("a call over another tool's protocol", () => {
  test("is stored, for the tenant of its key", async () => {
    expect(await call("POST", path, [alert("Up")])).toMatchObject({ status: 200, body: "" });
    const other = await testTenant(sql);
    expect((await tool(server, other.headers)("GET", path)).body).toEqual([]);
  });

  test.each(httpVersions)("is refused before its body when its key is wrong, over HTTP/%s", async (version) => {
    const headers = { authorization: `Bearer ${newApiKey().text}`, "content-type": "application/json" };
    const answer = await raw(server, version, { path, headers, body: unfinished() });
    expect([answer.status, JSON.parse(String(answer.body))]).toEqual([
      401,
      { code: 401, message: "the API key is not valid (unknown, expired or revoked)" },
    ]);
    expect(answer.headers["www-authenticate"]).toBeUndefined();
  });

  test("takes the key as a password, of whoever", async () => {
    const basic = Buffer.from(`anyone:${tenant.headers["service-api-key"]}`).toString("base64");
    expect((await call("GET", path, undefined, { authorization: `Basic ${basic}` })).status).toBe(200);
    expect((await call("GET", path, undefined, { authorization: "Basic eDp5" })).status).toBe(401);
  });

  test("needs a role that may send, or read", async () => {
    const reader = tool(server, await keyHeaders(sql, tenant.id, "USER", "read_only_user"));
    const sender = tool(server, await keyHeaders(sql, tenant.id, "DATA_INGEST", null));
    expect(await reader("POST", path, [alert("Up")])).toMatchObject({
      status: 403,
      body: {
        code: 403,
        message:
          "a client of role read_only_user may not call alertmanager/postAlerts; who may: DATA_INGEST, user, manager",
      },
    });
    expect((await reader("GET", path)).status).toBe(200);
    expect((await sender("POST", path, [alert("Up")])).status).toBe(200);
    expect((await sender("GET", path)).status).toBe(403);
  });

  test("has an answer in the tool's form where there is nothing, and for other methods", async () => {
    expect(await call("GET", "/api/v2/nothing")).toMatchObject({ status: 404, body: { code: 404 } });
    expect(await call("PUT", path, [])).toMatchObject({
      status: 405,
      body: { code: 405 },
      headers: { allow: "POST, GET, HEAD, OPTIONS" },
    });
    expect(await call("OPTIONS", path)).toMatchObject({ status: 204, headers: { allow: "POST, GET, HEAD, OPTIONS" } });
    expect(await call("HEAD", path)).toMatchObject({ status: 200 });
  });

  test("is bounded: 16 MiB, also unpacked, and encodings that are known", async () => {
    const large = Buffer.alloc(17 * 1024 * 1024, 32);
    expect((await call("POST", path, large)).status).toBe(413);
    const { gzipSync } = await import("node:zlib");
    expect((await call("POST", path, gzipSync(large), { "content-encoding": "gzip" })).status).toBe(413);
    const packed = gzipSync(JSON.stringify([alert("Packed")]));
    expect((await call("POST", path, packed, { "content-encoding": "gzip" })).status).toBe(200);
    expect((await call("POST", path, packed, { "content-encoding": "zstd" })).status).toBe(415);
  });

  test("is counted, by integration, operation and status", async () => {
    const text = await (await fetch(server.metricsUrl ?? "")).text();
    const line = (name: string, labels: string) =>
      new RegExp(`^belfry_integration_${name}{${labels}} (\\d+)$`, "m").exec(text)?.[1];
    expect(line("requests_total", 'integration="alertmanager",operation="postAlerts",status="403"')).toBe("1");
    expect(Number(line("items_total", 'integration="alertmanager",outcome="stored"'))).toBeGreaterThan(2);
    expect(line("duration_seconds_count", 'integration="alertmanager",operation="getAlerts"')).toBeDefined();
    expect(text).not.toContain('rpc="alertmanager');
  });
});
