import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { freePort, type ServerProcess, serverProcess } from "../faults/server-process.ts";
import { atEnd } from "../support/at-end.ts";
import { temporaryDir } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { servingOf } from "../support/serving-processes.ts";

/** A server of several processes, as an operator starts it. */
export interface TestMachine {
  readonly server: ServerProcess;
  readonly dataDir: string;
  readonly target: { url: string; ca: string };
  /** All that it has written. */
  said(): string;
  /** The metrics of all its processes, by `name{labels}`. */
  metrics(): Promise<Map<string, number>>;
  /** Connections of clients of each serving process, as its metrics count them. */
  connections(): Promise<number[]>;
  /** Its serving processes. */
  serving(): number[];
}

/** Starts one of three processes over TLS, which ends as `atEnd` says. */
export async function testMachine(env: Record<string, string>): Promise<TestMachine> {
  const [dataDir, metricsPort] = [temporaryDir(), await freePort()];
  const logFile = join(dataDir, "log");
  const settings = {
    BELFRY_PROCESSES: "3",
    BELFRY_DATA_DIR: dataDir,
    BELFRY_PLAINTEXT: "0",
    BELFRY_LOG_LEVEL: "info",
    BELFRY_MASTER_KEYS: masterKeys,
    BELFRY_METRICS_ADDRESS: String(metricsPort),
  };
  const server = await serverProcess({ ...settings, ...env }, logFile);
  atEnd(async () => {
    await server.kill();
    rmSync(dataDir, { recursive: true, force: true });
  });
  await server.start();

  async function metrics() {
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return new Map(
      samples.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
    );
  }
  return {
    server,
    dataDir,
    target: { url: server.url.replace("http:", "https:"), ca: join(dataDir, "ca.pem") },
    said: () => readFileSync(logFile, "utf8"),
    metrics,
    async connections() {
      const found = await metrics();
      return [1, 2, 3].map((number) => found.get(`belfry_connections{process="${number}"}`) ?? Number.NaN);
    },
    serving: () => servingOf(server.pid ?? -1),
  };
}

/** What `open` returns for a connection to each process, in their order: it opens one, and keeps it. */
export async function atEachProcess<T>({ connections }: TestMachine, open: () => Promise<T>): Promise<T[]> {
  const found = new Map<number, T>();
  let before = await connections();
  for (let opened = 0; found.size < before.length; opened += 1) {
    expect(opened, `connections: ${before}`).toBeLessThan(30);
    const one = await open();
    const now = await connections();
    const changed = now.flatMap((count, i) => (count === before[i] ? [] : [i]));
    const [taker = -1, ...others] = changed;
    // Where earlier ones have ended meanwhile, it is not known who took it.
    if (others.length === 0 && now[taker] === (before[taker] as number) + 1) found.set(taker, one);
    before = now;
  }
  return before.map((_, i) => found.get(i) as T);
}
