import { once } from "node:events";
import { connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ApiClientService, DeleteApiClientRequestSchema } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { isAudited } from "../../src/rpc/audit.ts";
import { auditedAction } from "../../src/tenants/audit.ts";
import { allMethods, callName } from "../support/calls.ts";
import { envelope, protocols, type RawRequest, raw, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;

interface Entry {
  id: string;
  time: string;
  client: { id: string; name: string };
  rpc: string;
  resource: string;
  outcome: string;
  requestId: string;
}

async function world() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const entries = async (query = ""): Promise<Entry[]> => (await call("GET", `/v1/audit-log${query}`)).body.entries;
  return { tenant, call, entries };
}

const service = "belfry.tenants.v1.ApiClientService";
const agent = { name: "agent", type: "DATA_INGEST" };

describe("a write that succeeds", () => {
  test("leaves who, when, what, how and the request's id, newest first", async () => {
    const { tenant, call, entries } = await world();
    const made = await call("POST", "/v1/api-clients", agent);
    const clientId = made.body.apiClient.id;
    const key = await call("POST", `/v1/api-clients/${clientId}/keys`, { description: "for web-1" });
    const revoked = await call("DELETE", `/v1/api-clients/${clientId}/keys/${key.body.key.id}`);
    const gone = await call("DELETE", `/v1/api-clients/${clientId}`);
    const found = await entries();
    const [me] = await sql`select id from api_clients where tenant_id = ${tenant.id}`;
    const line = (rpc: string, resource: string, { headers }: { headers: Headers }) => ({
      id: expect.any(String),
      time: expect.stringMatching(/^20\d\d-.*Z$/),
      client: { id: me?.id, name: "USER manager" },
      rpc: `${service}/${rpc}`,
      resource,
      outcome: "OK",
      requestId: headers.get("x-request-id"),
      keyPrefix: expect.stringMatching(/^\w{12}$/),
      session: "",
    });
    expect(found).toEqual([
      line("DeleteApiClient", `apiClient/${clientId}`, gone),
      line("DeleteApiKey", `apiKey/${key.body.key.id}`, revoked),
      line("CreateApiKey", `apiKey/${key.body.key.id}`, key),
      line("CreateApiClient", `apiClient/${clientId}`, made),
    ]);
    for (const { time } of found) expect(Math.abs(Date.parse(time) - Date.now())).toBeLessThan(10_000);
    expect(JSON.stringify(found)).not.toContain(key.body.secret.slice(16));
  });

  test.each(protocols)("leaves the same over %s", async (protocol) => {
    const { tenant, entries } = await world();
    const client = createClient(ApiClientService, transport(server.target, protocol, tenant.headers));
    const { apiClient } = await client.createApiClient({ apiClient: { name: "agent", type: 1 } });
    expect(await entries()).toMatchObject([{ resource: `apiClient/${apiClient?.id}`, outcome: "OK" }]);
  });

  test("leaves its row in its own transaction: both or none", async () => {
    const { tenant, entries } = await world();
    const actor = { id: "command-line", name: "command line" };
    const failed = transaction(sql, async (tx) => {
      await auditedAction(tx, tenant.id, actor, "CreateApiClient", "apiClient/1");
      throw new Error("afterwards");
    });
    await expect(failed).rejects.toThrow("afterwards");
    await expect(auditedAction(sql, tenant.id, actor, "CreateApiClient", "apiClient/1")).rejects.toThrow("transaction");
    expect(await entries()).toEqual([]);
  });
});

