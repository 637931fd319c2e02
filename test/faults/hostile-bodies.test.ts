import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { httpVersions, openHttp2, raw } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { clear, place } from "./place.ts";
import { serverProcess } from "./server-process.ts";

const MiB = 1024 * 1024;
const waitMsMax = 1000;
const { sql, url } = await testDatabase();
const dataDir = await place();
const server = await serverProcess({
  BELFRY_DATA_DIR: dataDir,
  DATABASE_URL: url,
  TEST_LIMITS: JSON.stringify({ receiverBytesMax: 64 * MiB }),
  NODE_OPTIONS: "--max-old-space-size=256",
});
await server.start();
afterAll(async () => {
  await server.stop();
  await clear(dataDir);
});
const slow = await testTenant(sql);
const neighbour = await testTenant(sql);
const json = { "content-type": "application/json" };

/** Half of a body, then a byte each second; `half` is told when that is sent. */
async function* byteByByte(half: () => void, seconds: number) {
  const piece = Buffer.alloc(64 * 1024, " ");
  for (let sent = 0; sent < 32 * MiB; sent += piece.byteLength) yield piece;
  half();
  for (let i = 0; i < seconds; i += 1) {
    await sleep(1000);
    yield Buffer.from(" ");
  }
}

test("beside two half-sent bodies of 64 MiB a neighbour is answered within a second", async () => {
  const headers = { ...slow.headers, ...json, "content-length": String(64 * MiB) };
  const sent: Promise<void>[] = [];
  const halves = httpVersions.map((version) => {
    const half = Promise.withResolvers<void>();
    sent.push(half.promise);
    const body = byteByByte(half.resolve, 30);
    return raw(server, version, { path: "/v1/data-receiver/events", headers, body });
  });
  await Promise.all(sent);
  const connection = openHttp2(server);
  const event = { name: "disk full", timestamp: String(Date.now()), dimensions: { source: "a" } };
  const calls = [
    { path: "/v1/data-receiver/events", body: [Buffer.from(JSON.stringify({ events: [event] }))] },
    { path: "/v1/events:search", body: [Buffer.from('{"query":{}}')] },
  ];
  const endMs = performance.now() + 4000;
  const wrong: string[] = [];
  for (let i = 0; performance.now() < endMs; i += 1) {
    const call = calls[i % calls.length] as (typeof calls)[number];
    const { status, ownMs: ms } = await connection.send({ ...call, headers: { ...neighbour.headers, ...json } });
    if (status !== 200 || ms > waitMsMax) wrong.push(`${call.path}: ${status} after ${Math.round(ms)} ms`);
    await sleep(50);
  }
  expect(wrong).toEqual([]);
  connection.close();
  // Which takes 10 s: test/http/slow-bodies.system.test.ts sees their end.
  void Promise.allSettled(halves);
});
