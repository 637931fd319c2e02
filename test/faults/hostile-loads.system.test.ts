import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { openHttp2 } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { fileServer, memoryBytes } from "./file-server.ts";
import {
  batches,
  eventPages,
  type HostileLoad,
  metricSearches,
  resumedWatches,
  watchedBatch,
} from "./hostile-loads.ts";

const MiB = 1024 * 1024;
const { server, sql } = await fileServer({
  // As start.js sets them, and less than the usual heap.
  MALLOC_ARENA_MAX: "2",
  NODE_OPTIONS: `--max-semi-space-size=16 --max-old-space-size=320`,
});
const json = { "content-type": "application/json" };

/** A neighbour that sends single events and asks whether the server lives, until its end says what was wrong and how much memory was taken. */
function neighbour({ headers }: TestTenant) {
  const connection = openHttp2(server);
  const wrong: string[] = [];
  let stored = 0;
  let mostBytes = 0;
  let going = true;
  async function again(send: (n: number) => ReturnType<typeof connection.send>) {
    for (let n = 0; going; n += 1, await sleep(20)) {
      const answer = await send(n);
      if (answer.status !== 200) wrong.push(`the neighbour was answered ${answer.status}`);
      mostBytes = Math.max(mostBytes, memoryBytes(server));
    }
  }
  const running = Promise.all([
    again(async (n) => {
      const event = { name: `event ${n % 50}`, timestamp: String(Date.now()), dimensions: { source: "one" } };
      const body = [Buffer.from(JSON.stringify({ events: [event] }))];
      const answer = await connection.send({
        path: "/v1/data-receiver/events",
        headers: { ...headers, ...json },
        body,
      });
      stored += 1;
      return answer;
    }),
    again(() => connection.send({ method: "GET", path: "/healthz" })),
  ]);
  return async () => {
    going = false;
    await running;
    connection.close();
    return { wrong, mostBytes, stored };
  };
}

async function beside(load: HostileLoad) {
  const attacker = await testTenant(sql);
  const other = await testTenant(sql);
  const { run, close } = await load.prepare(server, attacker.headers);
  await server.longestTurn();
  const end = neighbour(other);
  const wrong = await run();
  const { mostBytes, stored, wrong: others } = await end();
  const { ms: heldMs } = await server.longestTurn();
  close();
  return { heldMs, mostBytes, stored, wrong: [...wrong.slice(0, 3), ...others] };
}

const loads = [watchedBatch(500), resumedWatches(250), batches(8), metricSearches(8), eventPages(15)];

describe("beside what one tenant may do, no turn of the event loop takes long, and another's events are stored", () => {
  test.each(loads)("$name", async (load) => {
    const { heldMs, mostBytes, stored, wrong } = await beside(load);
    expect(wrong).toEqual([]);
    expect(heldMs).toBeLessThan(turnMsMax);
    // One or two, if it waited for the end.
    expect(stored).toBeGreaterThan(3);
    expect(mostBytes).toBeLessThan(512 * MiB);
  });

  test("the process has lived through all of it", () => {
    expect(server.complaints).toEqual([]);
  });
});