describe("a write that is refused or fails", () => {
  test.each(["gRPC", "/v1"])("names what it meant when its time is over, too: %s", async (protocol) => {
    const { tenant, call, entries } = await world();
    const { id } = (await call("POST", "/v1/api-clients", agent)).body.apiClient;
    const message = toBinary(DeleteApiClientRequestSchema, create(DeleteApiClientRequestSchema, { id }));
    const late: RawRequest =
      protocol === "/v1"
        ? { method: "DELETE", path: `/v1/api-clients/${id}`, headers: { "connect-timeout-ms": "300" } }
        : {
            path: `/${service}/DeleteApiClient`,
            headers: { "content-type": "application/grpc", "grpc-timeout": "300m" },
            body: [envelope(message)],
          };
    await transaction(sql, async (tx) => {
      await tx`select from api_clients where tenant_id = ${tenant.id} and id = ${id} for update`;
      await raw(server.target, "2", { ...late, headers: { ...tenant.headers, ...late.headers } });
    });
    const row = { resource: `apiClient/${id}`, outcome: "DEADLINE_EXCEEDED" };
    // The write itself may still have been done: then it has a row of its own.
    const rows = async () => (await entries()).filter(({ outcome }) => outcome !== "OK");
    await expect.poll(rows, { timeout: 3000 }).toMatchObject([row]);
  });

  test.each([
    ["by rules of its fields", "POST", "/v1/api-clients", { name: "a", type: "USER", role: "x" }, "apiClient/a", 3],
    ["by its handler", "POST", "/v1/api-clients", { name: "b", type: "USER" }, "apiClient/b", 3],
    ["because it cannot be read", "POST", "/v1/api-clients", "{", "apiClient/", 3],
    ["because it is of a wrong form", "POST", "/v1/api-clients", { nickname: "a" }, "apiClient/", 3],
    ["because the thing is missing", "DELETE", "/v1/api-clients/none", undefined, "apiClient/none", 5],
    ["because its owner is missing", "POST", "/v1/api-clients/none/keys", {}, "apiKey/", 5],
    ["because its path holds a key", "DELETE", "/v1/api-clients/none/keys/k-1", undefined, "apiKey/k-1", 5],
  ])("%s leaves one row", async (_why, method, path, body, resource, code) => {
    const { call, entries } = await world();
    const answer = await call(method, path, body);
    expect(answer.body.code).toBe(code);
    const outcome = code === 3 ? "INVALID_ARGUMENT" : "NOT_FOUND";
    await expect
      .poll(() => entries())
      .toMatchObject([
        { resource, outcome, requestId: answer.headers.get("x-request-id"), client: { name: "USER manager" } },
      ]);
    await call("DELETE", "/v1/api-clients/later");
    await expect.poll(() => entries()).toMatchObject([{ resource: "apiClient/later" }, { resource }]);
  });

  test("for want of permission leaves one row with the client that tried", async () => {
    const { tenant, entries } = await world();
    const call = v1(server.url, await keyHeaders(sql, tenant.id, "USER", "read_only_user"));
    expect((await call("POST", "/v1/api-clients", agent)).status).toBe(403);
    expect((await call("DELETE", "/v1/api-clients/x")).status).toBe(403);
    const common = { client: { name: "USER read_only_user" }, resource: "apiClient/", outcome: "PERMISSION_DENIED" };
    expect(await entries()).toMatchObject([
      { ...common, rpc: `${service}/DeleteApiClient` },
      { ...common, rpc: `${service}/CreateApiClient` },
    ]);
  });

  test("over the limit of a body leaves one row", async () => {
    const { tenant, entries } = await world();
    const headers = { "content-type": "application/json", ...tenant.headers };
    const body = [Buffer.from(JSON.stringify({ ...agent, name: "a".repeat(5 * 1024 * 1024) }))];
    const answer = await raw(server.target, "2", { path: "/v1/api-clients", headers, body });
    expect(answer.status).toBe(413);
    await expect.poll(() => entries()).toMatchObject([{ outcome: "RESOURCE_EXHAUSTED" }]);
  });

  test("by a name that no text column takes, or of any length, leaves one row", async () => {
    const { tenant, entries } = await world();
    const client = createClient(ApiClientService, transport(server.target, "grpc", tenant.headers));
    const creating = (name: string) => client.createApiClient({ apiClient: { name, type: 1 } });
    await expect(creating("a\0b")).rejects.toMatchObject({ code: 3 });
    await expect(creating("😀".repeat(1000))).rejects.toMatchObject({ code: 3 });
    const [long, odd] = await entries();
    expect(odd?.resource).toBe("apiClient/a\uFFFDb");
    expect(long?.resource.length).toBeLessThan(1000);
  });

  test("because its caller has left leaves one row", async () => {
    const { tenant, entries } = await world();
    // Who calls is known from now on.
    expect(await entries()).toEqual([]);
    const session = connect(server.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/v1/api-clients",
      "content-type": "application/json",
      ...tenant.headers,
    });
    stream.on("error", () => {});
    await once(stream, "ready");
    await new Promise((resolve) => stream.write('{"name":', resolve));
    // Answered once the server has read what came before.
    await new Promise((resolve) => session.ping(resolve));
    session.destroy();
    await expect.poll(() => entries(), { timeout: 3000 }).toMatchObject([{ outcome: "CANCELLED" }]);
  });
});

describe("no row is left", () => {
  test("without a known tenant", async () => {
    const before = await sql`select distinct tenant_id from audit_entries`;
    for (const headers of [{}, { "service-api-key": "nonsense" }] as Record<string, string>[]) {
      expect((await v1(server.url, headers)("POST", "/v1/api-clients", agent)).status).toBe(401);
    }
    const { tenant, call, entries } = await world();
    await call("DELETE", "/v1/api-clients/later");
    await expect.poll(() => entries()).toHaveLength(1);
    // Tenants of other tests have older ones.
    const known = new Set(before.map(({ tenant_id: id }) => id));
    const rows = await sql`select tenant_id from audit_entries`;
    expect(rows.filter(({ tenant_id: id }) => !known.has(id))).toEqual([{ tenant_id: tenant.id }]);
  });

  test("by reading, by the data receiver, or by a path that nothing is at", async () => {
    const { call, entries } = await world();
    await call("GET", "/v1/api-clients");
    await call("GET", "/v1/api-clients/none");
    await call("POST", "/v1/events:search", { query: { timeRange: { start: "2", end: "1" } } });
    await call("POST", "/v1/data-receiver/events", { events: [{ name: "a", timestamp: `${Date.now()}` }] });
    await call("POST", "/v1/data-receiver/models", "{");
    await call("POST", "/v1/nowhere", {});
    await call("PATCH", "/v1/api-clients", {});
    await call("DELETE", "/v1/api-clients/later");
    await expect.poll(() => entries()).toMatchObject([{ resource: "apiClient/later" }]);
  });

  test("by any RPC that reads, and by none of those that write but the data receiver's", () => {
    const reading = /^(Get|List|Search|Count|Group|BatchGet|Watch|Preview|Explain)/;
    for (const method of allMethods) {
      const expected = !reading.test(method.name) && method.parent.name !== "DataReceiverService";
      expect([callName(method), isAudited(method)]).toEqual([callName(method), expected]);
      if (expected) expect(method.methodKind).toBe("unary");
    }
  });
});

