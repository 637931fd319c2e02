import { appendFileSync, globSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { startAgent } from "../../examples/host-agent/agent.ts";
import { describe as describeMachine } from "../../examples/host-agent/entities.ts";
import { readLinux } from "../../examples/host-agent/linux.ts";
import { pointsOf } from "../../examples/host-agent/points.ts";
import { readAnywhere } from "../../examples/host-agent/portable.ts";
import { openQueue } from "../../examples/host-agent/queue.ts";
import type { Reading } from "../../examples/host-agent/reading.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { keyHeaders, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { serverProcess } from "./server-process.ts";

const database = await testDatabase();
const tenant = await testTenant(database.sql);
const ingest = await keyHeaders(database.sql, tenant.id, "DATA_INGEST", null);
const folder = temporaryDir();
// What waits after an outage is more than it takes at once.
const small = { BELFRY_RECEIVER_ITEMS_MAX: "200" };
const server = await serverProcess({ DATABASE_URL: database.url, BELFRY_DATA_DIR: folder, ...small });
await server.start();
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A machine whose file system is nearly full at every other reading, and the times of its readings. */
function machine() {
  const timesMs: number[] = [];
  async function read(): Promise<Reading> {
    const timeMs = Math.max(Date.now(), (timesMs.at(-1) ?? 0) + 1);
    timesMs.push(timeMs);
    return {
      timeMs,
      uptimeSec: timesMs.length,
      cpu: { count: 2, timeSec: { user: timesMs.length, idle: timesMs.length } },
      load: [0, 0, 0],
      memory: { limit: 1000, available: 900 },
      disks: [],
      interfaces: [],
      filesystems: [
        { mountpoint: "/", type: "ext4", device: "/dev/sda", limit: 100, used: 1, utilization: timesMs.length % 2 },
      ],
    };
  }
  return { timesMs, read };
}

const bytesOn = (dir: string) =>
  globSync("*.log", { cwd: dir }).reduce((sum, file) => sum + sizeOf(join(dir, file)), 0);
const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** Starts an agent that reads every 20 ms; its end answers what it read, said, and stored at most. */
function runAgent(source: string, bufferBytesMax: number) {
  const { timesMs, read } = machine();
  const said: string[] = [];
  const bufferFolder = join(folder, source);
  const agent = startAgent({
    receiver: createClient(DataReceiverService, transport(server, "grpc", ingest)),
    read,
    source,
    intervalMs: 20,
    limits: { filesystem: 0.9, memory: 0.9, load: 1.5 },
    bufferFolder,
    bufferBytesMax,
    pauseMsMax: 200,
    log: (line) => said.push(line),
  });
  let mostBytes = 0;
  const looking = setInterval(() => (mostBytes = Math.max(mostBytes, bytesOn(bufferFolder))), 5);
  return async () => {
    const all = await agent.stop(30_000);
    clearInterval(looking);
    expect(all).toBe(true);
    expect(bytesOn(bufferFolder)).toBe(0);
    return { timesMs, said: said.join("\n"), mostBytes };
  };
}

const json = v1(server.url, tenant.headers);
const equals = (field: string, value: string) => ({ filter: { field, operation: "OP_EQUALS", value } });

/** The occurrences of the one event of an agent, oldest first: their beginning, end and number of instances. */
async function occurrencesOf(source: string): Promise<number[][]> {
  const { body } = await json("POST", "/v1/events:search", { query: { clause: equals("dimensions.source", source) } });
  expect(body.results.length).toBe(1);
  const found: Record<string, string>[] = body.results[0].occurrences;
  return found
    .map(({ startTime, endTime, instanceCount }) =>
      [startTime, endTime, instanceCount].map((value) => Number(value ?? 0)),
    )
    .sort(([a = 0], [b = 0]) => a - b);
}

/** What the server must have: an occurrence for each two readings, opened by the one and closed by the other. */
function expectedOf(timesMs: readonly number[]) {
  const pairs = timesMs.flatMap((timeMs, i) => (i % 2 === 0 ? [[timeMs, timesMs[i + 1] ?? 0]] : []));
  return pairs.map(([startMs = 0, endMs = 0]) => [startMs, endMs, endMs === 0 ? 1 : 2]);
}

/** The times of the points of an agent's file system. */
async function pointTimesOf(source: string): Promise<number[]> {
  const { body } = await json("POST", "/v1/metrics:search", {
    entityClause: { and: { clauses: [equals("source", source), equals("mountpoint", "/")] } },
    timeRange: {
      start: new Date(Date.now() - 600_000).toISOString(),
      end: new Date(Date.now() + 60_000).toISOString(),
    },
    downsample: { aggregator: "NONE", period: "1s" },
  });
  const series: { dictionary: { name: string }; timestamps: string[] }[] = body.metrics;
  return series.find(({ dictionary }) => dictionary.name === "system.filesystem.usage")?.timestamps.map(Number) ?? [];
}

describe("two host agents, while the server is killed with -9 and started again, twice", () => {
  const bytesMax = 128 * 1024;
  let large: Awaited<ReturnType<ReturnType<typeof runAgent>>>;
  let bounded: typeof large;

  beforeAll(async () => {
    const ends = [runAgent("web-1", 16 * 1024 * 1024), runAgent("web-2", bytesMax)] as const;
    for (const outageMs of [200, 2000]) {
      await sleep(400);
      await server.kill();
      await sleep(outageMs);
      await server.start();
    }
    [large, bounded] = await Promise.all([ends[0](), ends[1]()]);
  });

  test("the one whose buffer holds all loses no event and no point, and none is there twice", async () => {
    const { timesMs, said } = large;
    expect(timesMs.length).toBeGreaterThan(50);
    expect(await occurrencesOf("web-1")).toEqual(expectedOf(timesMs));
    expect(await pointTimesOf("web-1")).toEqual(timesMs);
    expect(said).toMatch(/^the server takes no data, it is kept on disk meanwhile/m);
    expect(said).toMatch(/^the server takes data again/m);
    expect(said).not.toMatch(/lost|given up|does not take/);
  });

  test("the other one keeps within its bound: the oldest points go, it says so, and every event is there", async () => {
    const { timesMs, said, mostBytes } = bounded;
    expect(mostBytes).toBeLessThanOrEqual(bytesMax);
    expect(mostBytes).toBeGreaterThan(bytesMax / 2);
    expect(said).toMatch(/^the buffer is full: \d+ metric points are lost/m);
    expect(said).not.toMatch(/events are lost/);
    expect(await occurrencesOf("web-2")).toEqual(expectedOf(timesMs));
    const kept = await pointTimesOf("web-2");
    expect(kept).toEqual(timesMs.filter((timeMs) => kept.includes(timeMs)));
    expect(kept.at(-1)).toBe(timesMs.at(-1));
  });
});

describe("what the agent reads of this machine", () => {
  const published = new Set<unknown>(
    Object.entries(conventions).flatMap(([key, name]) => (key.startsWith("METRIC_") ? [name] : [])),
  );

  test.each([
    { title: "anywhere", read: readAnywhere, atLeast: 10 },
    ...(process.platform === "linux" ? [{ title: "on Linux", read: readLinux, atLeast: 15 }] : []),
  ])("$title: points under OpenTelemetry's names, of entities that it describes", async ({ read, atLeast }) => {
    const before = await read();
    await sleep(100);
    const now = await read();
    const points = pointsOf("web-1", now, before);
    expect(points.length).toBeGreaterThanOrEqual(atLeast);
    const entities = describeMachine("web-1", now).map(({ dimensions }) => dimensions);
    for (const { metric = "", value, dimensions } of points) {
      expect(entities).toContainEqual(dimensions);
      expect(value, metric).toBeGreaterThanOrEqual(0);
      if (metric.includes("utilization")) expect(value, metric).toBeLessThanOrEqual(1);
      const known = published.has(metric) || published.has(metric.replace(/\.[a-z]+$/, ""));
      expect(known || metric.startsWith("system.cpu.load_average."), metric).toBe(true);
    }
  });
});

describe("the agent's queue", () => {
  const textsOf = (queue: ReturnType<typeof openQueue>) => {
    const texts: string[] = [];
    for (let batch = queue.oldest(1); batch !== undefined; batch = queue.oldest(1)) {
      texts.push(Buffer.from(batch.bytes).toString());
      batch.done();
    }
    return texts;
  };
  const texts = Array.from({ length: 40 }, (_, i) => `record ${i}`);
  const filled = (name: string) => {
    const queue = openQueue(folder, name, 200);
    for (const text of texts) queue.append(Buffer.from(text), 1, true);
    return queue;
  };

  test("gives what was appended in its order, over several files, and leaves none behind", () => {
    const queue = filled("order");
    expect(globSync("order-*.log", { cwd: folder }).length).toBeGreaterThan(3);
    expect(textsOf(queue)).toEqual(texts);
    expect(queue.bytes()).toBe(0);
    expect(globSync("order-*.log", { cwd: folder })).toEqual([]);
  });

  test("after a crash it gives every whole record again that was not done, and new ones after them", () => {
    filled("crash");
    const last = globSync("crash-*.log", { cwd: folder })
      .sort((a, b) => Number(a.slice(6, -4)) - Number(b.slice(6, -4)))
      .at(-1);
    appendFileSync(join(folder, last ?? ""), readFileSync(join(folder, "crash-1.log")).subarray(0, 15)); // half a record
    const again = openQueue(folder, "crash", 200);
    again.append(Buffer.from("new"), 1);
    expect(textsOf(again)).toEqual([...texts, "new"]);
  });

  test("of a damaged file the records before the damage are given", () => {
    filled("damage");
    truncateSync(join(folder, "damage-2.log"), 30);
    const kept = textsOf(openQueue(folder, "damage", 200));
    expect(texts.filter((text) => kept.includes(text))).toEqual(kept);
    expect(kept.length).toBeGreaterThan(texts.length / 2);
  });

  test("the oldest file can be dropped while its records are on their way", () => {
    const queue = filled("drop");
    const batch = queue.oldest(1);
    const lost = queue.dropOldest() ?? 0;
    batch?.done();
    expect(textsOf(queue)).toEqual(texts.slice(lost));
  });
});
