import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { entityId } from "../../src/entities/identity.ts";
import { liveness } from "../../src/entities/liveness.ts";
import { touchEntities } from "../entities/stored.ts";
import { testDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { bareTenant } from "../support/tenant.ts";
import { dimensions, put, stored, testStore } from "./points.ts";

const sent: string[] = [];
const { sql } = await testDatabase({
  debug: (_connection, statement) => sent.push(statement.replaceAll(/\s+/g, " ").trim()),
});
const minuteMs = 60_000;
const nowMs = 1000 * minuteMs;
const newStore = () => testStore();
const point = (metric: string) => ({ metric, timeMs: nowMs, value: 1 });
const ofEntities = () => sent.filter((text) => /^(select|insert into|update) .*\bentities\b/.test(text));

test("a new series of a known entity asks nothing of the entity but that it stays", async () => {
  const [tenant, store] = [await bareTenant(sql), newStore()];
  await put(sql, store, tenant, [point("cpu")], nowMs);
  sent.length = 0;
  await put(sql, store, tenant, [point("memory")], nowMs);
  expect(ofEntities()).toEqual([expect.stringMatching(/^select from .* for key share/)]);
  expect((await sql`select from series where tenant_id = ${tenant}`).count).toBe(2);
});

test("an entity that is known and not there, after the database was restored, is made with its series", async () => {
  const [tenant, store] = [await bareTenant(sql), newStore()];
  await put(sql, store, tenant, [point("cpu")], nowMs);
  await sql`delete from series where tenant_id = ${tenant}`;
  await sql`delete from entities where tenant_id = ${tenant}`;
  await put(sql, store, tenant, [point("memory")], nowMs);
  const rows = await sql`
    select from series s join entities e on e.tenant_id = s.tenant_id and e.id = s.entity_id where s.tenant_id = ${tenant}`;
  expect(rows.count).toBe(1);
});

test("points move liveness on by a statement a minute, and by none where other data have moved it", async () => {
  const [tenant, known] = [await bareTenant(sql), entityCache()];
  const id = entityId(tenant, dimensions);
  const see = (timeMs: number) =>
    transaction(sql, (tx) =>
      touchEntities(tx, tenant, [{ id, dimensions, timestampMs: BigInt(timeMs) }], nowMs, known),
    );
  const livenessOf = async () => {
    const [row] = await sql<{ liveness_ms: bigint }[]>`select liveness_ms from entities where tenant_id = ${tenant}`;
    return Number(row?.liveness_ms);
  };
  const living = liveness(sql, 60_000, known);
  await see(nowMs);
  living.note(tenant, id, nowMs + 5);
  sent.length = 0;
  await living.flush();
  expect(sent).toEqual([]);
  living.note(tenant, id, nowMs + minuteMs);
  await living.flush();
  expect(sent).toHaveLength(1);
  expect(await livenessOf()).toBe(nowMs + minuteMs);
  living.note(tenant, id, nowMs + minuteMs + 7);
  sent.length = 0;
  await living.stop();
  expect(sent).toEqual([]);
  await see(nowMs + minuteMs);
  expect(sent).toEqual(["begin", "commit"]);
});

test("points of a series that is removed while they are stored are in a series that is there", async () => {
  const tenant = await bareTenant(sql);
  await put(sql, newStore(), tenant, [point("cpu")], nowMs);
  await sql`update series set unused_ms = 1 where tenant_id = ${tenant}`;
  const [removed, asked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const removing = transaction(sql, async (tx) => {
    await tx`delete from series where tenant_id = ${tenant}`;
    removed.resolve();
    await asked.promise;
  });
  await removed.promise;
  const storing = put(sql, newStore(), tenant, [{ metric: "cpu", timeMs: nowMs + 1, value: 2 }], nowMs);
  await expect.poll(() => lockWaits(sql, "%series%")).toBe(1);
  asked.resolve();
  await Promise.all([removing, storing]);
  expect((await stored(sql, tenant, nowMs + 1, nowMs + 1)).cpu?.at(-1)).toEqual([nowMs + 1, 2]);
});