describe("the list", () => {
  /** Nine entries of three clients, three RPCs and two outcomes. */
  async function filled() {
    const { tenant, call, entries } = await world();
    for (const role of ["manager", "user"] as const) {
      const other = v1(server.url, await keyHeaders(sql, tenant.id, "USER", role));
      await other("POST", "/v1/api-clients", agent);
      await other("DELETE", "/v1/api-clients/none");
      await sleep(5);
    }
    for (let i = 0; i < 5; i += 1) await call("POST", "/v1/api-clients/none/keys", {});
    const all = await entries();
    expect(all).toHaveLength(9);
    return { call, entries, all };
  }

  test("is filtered by client, RPC and time, and by all at once", async () => {
    const { call, entries, all } = await filled();
    const clients = [...new Set(all.map(({ client }) => client.id))];
    expect(clients).toHaveLength(3);
    for (const id of clients) {
      expect(await entries(`?client=${id}`)).toEqual(all.filter(({ client }) => client.id === id));
    }
    expect(await entries("?client=nobody")).toEqual([]);
    const deletes = all.filter(({ rpc }) => rpc === `${service}/DeleteApiClient`);
    expect(deletes).toHaveLength(2);
    expect(await entries("?rpc=DeleteApiClient")).toEqual(deletes);
    expect(await entries(`?rpc=${service}/DeleteApiClient`)).toEqual(deletes);
    expect(await entries("?rpc=belfry.users.v1.UserGroupService/DeleteApiClient")).toEqual([]);
    const from = all.at(-3)?.time ?? "";
    const start = all.filter(({ time }) => Date.parse(time) >= Date.parse(from));
    expect(await entries(`?startTime=${from}`)).toEqual(start);
    expect(await entries(`?endTime=${from}`)).toEqual(all.filter((entry) => !start.includes(entry)));
    const wanted = all.filter(
      (entry) => start.includes(entry) && deletes.includes(entry) && entry.outcome === "NOT_FOUND",
    );
    const { body } = await call(
      "GET",
      `/v1/audit-log?client=${wanted[0]?.client.id ?? clients[0]}&rpc=DeleteApiClient&startTime=${from}`,
    );
    expect(body.totalCount).toBe(String(body.entries.length));
    for (const entry of body.entries) expect(start.includes(entry) || start).toBeTruthy();
  });

  test("goes on where it was while new entries arrive", async () => {
    const { call, all } = await filled();
    const first = (await call("GET", "/v1/audit-log?pageSize=4")).body;
    await call("POST", "/v1/api-clients", agent);
    const rest = (await call("GET", `/v1/audit-log?pageSize=10&pageToken=${first.nextPageToken}`)).body;
    expect([...first.entries, ...rest.entries]).toEqual(all);
  });

  test.each([
    ["startTime=2026-01-02T00:00:00Z&endTime=2026-01-02T00:00:00Z", "startTime"],
    ["startTime=yesterday", "startTime"],
    ["endTime=1970-01-20T00:00:00Z", "endTime"],
    ["pageSize=-1", "pageSize"],
    ["pageToken=x", "pageToken"],
  ])("refuses ?%s with code 3", async (query, path) => {
    const { call } = await world();
    const answer = await call("GET", `/v1/audit-log?${query}`);
    expect(answer).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining(path) } });
  });

  test("is the same over gRPC", async () => {
    const { tenant, call, entries } = await world();
    await call("POST", "/v1/api-clients", agent);
    const client = createClient(AuditLogService, transport(server.target, "grpc", tenant.headers));
    const {
      entries: [entry],
      totalCount,
    } = await client.listAuditEntries({ rpc: "CreateApiClient" });
    expect(totalCount).toBe(1n);
    expect(await entries()).toMatchObject([{ id: entry?.id, rpc: entry?.rpc, resource: entry?.resource }]);
    const range = { startTime: { seconds: 9n ** 18n, nanos: 0 } };
    await expect(client.listAuditEntries(range)).rejects.toMatchObject({ code: 3 });
  });
});
