import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { openHttp2 } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import {
  batches,
  eventPages,
  type HostileLoad,
  metricSearches,
  resumedWatches,
  watchedBatch,
} from "./hostile-loads.ts";
import { neighbourBound } from "./neighbour-bound.ts";
import { clear, place } from "./place.ts";
import { serverProcess } from "./server-process.ts";

const MiB = 1024 * 1024;
const { sql, url } = await testDatabase();
const dataDir = await place();
const server = await serverProcess({
  BELFRY_DATA_DIR: dataDir,
  DATABASE_URL: url,
  // As start.js sets them, and less than the usual heap.
  MALLOC_ARENA_MAX: "2",
  NODE_OPTIONS: `--max-semi-space-size=16 --max-old-space-size=320 ${process.env.HOSTILE_NODE ?? ""}`,
});
await server.start();
afterAll(async () => {
  await server.stop();
  await clear(dataDir);
});
const json = { "content-type": "application/json" };

/** Processor time that the server has used, s. */
function processorSec(): number {
  const [, rest = ""] = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ");
  const fields = rest.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

const residentBytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]) * 1024;

/** A neighbour that sends single events and looks whether the server lives; what it had to wait for. */
function neighbour({ headers }: TestTenant) {
  const connection = openHttp2(server);
  const events: number[] = [];
  const health: number[] = [];
  const wrong: string[] = [];
  let mostBytes = 0;
  let going = true;
  async function again(ms: number[], send: (n: number) => ReturnType<typeof connection.send>) {
    for (let n = 0; going; n += 1, await sleep(20)) {
      const answer = await send(n);
      ms.push(answer.ms);
      if (answer.status !== 200) wrong.push(`the neighbour was answered ${answer.status}`);
      mostBytes = Math.max(mostBytes, residentBytes());
    }
  }
  const running = Promise.all([
    again(events, (n) => {
      const event = { name: `event ${n % 50}`, timestamp: String(Date.now()), dimensions: { source: "one" } };
      const body = [Buffer.from(JSON.stringify({ events: [event] }))];
      return connection.send({ path: "/v1/data-receiver/events", headers: { ...headers, ...json }, body });
    }),
    again(health, () => connection.send({ method: "GET", path: "/healthz" })),
  ]);
  return async () => {
    going = false;
    await running;
    connection.close();
    return { eventMs: Math.max(...events), healthMs: Math.max(...health), wrong, mostBytes, events };
  };
}

async function beside(load: HostileLoad, times = 1) {
  const attacker = await testTenant(sql);
  const other = await testTenant(sql);
  const { run, close } = await load.prepare(server, attacker.headers);
  const quiet = neighbour(other);
  await sleep(1000);
  await quiet();
  const bound = neighbourBound();
  await server.longestTurn();
  const end = neighbour(other);
  const wrong: string[] = [];
  const startMs = performance.now();
  const beforeSec = processorSec();
  for (let i = 0; i < times; i += 1) wrong.push(...(await run()));
  const tookMs = performance.now() - startMs;
  const seen = await end();
  const { ms: heldMs } = await server.longestTurn();
  close();
  const boundMs = bound();
  const p99 = seen.events.toSorted((a, b) => a - b)[Math.floor(seen.events.length * 0.99)];
  if (process.env.HOSTILE_SAY)
    console.log(
      `${load.name}: ${Math.round(tookMs)} ms, ${(processorSec() - beforeSec).toFixed(1)} s of the processor, held ${heldMs.toFixed(0)}, bound ${boundMs.toFixed(0)}, event ${seen.eventMs.toFixed(0)} p99 ${p99?.toFixed(0)} of ${seen.events.length}, health ${seen.healthMs.toFixed(0)}, ${(seen.mostBytes / MiB).toFixed(0)} MiB`,
    );
  return { ...seen, boundMs, heldMs, wrong: [...wrong.slice(0, 3), ...seen.wrong], attacker };
}

const loads = [watchedBatch(500), resumedWatches(250), batches(8), metricSearches(8), eventPages(15)];

describe("beside what one tenant may do, no turn of the event loop takes long, and another's event is stored within a second", () => {
  test.each(loads)("$name", async (load) => {
    const { heldMs, eventMs, boundMs, mostBytes, wrong } = await beside(load);
    expect(wrong).toEqual([]);
    expect(heldMs).toBeLessThan(turnMsMax);
    expect(eventMs).toBeLessThan(boundMs);
    expect(mostBytes).toBeLessThan(512 * MiB);
  });

  test("the process has lived through all of it", () => {
    expect(server.complaints).toEqual([]);
  });
});
