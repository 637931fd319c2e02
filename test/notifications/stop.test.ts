import { expect, test, vi } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import type { Recheck } from "../../src/notifications/deciding/recheck.ts";
import { dispatcher } from "../../src/notifications/delivering/dispatcher.ts";
import { masterKeys } from "../support/server.ts";
import { dispatchSite } from "./dispatch.ts";

const { sql, pool, tenant, receiver, world } = await dispatchSite();

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
  const running = dispatcher({
    pool,
    keyring: keyring(readConfig({ BELFRY_MASTER_KEYS: masterKeys })),
    world: world(),
    log: { info() {}, warn() {}, error: console.error },
    nowMs: Date.now,
    waitMsMax: 3 * 86_400_000,
    recheck,
  });
  await looking.promise;
  const stopped = running.stop();
  going.resolve();
  await stopped;
  // What is sent or recorded behind the stop would be so within moments.
  await expect(vi.waitFor(() => expect(receiver().received).not.toEqual([]), 300)).rejects.toThrow();
  const left = await sql`select id, lease_until_ms, tries from due_deliveries where tenant_id = ${place.id}`;
  expect(left).toEqual([{ id, lease_until_ms: 0n, tries: 0 }]);
});
