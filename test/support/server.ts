import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, readConfig } from "../../src/config/settings.ts";
import { openLog } from "../../src/rpc/log.ts";
import { type Server, startServer } from "../../src/server.ts";
import { atEnd } from "./at-end.ts";
import { type TestDatabase, testDatabase } from "./database.ts";

/** A whole server on a database of this test file's own, as `main.ts` starts it; stopped as `atEnd` says. */
export interface TestServer extends Server {
  readonly database: TestDatabase;
  /** For clients: with the CA over TLS. */
  readonly target: { url: string; ca?: string | undefined };
}

/** Protects the secrets of test databases; every server on one needs it. */
export const masterKeys = `test:${Buffer.alloc(32, 7).toString("base64")}`;

/** `limits`: of those that are fixed, which are others here. */
export async function testServer(env: Record<string, string> = {}, limits: Partial<Config> = {}): Promise<TestServer> {
  const database = await testDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "belfry-server-"));
  const config = readConfig({
    DATABASE_URL: database.url,
    BELFRY_DATA_DIR: dataDir,
    BELFRY_PORT: "0",
    BELFRY_PLAINTEXT: "1",
    BELFRY_SHUTDOWN_TIMEOUT: "500ms",
    BELFRY_MASTER_KEYS: masterKeys,
    ...env,
  });
  const server = await startServer({ ...config, wrongKeysMax: 1_000_000, ...limits }, openLog("silent"));
  atEnd(async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return { ...server, database, target: { url: server.url, ca: server.caFile } };
}
