import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFileSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { dataDirectoryOf } from "../../src/embedded/data-directory.ts";
import { alive, readPidFile } from "../../src/embedded/postmaster.ts";
import { copyCluster } from "../support/cluster.ts";
import { temporaryDir } from "../support/database.ts";
import { compiled, program } from "../support/program.ts";
import { v1 } from "../support/v1.ts";
import { freePort } from "./server-process.ts";

const MiB = 1024 * 1024;
const dir = temporaryDir();
const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=320m,mode=711", "tmpfs", dir], { encoding: "utf8" });
const trouble = mounted.status === 0 ? undefined : (mounted.error?.message ?? mounted.stderr.trim());
if (trouble !== undefined)
  console.warn(`test/faults/full-disk.system.test.ts is left out: no disk can be mounted (${trouble})`);

const dataDir = join(dir, "data");
const logFile = join(dir, "log");
const filler = join(dir, "filler");

/** Fills the disk to its last byte. */
function fill() {
  for (const size of [16 * MiB, MiB, 4096, 1]) {
    try {
      for (const piece = Buffer.alloc(size); ; ) appendFileSync(filler, piece);
    } catch {
      // Full for this size.
    }
  }
}

async function serve(port: number): Promise<ChildProcess> {
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, [await program(), "serve"], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: compiled,
      BELFRY_HOST: "127.0.0.1",
      BELFRY_PORT: String(port),
      BELFRY_PLAINTEXT: "1",
      BELFRY_DATA_DIR: dataDir,
      BELFRY_SHUTDOWN_TIMEOUT: "500ms",
    },
    stdio: ["ignore", log, log],
  });
  onTestFinished(async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once("exit", resolve));
    spawnSync("umount", ["-l", dir]);
  });
  return child;
}

test.skipIf(trouble !== undefined)(
  "a full disk that holds the database and the log holds up nothing: it says so, loses nothing that was acknowledged, and goes on when there is room",
  async () => {
    execFileSync("mkdir", ["-m", "711", dataDir]);
    copyCluster(dataDir);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const child = await serve(port);
    const ready = async () => {
      const answer = await fetch(`${url}/readyz`).catch(() => undefined);
      return answer && { status: answer.status, ...((await answer.json()) as object) };
    };
    await expect.poll(ready).toEqual({ status: "ready" });
    const call = v1(url, { "service-api-key": readFileSync(join(dataDir, "admin.key"), "utf8").trim() });
    const dimensions = { source: "web-1" };
    const model = { timestamp: `${Date.now()}`, dimensions, metadataFields: { name: "web-1", type: "host" } };
    expect((await call("POST", "/v1/data-receiver/models", { models: [model] })).body).toMatchObject({ succeeded: 1 });
    const acknowledged: string[] = [];
    let number = 0;
    async function put() {
      const names = Array.from({ length: 200 }, () => `event ${number++}`);
      const common = { dimensions, severity: "SEVERITY_ERROR", status: "STATUS_OPEN" };
      const text = () => randomBytes(500).toString("hex"); // which cannot be compressed
      const events = names.map((name) => ({ name, timestamp: `${Date.now()}`, body: text(), ...common }));
      const { status, body } = await call("POST", "/v1/data-receiver/events", { events });
      if (status !== 200) return status;
      expect(body.message).toMatch(/^200 of 200 events processed$/);
      acknowledged.push(...names);
      return status;
    }
    expect(await put()).toBe(200);

    fill();
    await expect
      .poll(async () => ((await put()) === 200 ? undefined : await ready()), { interval: 1 })
      .toMatchObject({
        reason: expect.stringMatching(/^nothing can be stored|^the database is away/),
      });
    for (let i = 0; i < 300; i += 1) expect((await fetch(`${url}/healthz`)).status).toBe(200);

    // PostgreSQL, which dies now, cannot start: a full disk has no room for what it writes first.
    const { pid } = readPidFile(dataDirectoryOf(dataDir).data) ?? { pid: 0 };
    if (pid > 0) process.kill(pid, "SIGKILL");
    fill();
    await expect.poll(ready).toMatchObject({ reason: expect.stringMatching(/^the database is away/) });
    fill();
    expect(child.exitCode).toBeNull();
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(await ready()).toMatchObject({ status: "not ready" });

    rmSync(filler);
    await expect.poll(ready).toEqual({ status: "ready" });
    expect(await put()).toBe(200);
    const { body } = await call("POST", "/v1/events:count", { query: {}, fields: [{ field: "severity" }] });
    expect(Number(body.results.severity.values[0].count)).toBeGreaterThanOrEqual(acknowledged.length);
    await expect.poll(() => readFileSync(logFile, "utf8")).toMatch(/"msg":"the embedded database is back"/);
    expect(alive(child.pid ?? 0)).toBe(true);
  },
);
