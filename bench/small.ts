// `node bench/small.ts --mb 512 [--sec 60]`, as root on Linux: how `npm start`, with its PostgreSQL, gets on with little memory. A control group holds it to that;
// eight clients send for some time, each as soon as it is answered: four of them a thousand events a request, four five thousand points.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const MiB = 1024 * 1024;
const root = join(import.meta.dirname, "..");
const { values } = parseArgs({
  options: { mb: { type: "string", default: "512" }, sec: { type: "string", default: "60" } },
});
const port = 18_443;
const url = `http://127.0.0.1:${port}`;

/** Names of the files of a control group, in the second version and in the first. */
const second = existsSync("/sys/fs/cgroup/cgroup.controllers");
const group = join(second ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory", `belfry-small-${process.pid}`);
const [limit, peak, events] = second
  ? ["memory.max", "memory.peak", "memory.events"]
  : ["memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"];
const read = (name: string) => readFileSync(join(group, name), "utf8");

async function post(path: string, body: object, key: string): Promise<number> {
  const headers = { "service-api-key": key, "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(30_000) };
  const answer = await fetch(`${url}/v1/data-receiver/${path}`, init).catch(() => undefined);
  await answer?.arrayBuffer().catch(() => undefined);
  return answer?.status ?? 0;
}

/** Sends until the end, and counts what was answered with which status; 0 is no answer. */
async function send(client: number, endMs: number, key: string, counts: Map<string, number>): Promise<void> {
  for (let n = 0; Date.now() < endMs; n++) {
    const now = Date.now();
    const source = (i: number) => ({ source: `host ${client}-${(n * 7 + i) % 500}` });
    const status =
      client % 2 === 0
        ? await post("events", { events: Array.from({ length: 1000 }, (_, i) => event(i, now, source(i))) }, key)
        : await post("metrics", { metrics: Array.from({ length: 5000 }, (_, i) => point(i, now, source(0))) }, key);
    const name = `${client % 2 === 0 ? "requests of 1,000 events" : "requests of 5,000 points"}: ${status}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    if (status !== 200) await sleep(200);
  }
}

const event = (i: number, now: number, dimensions: object) => ({
  name: `disk ${i % 50}`,
  timestamp: `${now - i}`,
  severity: "SEVERITY_ERROR",
  dimensions,
  status: i % 3 === 0 ? "STATUS_CLOSED" : "STATUS_OPEN",
  summary: "97 % of /var is used",
});

const point = (i: number, now: number, dimensions: object) => ({
  metric: `m${i % 100}`,
  timestamp: `${now - Math.floor(i / 100) * 1000}`,
  value: i,
  dimensions,
});

mkdirSync(group);
writeFileSync(join(group, limit as string), String(Number(values.mb) * MiB));
const dataDir = mkdtempSync(join(tmpdir(), "belfry-small-"));
const env = {
  ...process.env,
  BELFRY_DATA_DIR: dataDir,
  BELFRY_PORT: String(port),
  BELFRY_PLAINTEXT: "1",
  BELFRY_LOG_LEVEL: "warn",
};
const child = spawn("sh", ["-c", `echo $$ > ${group}/cgroup.procs; exec npm start`], {
  cwd: root,
  env,
  stdio: "ignore",
});
try {
  const startMs = Date.now();
  while (!(await fetch(`${url}/readyz`).catch(() => undefined))?.ok) {
    if (Date.now() - startMs > 180_000) throw new Error("it is not ready after three minutes");
    await sleep(200);
  }
  console.log(`${values.mb} MB: ready after ${((Date.now() - startMs) / 1000).toFixed(0)} s`);
  const key = readFileSync(join(dataDir, "admin.key"), "utf8").trim();
  const counts = new Map<string, number>();
  const endMs = Date.now() + Number(values.sec) * 1000;
  await Promise.all(Array.from({ length: 8 }, (_, client) => send(client, endMs, key, counts)));
  for (const [name, count] of [...counts].sort()) console.log(`${name}, ${count} times`);
  const killed = /oom_kill (\d+)/.exec(read(events as string))?.[1];
  console.log(`at most ${Math.round(Number(read(peak as string)) / MiB)} MB; the kernel killed ${killed} processes`);
} finally {
  child.kill("SIGINT");
  await Promise.race([once(child, "exit"), sleep(30_000)]);
  for (const pid of read("cgroup.procs").split("\n").filter(Boolean)) process.kill(Number(pid), "SIGKILL");
  await sleep(1000);
  rmdirSync(group);
  rmSync(dataDir, { recursive: true, force: true });
}
