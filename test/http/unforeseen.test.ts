import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ApiClientService } from "#gen/belfry/tenants/v1/api_client_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const { sql, url } = await testDatabase();

test("an answer that cannot be written is code 13, and the log has its cause", async () => {
  const lines: { level: number; rpc?: string; cause?: { message: string } }[] = [];
  const log = openLog("info", { write: (text) => void lines.push(JSON.parse(text)) });
  const env = { DATABASE_URL: url, BELFRY_PORT: "0", BELFRY_PLAINTEXT: "1", BELFRY_DATA_DIR: temporaryDir() };
  const server = await startServer(readConfig(env), log);
  try {
    const { id, headers } = await testTenant(sql);
    const call = v1(server.url, headers);
    const made = await call("POST", "/v1/api-clients", { name: "late", type: "DATA_INGEST" });
    const late = made.body.apiClient.id;
    // JSON has no time beyond the year 9999.
    await sql`update api_clients set created_ms = ${10n ** 15n} where tenant_id = ${id} and id = ${late}`;
    expect(await call("GET", `/v1/api-clients/${late}`)).toMatchObject({ status: 500, body: { code: 13 } });
    expect(lines.find(({ level }) => level === 50)).toMatchObject({
      rpc: "belfry.tenants.v1.ApiClientService/GetApiClient",
      cause: { message: expect.stringContaining("Timestamp out of range") },
    });

    lines.splice(0);
    const transport = createGrpcTransport({ baseUrl: server.url, useBinaryFormat: false });
    const client = createClient(ApiClientService, transport);
    const asked = client.getApiClient({ id: late }, { headers });
    await expect(asked).rejects.toMatchObject({ code: 13, rawMessage: "internal error" });
    expect(lines.find(({ level }) => level === 50)).toMatchObject({
      cause: { message: expect.stringContaining("google.protobuf.Timestamp") },
    });
  } finally {
    await server.stop();
  }
});
