import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { type Server, startServer } from "../../src/server.ts";
import { atEnd } from "./at-end.ts";
import { sharedDatabase, type TestDatabase, testDatabase } from "./database.ts";

/** A whole server, as `main.ts` starts it, and its database. */
export interface TestServer extends Server {
  readonly database: TestDatabase;
  /** For clients: with the CA over TLS. */
  readonly target: { url: string; ca?: string | undefined };
}

/** Protects the secrets of test databases; every server on one needs it. */
export const masterKeys = `test:${Buffer.alloc(32, 7).toString("base64")}`;

/** What the server of a worker has besides the defaults: tests send to this machine, and wait for a place on a busy one. */
const sharedSettings = { BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8", BELFRY_INGEST_WAIT: "1m" };

/**
 * Returns a server. Without arguments it is the one that all files of a worker share, on a database of their own: each test has tenants
 * of its own there, and reads nothing of the others. With settings, also none (`{}`), or with fixed limits that are others here, it is one of
 * the test file's own, stopped as `atEnd` says: for tests that stop it, lock its tables, or look at what all tenants have or do.
 */
export function testServer(env?: Record<string, string>, limits: Partial<Config> = {}): Promise<TestServer> {
  return env === undefined ? sharedServer() : ownServer(env, limits);
}

const place = Symbol.for("belfry.server");
const global = globalThis as { [place]?: Promise<TestServer> };

/** Starts the worker's server when a file first asks for it; it ends with the worker. */
function sharedServer(): Promise<TestServer> {
  global[place] ??= sharedDatabase().then(async (database) => {
    const dataDir = mkdtempSync(join(tmpdir(), "belfry-server-"));
    const server = await start(database, dataDir, sharedSettings, {});
    const stop = () =>
      Promise.reject(new Error("other test files use this server too: testServer({}) starts one that may be stopped"));
    return { ...server, stop };
  });
  return global[place];
}

async function ownServer(env: Record<string, string>, limits: Partial<Config>): Promise<TestServer> {
  const database = await testDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "belfry-server-"));
  const server = await start(database, dataDir, env, limits);
  atEnd(async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return server;
}

async function start(
  database: TestDatabase,
  dataDir: string,
  env: Record<string, string>,
  limits: Partial<Config>,
): Promise<TestServer> {
  const config = readConfig({
    DATABASE_URL: database.url,
    BELFRY_DATA_DIR: dataDir,
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
    BELFRY_SHUTDOWN_TIMEOUT: "500ms",
    BELFRY_MASTER_KEYS: masterKeys,
    ...env,
  });
  const server = await startServer({ ...config, ...limits }, openLog("silent"));
  return { ...server, database, target: { url: server.url, ca: server.caFile } };
}
