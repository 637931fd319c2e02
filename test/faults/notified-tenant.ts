import { afterAll } from "vitest";
import type { Sql } from "../../src/db/connect.ts";
import { httpReceiver } from "../support/receivers.ts";
import { testTenant } from "../support/tenant.ts";
import { post } from "./notifications.ts";
import { clear, place } from "./place.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";

/** Starts a server with so many processes; the end of the file's tests stops it. */
export async function startedServer(databaseUrl: string, processes: number): Promise<ServerProcess> {
  const dataDir = await place();
  const server = await serverProcess({
    BELFRY_DATA_DIR: dataDir,
    DATABASE_URL: databaseUrl,
    BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
    BELFRY_PROCESSES: String(processes),
  });
  await server.start();
  afterAll(async () => {
    await server.stop();
    await clear(dataDir);
  });
  return server;
}

/** Makes a tenant with a destination `d`, a receiver that keeps what it is sent. */
export async function notifiedTenant(sql: Sql, server: ServerProcess) {
  const tenant = await testTenant(sql);
  const receiver = await httpReceiver();
  const make = (path: string, body: object) => post([server.url], tenant.headers, `notification/${path}`, body);
  await make("destinations", { name: "d", type: { webhook: { url: receiver.url } } });
  return {
    tenant,
    receiver,
    make,
    /** Reports an error of each name on a host, `aheadMs` after now. */
    put: (host: string, names: readonly string[], aheadMs = 0) =>
      post([server.url], tenant.headers, "data-receiver/events", {
        events: names.map((name) => ({
          name,
          timestamp: String(Date.now() + aheadMs),
          dimensions: { host },
          severity: "SEVERITY_ERROR",
          status: "STATUS_OPEN",
        })),
      }),
  };
}

/** Names of errors on a host. */
export const namesOf = (host: string, count: number) => Array.from({ length: count }, (_, i) => `${host} ${i}`);
