import { createServer } from "node:net";
import { expect, test } from "vitest";
import { AuditLogService } from "#gen/belfry/tenants/v1/audit_log_service_pb.ts";
import { checkPermissions } from "../../src/auth/permission.ts";
import { readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { testDatabase } from "../support/database.ts";

const { url } = await testDatabase();

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "localhost");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// In a file of its own: it takes an option away from the schema as this process has read it.
test("a server with an RPC that declares no permission does not start, names it, and opens no port", async () => {
  const { proto } = AuditLogService.method.listAuditEntries;
  if (proto.options !== undefined) proto.options.$unknown = [];
  expect(() => checkPermissions([AuditLogService])).toThrow("belfry.tenants.v1.AuditLogService.ListAuditEntries");
  const port = await freePort();
  const config = readConfig({ DATABASE_URL: url, BELFRY_PORT: String(port), BELFRY_PLAINTEXT: "1" });
  await expect(startServer(config, openLog("silent"))).rejects.toThrow(
    "RPCs without option (belfry.auth.v1.permission): belfry.tenants.v1.AuditLogService.ListAuditEntries",
  );
  await expect(fetch(`http://localhost:${port}/healthz`)).rejects.toThrow();
});
