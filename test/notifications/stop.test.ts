import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import type { Recheck } from "../../src/notifications/deciding/recheck.ts";
import { type ClaimedDelivery, claimDeliveries, renewLeases } from "../../src/notifications/queue/delivery-queue.ts";
import type { Result } from "../../src/notifications/queue/result.ts";
import { record } from "../../src/notifications/queue/result-statements.ts";
import { backResult } from "../../src/notifications/sending/classify-response.ts";
import { dispatcher } from "../../src/notifications/sending/dispatcher.ts";
import { masterKeys } from "../support/server.ts";
import { dispatchSite } from "./dispatch.ts";

const { sql, pool, nowMs, tenant, receiver, world } = await dispatchSite();

const options = {
  pool,
  keyring: keyring(readConfig({ BELFRY_MASTER_KEYS: masterKeys })),
  log: { info() {}, warn() {}, error: console.error },
  nowMs: Date.now,
  waitMsMax: 3 * 86_400_000,
  heldRules: () => undefined,
};

test("what a look has taken when the dispatcher is told to stop is given back unsent", async () => {
  const place = await tenant();
  const [id] = await place.put([{}]);
  const looking = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  const recheck: Recheck = async () => {
    looking.resolve();
    await going.promise;
    return new Map();
  };
  const running = dispatcher({ ...options, world: world(), recheck });
  await looking.promise;
  const stopped = running.stop();
  going.resolve();
  await stopped;
  // What is sent or recorded behind the stop would be so within moments.
  await expect(vi.waitFor(() => expect(receiver().received).not.toEqual([]), 300)).rejects.toThrow();
  const left = await sql`select id, lease_until_ms, tries from due_deliveries where tenant_id = ${place.id}`;
  expect(left).toEqual([{ id, lease_until_ms: 0n, tries: 0 }]);
});

test("a try that a stop cuts off costs nothing; what may have arrived is told and cleared", async () => {
  const place = await tenant();
  const [first] = await place.put([{ createdMs: nowMs }, { createdMs: nowMs + 1, occasion: "clear" }]);
  const trying = Promise.withResolvers<void>();
  const running = dispatcher({
    ...options,
    world: world(),
    recheck: async () => new Map(),
    async send({ notification, signal }) {
      if (notification.tenant.id === place.id) trying.resolve();
      await once(signal, "abort");
      return { result: "failed", reason: "timeout", course: "retry", answer: "", state: {} };
    },
  });
  await trying.promise;
  await running.stop();
  expect((await place.waiting()).map(({ tries }) => tries)).toEqual([0, 0]);
  const over = async () => new Map([[first as string, { send: false, reason: "the condition is over" } as const]]);
  await place.dispatch(nowMs + 1, { recheck: over });
  expect(await place.done()).toMatchObject([
    { status: "CANCELLED", attempts: [{ reason: "lost" }] },
    { status: "SENT", attempts: [{ reason: "sent" }] },
  ]);
});

test("a delivery that was given back is anybody's: a renewal of its lease that was under way has no effect", async () => {
  const place = await tenant();
  await place.put([{}]);
  const lease = { nowMs, leaseMs: 10_000 };
  const quotas = [{ name: "ops", max: 1, all: false }];
  const claimed = await claimDeliveries(sql, place.id, quotas, lease);
  expect(claimed).toHaveLength(1);
  await record(sql, place.id, claimed.map(backResult), new Set(), nowMs);
  expect(await renewLeases(sql, place.id, claimed, lease)).toEqual(new Set());
  expect(await claimDeliveries(sql, place.id, quotas, lease)).toHaveLength(1);
});

test("a claim that a crash of the database has lost shares nothing with the one that follows", async () => {
  const place = await tenant();
  await place.put([{}]);
  const lease = { nowMs, leaseMs: 10_000 };
  const quotas = [{ name: "ops", max: 1, all: false }];
  const before = await sql`select fence from due_deliveries where tenant_id = ${place.id}`;
  const lost = await claimDeliveries(sql, place.id, quotas, lease);
  await sql`update due_deliveries set fence = ${before[0]?.fence}, lease_until_ms = 0 where tenant_id = ${place.id}`;
  const claimed = await claimDeliveries(sql, place.id, quotas, lease);
  const sent = (row: ClaimedDelivery): Result => ({ row, status: "SENT", error: "" });
  await record(sql, place.id, lost.map(sent), new Set(), nowMs);
  expect(await place.waiting()).toHaveLength(1);
  await record(sql, place.id, claimed.map(sent), new Set(), nowMs);
  expect((await place.done()).map(({ status }) => status)).toEqual(["SENT"]);
});
