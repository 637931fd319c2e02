import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { servingOf } from "../support/serving-processes.ts";
import { testTenant } from "../support/tenant.ts";

const root = join(import.meta.dirname, "../..");

/** A server of one process, as `npm start` runs it. */
async function launched(url: string) {
  const dataDir = temporaryDir();
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const child: ChildProcess = spawn(process.execPath, [join(root, "start.js"), "serve"], {
    env: {
      PATH: process.env.PATH,
      BELFRY_DATA_DIR: dataDir,
      BELFRY_MASTER_KEYS: masterKeys,
      BELFRY_PLAINTEXT: "1",
      BELFRY_PORT: "0",
      BELFRY_PROCESSES: "1",
      DATABASE_URL: url,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  const addresses = () => [...said.matchAll(/Belfry serves at (\S+)/g)].map((match) => match[1] as string);
  return {
    said: () => said,
    /** Its address in its n-th life, counted from 1. */
    async address(life: number) {
      await expect.poll(() => addresses().length, { timeout: 60_000 }).toBe(life);
      return addresses()[life - 1] as string;
    },
    kill() {
      const [pid] = servingOf(child.pid as number);
      process.kill(pid as number, "SIGKILL");
    },
  };
}

/** Sends the head of a request whose body never comes whole; resolves when the server has admitted it. */
async function beginRequest(url: string, path: string, key: string) {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: a\r\nservice-api-key: ${key}\r\ncontent-type: application/json\r\n` +
      "content-length: 1000\r\nexpect: 100-continue\r\n\r\n",
  );
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 100 /);
  socket.write("{\"a body that is nobody's business");
}

test("a death names the requests in work and who sent them, and nothing of their content; the server comes back", {
  timeout: 120_000,
}, async () => {
  const { url, sql } = await testDatabase();
  const { id, headers } = await testTenant(sql);
  const [key] = Object.values(headers) as [string];
  const server = await launched(url);
  const address = await server.address(1);
  const done = await fetch(`${address}/v1/api-clients`, { headers });
  expect(done.status).toBe(200);
  await beginRequest(address, "/v1/events:search", key);
  await beginRequest(address, "/api/v2/alerts", key);
  server.kill();
  await server.address(2);
  const [line = ""] = /^belfry: the server has died .*$/m.exec(server.said()) ?? [];
  const [{ prefix }] = await sql<[{ prefix: string }]>`select prefix from api_keys where tenant_id = ${id}`;
  const who = `by key ${prefix} of tenant ${id}, for \\d+\\.\\d s`;
  expect(line).toMatch(
    new RegExp(
      "^belfry: the server has died \\(SIGKILL\\); it is started again at once; in work: " +
        `alertmanager/postAlerts ${who}; belfry\\.events\\.v1\\.EventQueryService/SearchEvents ${who}$`,
    ),
  );
  expect(server.said()).not.toContain(key);
  expect(server.said()).not.toContain("business");

  server.kill();
  await server.address(3);
  expect(server.said()).toContain(
    "belfry: the server has died (SIGKILL; 2 deaths in ten minutes); it is started again in 1 s; no request was in work\n",
  );
});
