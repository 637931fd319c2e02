import { createClient, createKey, createTenant } from "../../src/auth/create-tenant.ts";
import { connectOnce, type Sql } from "../../src/db/connect.ts";
import { migrate } from "../../src/db/migrate.ts";
import { startEmbedded } from "../../src/embedded/embedded.ts";
import { clear, clusterPlace, place } from "./place.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";

type Headers = Record<string, string>;

/** A tenant, and the headers of a key that sends data and of a manager's. */
export interface Tenant {
  id: string;
  agent: Headers;
  manager: Headers;
}

/** Makes a tenant with two keys. */
export async function newTenant(sql: Sql, name: string): Promise<Tenant> {
  const { id } = await createTenant(sql, name);
  const keyOf = async (type: "USER" | "DATA_INGEST", role: "manager" | null): Promise<Headers> => {
    const client = await createClient(sql, id, { name: type, type, role });
    const { text } = await createKey(sql, id, client.id, { description: "", expiresMs: null });
    return { "service-api-key": text };
  };
  return { id, agent: await keyOf("DATA_INGEST", null), manager: await keyOf("USER", "manager") };
}

/** The same over a connection that is closed again. */
export async function newTenantAt(url: string, name: string): Promise<Tenant> {
  const { sql, close } = connectOnce(url, name);
  try {
    return await newTenant(sql, name);
  } finally {
    await close();
  }
}

interface OwnPostgres {
  dataDir: string;
  url: string;
  /** As a superuser. */
  adminUrl: string;
}

/** A migrated PostgreSQL of a scene's own, which writes to disk as in service. */
export async function ownPostgres(stack: AsyncDisposableStack): Promise<OwnPostgres> {
  const dataDir = await clusterPlace();
  stack.defer(() => clear(dataDir));
  const { url, adminUrl, stop } = await startEmbedded({ dataDir, log: { info() {}, warn() {}, error: console.error } });
  stack.defer(() => stop("immediate"));
  await migrate(url);
  return { dataDir, url, adminUrl };
}

/** Two servers that have started, with the addresses by which each reaches their PostgreSQL. */
export async function twoServers(
  stack: AsyncDisposableStack,
  urls: readonly [string, string],
  env: Record<string, string> = {},
): Promise<[ServerProcess, ServerProcess]> {
  const servers: ServerProcess[] = [];
  for (const url of urls) {
    const ownDir = await place();
    stack.defer(() => clear(ownDir));
    servers.push(await serverProcess({ BELFRY_DATA_DIR: ownDir, DATABASE_URL: url, ...env }));
  }
  for (const server of servers) stack.defer(() => server.stop());
  await Promise.all(servers.map((server) => server.start()));
  return servers as [ServerProcess, ServerProcess];
}
