import { expect, test } from "vitest";
import { httpVersions, openHttp2, raw } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer } from "./file-server.ts";

const MiB = 1024 * 1024;
const { server, sql } = await fileServer({ NODE_OPTIONS: "--max-old-space-size=256" }, { receiverBytesMax: 64 * MiB });
const slow = await testTenant(sql);
const neighbour = await testTenant(sql);
const json = { "content-type": "application/json" };

/** Half of a body, and no more until `over`; `half` is told when that is sent. */
async function* halfOf(half: () => void, over: Promise<void>) {
  const piece = Buffer.alloc(64 * 1024, " ");
  for (let sent = 0; sent < 32 * MiB; sent += piece.byteLength) yield piece;
  half();
  await over;
}

test("beside two half-sent bodies of 64 MiB a neighbour is answered, and no turn of the loop is long", async () => {
  const headers = { ...slow.headers, ...json, "content-length": String(64 * MiB) };
  const sent: Promise<void>[] = [];
  const over = Promise.withResolvers<void>();
  await server.longestTurn();
  const halves = httpVersions.map((version) => {
    const half = Promise.withResolvers<void>();
    sent.push(half.promise);
    const body = halfOf(half.resolve, over.promise);
    return raw(server, version, { path: "/v1/data-receiver/events", headers, body });
  });
  await Promise.all(sent);
  const connection = openHttp2(server);
  const event = { name: "disk full", timestamp: String(Date.now()), dimensions: { source: "a" } };
  const calls = [
    { path: "/v1/data-receiver/events", body: [Buffer.from(JSON.stringify({ events: [event] }))] },
    { path: "/v1/events:search", body: [Buffer.from('{"query":{}}')] },
  ];
  for (let i = 0; i < 40; i += 1) {
    const call = calls[i % calls.length] as (typeof calls)[number];
    const { status } = await connection.send({ ...call, headers: { ...neighbour.headers, ...json } });
    expect(status, call.path).toBe(200);
  }
  expect((await server.longestTurn()).ms).toBeLessThan(turnMsMax);
  connection.close();
  over.resolve();
  await Promise.allSettled(halves);
});
