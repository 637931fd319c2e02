import { Code, createClient } from "@connectrpc/connect";
import { afterAll, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { createClient as createApiClient, createKey } from "../../src/auth/create-tenant.ts";
import { transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { clear, place } from "./place.ts";
import { serverProcess } from "./server-process.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

const { sql, url } = await testDatabase();
const dataDir = await place();
const server = await serverProcess({ BELFRY_DATA_DIR: dataDir, DATABASE_URL: url });
await server.start({ clockShiftMs: hourMs });
afterAll(async () => {
  await server.stop();
  await clear(dataDir);
});

const tenant = await testTenant(sql);

async function databaseMs() {
  const [row] = await sql<[{ ms: number }]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
  return row.ms;
}

const receiverWith = (headers: Record<string, string>) =>
  createClient(DataReceiverService, transport({ url: server.url }, "connect", headers));
const receiver = receiverWith(tenant.headers);

async function keyThatExpires(inMs: number) {
  const { id } = await createApiClient(sql, tenant.id, { name: "agents", type: "DATA_INGEST", role: null });
  const expiresMs = BigInt(Math.round((await databaseMs()) + inMs));
  const { text } = await createKey(sql, tenant.id, id, { description: "", expiresMs });
  return receiverWith({ "service-api-key": text });
}

const putNothing = (by: typeof receiver) =>
  by.putModels({}).then(
    () => "taken",
    ({ code }) => code,
  );

describe.each([
  ["an hour ahead", hourMs],
  ["stepped an hour back", -hourMs],
  ["stepped a day ahead", 25 * hourMs],
  ["stepped to long ago", -20 * 365 * 24 * hourMs],
])("a server whose own clock is %s goes by the database's", (what, clockShiftMs) => {
  test("when it judges timestamps, and in those that it writes", async () => {
    const ownMs = await server.arm({ clockShiftMs });
    expect(Math.abs(ownMs - Date.now() - clockShiftMs)).toBeLessThan(10_000);

    const nowMs = await databaseMs();
    const ages = [-24 * hourMs - minuteMs, -24 * hourMs + minuteMs, 0, 9 * minuteMs, 11 * minuteMs];
    const models = ages.map((ageMs) => ({
      dimensions: { source: `${what} ${ageMs}` },
      timestamp: BigInt(Math.round(nowMs + ageMs)),
    }));
    const answer = await receiver.putModels({ models, detailedResponse: true });
    expect(answer.failedModels.map(({ model }) => model?.dimensions.source)).toEqual([
      `${what} ${ages[0]}`,
      `${what} ${ages[4]}`,
    ]);
    const [row] = await sql<[{ created: bigint; updated: bigint }]>`
      select max(created_ms) as created, max(updated_ms) as updated from entities where tenant_id = ${tenant.id}`;
    for (const ms of [row.created, row.updated]) expect(Math.abs(Number(ms) - nowMs)).toBeLessThan(5000);
  });

  test("when it judges keys", async () => {
    expect(await putNothing(await keyThatExpires(30 * minuteMs))).toBe("taken");
    expect(await putNothing(await keyThatExpires(-30 * minuteMs))).toBe(Code.Unauthenticated);
    const soon = await keyThatExpires(700);
    expect(await putNothing(soon)).toBe("taken");
    await expect.poll(() => putNothing(soon)).toBe(Code.Unauthenticated);
  });
});
