import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const { sql } = server.database;
let tenant: TestTenant;
let json: ReturnType<typeof v1>;
let grpc: ReturnType<typeof createClient<typeof ApiClientService>>;

beforeAll(async () => {
  tenant = await testTenant(sql);
  json = v1(server.url, tenant.headers);
  grpc = createClient(ApiClientService, transport(server.target, "grpc", tenant.headers));
});

const unknown = "01999999-9999-7999-8999-999999999999";

describe("an API client", () => {
  test.each([
    { type: "DATA_INGEST" },
    { type: "USER_MANAGEMENT" },
    { type: "USER", role: "read_only_user" },
    { type: "USER", role: "user" },
    { type: "USER", role: "manager" },
  ])("of $type $role is made, got and deleted over /v1", async (kind) => {
    const made = await json("POST", "/v1/api-clients", { name: "agent of web-1", ...kind });
    expect(made).toMatchObject({ status: 200, body: { apiClient: { name: "agent of web-1", role: "", ...kind } } });
    const { id, createTime } = made.body.apiClient;
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(Math.abs(Date.parse(createTime) - Date.now())).toBeLessThan(10_000);
    expect((await json("GET", `/v1/api-clients/${id}`)).body).toEqual(made.body);
    expect(await json("DELETE", `/v1/api-clients/${id}`)).toMatchObject({ status: 200, body: {} });
    expect((await json("GET", `/v1/api-clients/${id}`)).status).toBe(404);
  });

  test("is the same over gRPC", async () => {
    const { apiClient } = await grpc.createApiClient({ apiClient: { name: "by gRPC", type: 3, role: "user" } });
    expect(await grpc.getApiClient({ id: apiClient?.id ?? "" })).toMatchObject({
      apiClient: { name: "by gRPC", type: 3, role: "user" },
    });
    await grpc.deleteApiClient({ id: apiClient?.id ?? "" });
    await expect(grpc.getApiClient({ id: apiClient?.id ?? "" })).rejects.toMatchObject({ code: 5 });
  });

  test("takes its keys with it when it is deleted", async () => {
    const { body } = await json("POST", "/v1/api-clients", { name: "short-lived", type: "USER", role: "manager" });
    const { id } = body.apiClient;
    const { secret } = (await json("POST", `/v1/api-clients/${id}/keys`, {})).body;
    const own = v1(server.url, { "service-api-key": secret });
    expect((await own("GET", "/v1/api-clients")).status).toBe(200);
    await json("DELETE", `/v1/api-clients/${id}`);
    await expect.poll(async () => (await own("GET", "/v1/api-clients")).status, { timeout: 1000 }).toBe(401);
    expect(await sql`select 1 from api_keys where tenant_id = ${tenant.id} and client_id = ${id}`).toHaveLength(0);
    expect(await sql`select 1 from api_key_prefixes where prefix = ${secret.split("_")[1]}`).toHaveLength(0);
  });
});

describe("invalid", () => {
  test.each([
    ["a USER client without a role", { name: "a", type: "USER" }, "role"],
    ["another client with a role", { name: "a", type: "DATA_INGEST", role: "user" }, "role"],
    ["an unknown role", { name: "a", type: "USER", role: "root" }, "role"],
    ["no type", { name: "a" }, "type"],
    ["an unknown type", { name: "a", type: "ROBOT" }, "type"],
    ["no name", { type: "DATA_INGEST" }, "name"],
    ["a name of 256 characters", { name: "a".repeat(256), type: "DATA_INGEST" }, "name"],
    ["a name with a control character", { name: "a\nb", type: "DATA_INGEST" }, "name"],
  ])("%s is refused with code 3 and its path", async (_what, body, path) => {
    const answer = await json("POST", "/v1/api-clients", body);
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
    expect(answer.body.message).toContain(path);
    if (path === "role" || path === "name") {
      expect(answer.body.details[0].fieldViolations[0].field).toBe(path);
    }
  });

  test("no client at all is refused over gRPC", async () => {
    await expect(grpc.createApiClient({})).rejects.toMatchObject({ code: 3 });
    await expect(grpc.createApiClient({ apiClient: { name: "a", type: 9 as never } })).rejects.toMatchObject({
      code: 3,
    });
  });
});

describe("missing", () => {
  test.each([
    ["GET", `/v1/api-clients/${unknown}`],
    ["GET", "/v1/api-clients/no-uuid"],
    ["DELETE", `/v1/api-clients/${unknown}`],
    ["GET", `/v1/api-clients/${unknown}/keys`],
    ["POST", `/v1/api-clients/${unknown}/keys`],
    ["DELETE", `/v1/api-clients/${unknown}/keys/${unknown}`],
  ])("%s %s answers 404, code 5", async (method, path) => {
    const answer = await json(method, path, method === "POST" ? {} : undefined);
    expect(answer).toMatchObject({ status: 404, body: { code: 5 } });
  });
});
