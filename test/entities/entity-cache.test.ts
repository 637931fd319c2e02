import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { type EntityCache, entityCache } from "../../src/entities/entity-cache.ts";
import { entityId, eventIds } from "../../src/entities/identity.ts";
import type { ModelItem } from "../../src/entities/put.ts";
import { storingChanges } from "../../src/events/changes.ts";
import { testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";
import { ingestEvents, putModels, touchEntities } from "./stored.ts";

const sent: string[] = [];
const { sql } = await testDatabase({
  debug: (_connection, statement) => sent.push(statement.replaceAll(/\s+/g, " ").trim()),
});
const minuteMs = 60_000;
const dimensions = { source: "web-1" };

const see = (tenant: string, known: EntityCache, minute: number) =>
  touchEntities(
    sql,
    tenant,
    [{ id: entityId(tenant, dimensions), dimensions, timestampMs: BigInt(minute * minuteMs + 5) }],
    1,
    known,
  );
const model = (time: number, metadata: Record<string, unknown> = {}): ModelItem => ({
  timestampMs: BigInt(time),
  dimensions,
  metadata,
});
const livenessOf = async (tenant: string) => {
  const [row] = await sql<{ liveness_ms: bigint }[]>`select liveness_ms from entities where tenant_id = ${tenant}`;
  return Number(row?.liveness_ms) / minuteMs;
};

test("what is known takes no statement; a new minute moves liveness, without the indexes", async () => {
  const [tenant, known] = [await bareTenant(sql), entityCache()];
  await see(tenant, known, 10);
  sent.length = 0;
  await see(tenant, known, 10);
  await see(tenant, known, 9);
  expect(sent).toEqual([]);
  await see(tenant, known, 11);
  expect(sent.map((text) => text.split(" ", 1)[0])).toEqual(["begin", "select", "insert", "commit"]);
  expect(await livenessOf(tenant)).toBe(11);
});

test("what was not committed is not known", async () => {
  const [tenant, known] = [await bareTenant(sql), entityCache()];
  const aborted = transaction(sql, async (tx) => {
    const sighting = { id: entityId(tenant, dimensions), dimensions, timestampMs: BigInt(10 * minuteMs) };
    await touchEntities(tx, tenant, [sighting], 1, known);
    throw new Error("aborted");
  });
  await expect(aborted).rejects.toThrow("aborted");
  expect(known.livenessMs(entityId(tenant, dimensions))).toBeUndefined();
  await see(tenant, known, 10);
  expect(await livenessOf(tenant)).toBe(10);
});

test("an entity that is deleted and revived elsewhere keeps its liveness", async () => {
  const [tenant, here, there] = [await bareTenant(sql), entityCache(), entityCache()];
  await see(tenant, here, 10);
  await putModels(sql, tenant, [model(11 * minuteMs, { _svc_deleted_entity: true })], 1, undefined, there);
  // Of a deleted one nothing is remembered, whatever was known before.
  await see(tenant, here, 12);
  await putModels(sql, tenant, [model(11 * minuteMs + 1, { name: "again" })], 1, undefined, there);
  await see(tenant, here, 12);
  expect(await livenessOf(tenant)).toBe(12);
});

test("an event whose entity was known and is not there is stored all the same", async () => {
  const [tenant, known] = [await bareTenant(sql), entityCache()];
  known.noteEntity(eventIds(tenant, dimensions, "e").entityId, 99 * minuteMs);
  const texts = { type: "", summary: "", body: "", metadata: {} };
  const item = { name: "e", dimensions, timeMs: 5n, severity: 1, status: 1, acknowledged: undefined, ...texts };
  await ingestEvents(sql, tenant, [item], { nowMs: 1, store: storingChanges({}), known });
  expect(await sql`select 1 from occurrences where tenant_id = ${tenant}`).toHaveLength(1);
});

test("the same model again takes one read, whatever the order of its keys; a newer one that says the same is a plain update", async () => {
  const [tenant, known] = [await bareTenant(sql), entityCache()];
  await putModels(sql, tenant, [model(5, { name: "a", tags: { x: 1, y: [2, { p: 3, q: 4 }] } })], 1, undefined, known);
  sent.length = 0;
  await putModels(sql, tenant, [model(5, { tags: { y: [2, { q: 4, p: 3 }], x: 1 }, name: "a" })], 2, undefined, known);
  expect(sent.map((text) => text.split(" ", 1)[0])).toEqual(["begin", "select", "commit"]);
  sent.length = 0;
  await putModels(
    sql,
    tenant,
    [model(minuteMs, { name: "a", tags: { x: 1, y: [2, { p: 3, q: 4 }] } })],
    3,
    undefined,
    known,
  );
  expect(sent.map((text) => text.split(" ", 1)[0])).toEqual(["begin", "select", "insert", "commit"]);
  const changed: Buffer[] = [];
  const onChanged = async (_tx: unknown, _tenant: string, ids: Buffer[]) => void changed.push(...ids);
  await putModels(sql, tenant, [model(minuteMs + 1, { name: "b" })], 4, onChanged, known);
  expect(changed).toEqual([entityId(tenant, dimensions)]);
});

test("the memory is bounded, and keeps what was used of late", () => {
  const known = entityCache({ entitiesMax: 100 });
  const id = (n: number) => Buffer.from(String(n).padStart(20, "0"));
  for (let n = 0; n < 1000; n++) {
    known.noteEntity(id(n), minuteMs);
    known.livenessMs(id(0));
  }
  expect(known.livenessMs(id(0))).toBe(minuteMs);
  expect(known.livenessMs(id(500))).toBeUndefined();
  known.noteEntity(id(0), 0);
  expect(known.livenessMs(id(0))).toBe(minuteMs);
});
