import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { running, servingOf } from "../support/serving-processes.ts";
import { testTenant } from "../support/tenant.ts";

const root = join(import.meta.dirname, "../..");

/** A server of one process, as `npm start` runs it. */
async function launched(url: string, env: Record<string, string> = {}) {
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
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exit;
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  const address = () => /Belfry serves at (\S+)/.exec(said)?.[1];
  await expect.poll(address).toBeDefined();
  const [owner = -1] = servingOf(child.pid as number);
  return {
    address: address() as string,
    exit,
    owner,
    said: () => said,
    deaths: () =>
      said
        .split("\n")
        .filter((line) => line.includes("a serving process has died"))
        .map((line) => JSON.parse(line)),
    /** The process that serves. */
    serving: () => servingOf(owner)[0] as number,
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

/** Whether an address answers. */
const answers = (url: string) =>
  fetch(url).then(
    ({ status }) => status,
    () => undefined,
  );

/** Options of a process that bound its heap. */
const heapBounds = (pid: number) =>
  readFileSync(`/proc/${pid}/cmdline`, "utf8")
    .split("\0")
    .filter((arg) => /old-space|semi-space/.test(arg));

test("a death names the requests in work and who sent them, and nothing of their content; the server comes back, until what owns the port is killed", async () => {
  const { url, sql } = await testDatabase();
  const { id, headers } = await testTenant(sql);
  const [key] = Object.values(headers) as [string];
  const { address, serving, deaths, said, owner, exit } = await launched(url);
  // The heap of what serves is bounded, and that of other processes is not.
  expect(heapBounds(serving())).toEqual([
    "--max-semi-space-size=16",
    expect.stringMatching(/^--max-old-space-size=\d+$/),
  ]);
  expect(heapBounds(owner)).toEqual(["--max-semi-space-size=1"]);
  const done = await fetch(`${address}/v1/api-clients`, { headers });
  expect(done.status).toBe(200);
  await beginRequest(address, "/v1/events:search", key);
  await beginRequest(address, "/api/v2/alerts", key);
  process.kill(serving(), "SIGKILL");
  await expect.poll(deaths).toHaveLength(1);
  await expect.poll(() => answers(`${address}/readyz`)).toBe(200);
  const [{ prefix }] = await sql<[{ prefix: string }]>`select prefix from api_keys where tenant_id = ${id}`;
  const who = `by key ${prefix} of tenant ${id}, for \\d+\\.\\d s`;
  expect(deaths()).toMatchObject([
    {
      by: "SIGKILL",
      deaths: 1,
      waitMs: 0,
      inWork: [
        expect.stringMatching(`^alertmanager/postAlerts ${who}$`),
        expect.stringMatching(`^belfry\\.events\\.v1\\.EventQueryService/SearchEvents ${who}$`),
      ],
    },
  ]);
  expect(said()).not.toContain(key);
  expect(said()).not.toContain("business");

  process.kill(serving(), "SIGKILL");
  await expect.poll(deaths).toHaveLength(2);
  expect(deaths()).toMatchObject([{}, { deaths: 2, waitMs: 1000, inWork: [] }]);
  await expect.poll(() => answers(`${address}/readyz`)).toBe(200);

  const pid = serving();
  process.kill(owner, "SIGKILL");
  expect(await exit).toEqual([null, "SIGKILL"]);
  await expect.poll(() => running(pid)).toBe(false);
});

test("a server that has served, and then cannot start, is tried again until it can; an operator may bound its heap", async () => {
  const { url, sql } = await testDatabase();
  const { address, serving, said } = await launched(url, { NODE_OPTIONS: "--max-old-space-size=3000" });
  expect(heapBounds(serving())).toEqual(["--max-semi-space-size=16"]);
  await sql`alter table migrations rename to moved`;
  process.kill(serving(), "SIGKILL");
  await expect.poll(() => said().match(/cannot start; it is tried again/g)?.length, { timeout: 30_000 }).toBe(2);
  await sql`alter table moved rename to migrations`;
  await expect.poll(() => answers(`${address}/readyz`)).toBe(200);
});
