import http2 from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { openHttp2 } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer, memoryBytes } from "./file-server.ts";

const MiB = 1024 * 1024;
/** Pages that are asked for, and how many of them at least are cut. */
const [pages, cut] = [120, 100];
const { server, sql } = await fileServer(
  { NODE_OPTIONS: "--max-old-space-size=256" },
  { answerBytesMax: 32 * MiB, streamIdleMs: 3000 },
);

const json = { "content-type": "application/json" };

test("pages of 1,000 events that no one takes do not fill the memory, and a neighbour is answered", async () => {
  const greedy = await testTenant(sql);
  const neighbour = await testTenant(sql);
  const one = openHttp2(server);
  const events = Array.from({ length: 1000 }, (_, i) => ({
    name: `event ${i}`,
    severity: "SEVERITY_ERROR",
    timestamp: String(Date.now()),
    dimensions: { place: String(i) },
    body: "x".repeat(2000),
  }));
  const body = [Buffer.from(JSON.stringify({ events }))];
  const stored = await one.send({ path: "/v1/data-receiver/events", headers: { ...greedy.headers, ...json }, body });
  expect(JSON.parse(stored.body.toString())).toMatchObject({ succeeded: 1000 });
  // A server that has just started compiles its code first.
  const search = { path: "/v1/events:search", body: [Buffer.from('{"query":{"pageInput":{"limit":1000}}}')] };
  for (let i = 0; i < 40; i += 1) await one.send({ ...search, headers: { ...greedy.headers, ...json } });
  const before = memoryBytes(server);
  await server.longestTurn();

  const takesNothing = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
  takesNothing.on("error", () => {});
  await new Promise((resolve) => takesNothing.once("remoteSettings", resolve));
  let closed = 0;
  for (let i = 0; i < pages; i += 1) {
    const stream = takesNothing.request({
      ":method": "POST",
      ":path": "/v1/events:search",
      ...json,
      ...greedy.headers,
    });
    stream.on("error", () => {}).on("close", () => (closed += 1));
    stream.end('{"query":{"pageInput":{"limit":1000}}}');
  }
  let most = before;
  for (let i = 0; i < 1000 && closed < cut; i += 1) {
    const { status } = await one.send({
      path: "/v1/events:search",
      headers: { ...neighbour.headers, ...json },
      body: [Buffer.from('{"query":{}}')],
    });
    expect(status).toBe(200);
    most = Math.max(most, memoryBytes(server));
    await sleep(100);
  }
  expect(closed).toBeGreaterThanOrEqual(cut);
  expect(most - before).toBeLessThan(150 * MiB);
  expect((await server.longestTurn()).ms).toBeLessThan(turnMsMax);
  expect(server.complaints).toEqual([]);
  takesNothing.destroy();
  one.close();
});
