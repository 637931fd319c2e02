import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { entityId } from "../../src/entities/identity.ts";
import { type ModelItem, putModels } from "../../src/entities/put.ts";
import { seeEntities } from "../../src/entities/see.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();
const minute = 60_000;

const model = (time: number, metadata: Record<string, unknown> = {}, source = "web-1"): ModelItem => ({
  timestampMs: BigInt(time),
  dimensions: { source },
  metadata,
});
const deletion = (time: number) => model(time, { _svc_deleted_entity: true });

async function entity(tenant: string) {
  const [row] = await sql`
    select name, metadata, model_ms, deleted_ms, liveness_ms, updated_ms, xmin::text as version from entities where tenant_id = ${tenant}`;
  return row as Record<string, unknown> | undefined;
}

async function after(...batches: ModelItem[][]) {
  const tenant = randomUUID();
  for (const batch of batches) await putModels(sql, tenant, batch, 1_000_000);
  return entity(tenant);
}

describe("a model", () => {
  test("creates its entity, and a later one replaces name and metadata whole", async () => {
    expect(await after([model(10, { name: "a", x: 1 })])).toMatchObject({ name: "a", metadata: { name: "a", x: 1 } });
    expect(await after([model(10, { name: "a", x: 1 })], [model(10, { name: "b" })])).toMatchObject({
      name: "b",
      metadata: { name: "b" },
    });
  });

  test("older than the one that is stored changes nothing", async () => {
    expect(await after([model(20, { name: "new" })], [model(10, { name: "old" })])).toMatchObject({ name: "new" });
  });

  test("without a name leaves the entity named after its dimensions", async () => {
    expect(await after([model(10)])).toMatchObject({ name: "source=web-1" });
  });

  test("describes an entity that so far was only seen in events, whatever its time", async () => {
    const tenant = randomUUID();
    const dimensions = { source: "web-1" };
    await seeEntities(sql, tenant, [{ id: entityId(tenant, dimensions), dimensions, timestampMs: 9n * 60_000n }], 1);
    expect(await entity(tenant)).toMatchObject({ name: "source=web-1", model_ms: null });
    await putModels(sql, tenant, [model(10, { name: "a" })], 1);
    expect(await entity(tenant)).toMatchObject({ name: "a", model_ms: 10n, liveness_ms: 9n * 60_000n });
  });

  test("that changes nothing writes no new row version within a minute, and moves liveness on after it", async () => {
    const tenant = randomUUID();
    await putModels(sql, tenant, [model(10, { name: "a" })], 100);
    const first = await entity(tenant);
    await putModels(sql, tenant, [model(20, { name: "a" })], 200);
    expect(await entity(tenant)).toEqual(first);
    await putModels(sql, tenant, [model(minute + 5, { name: "a" })], 300);
    expect(await entity(tenant)).toMatchObject({ liveness_ms: BigInt(minute), updated_ms: first?.updated_ms });
  });
});

describe("deletion by the reserved key", () => {
  test("deletes; only a model newer than the deletion revives the entity", async () => {
    expect(await after([model(10, { name: "a" })], [deletion(20)])).toMatchObject({ deleted_ms: 20n, name: "a" });
    expect(await after([model(10)], [deletion(20)], [model(20, { name: "b" })])).toMatchObject({ deleted_ms: 20n });
    expect(await after([model(10)], [deletion(20)], [model(21, { name: "b" })])).toMatchObject({
      deleted_ms: null,
      name: "b",
    });
    expect(await after([model(10)], [deletion(20)], [deletion(30)], [model(25)])).toMatchObject({ deleted_ms: 30n });
  });

  test("older than the model that is stored does not delete", async () => {
    expect(await after([model(20)], [deletion(10)])).toMatchObject({ deleted_ms: null });
  });

  test("is not undone by data that merely name the entity", async () => {
    const tenant = randomUUID();
    const dimensions = { source: "web-1" };
    await putModels(sql, tenant, [model(10), deletion(20)], 100);
    await seeEntities(sql, tenant, [{ id: entityId(tenant, dimensions), dimensions, timestampMs: 999_999n }], 100);
    expect(await entity(tenant)).toMatchObject({ deleted_ms: 20n });
  });
});

describe("a batch of models", () => {
  test("that describes an entity and then deletes it leaves the deleted row its last name and metadata", async () => {
    expect(await after([model(10, { name: "a", x: 1 }), deletion(20)])).toMatchObject({
      deleted_ms: 20n,
      name: "a",
      metadata: { name: "a", x: 1 },
    });
    expect(await after([model(5, { name: "old" })], [deletion(20), model(10, { name: "late" })])).toMatchObject({
      deleted_ms: 20n,
      name: "old",
    });
    expect(await after([deletion(20)])).toMatchObject({ deleted_ms: 20n, name: "source=web-1" });
  });

  test("tells which living entities it created, described anew or revived, in its transaction; repeats tell none", async () => {
    const tenant = randomUUID();
    const heard: string[][] = [];
    let now = 1_000_000;
    async function put(...models: ModelItem[]) {
      heard.length = 0;
      now += 1;
      await putModels(sql, tenant, models, now, async (tx, owner, ids) => {
        expect(owner).toBe(tenant);
        // Seen by the transaction itself, and by nobody else yet.
        expect(
          await tx`select 1 from entities where tenant_id = ${tenant} and updated_ms = ${BigInt(now)}`,
        ).not.toEqual([]);
        heard.push(ids.map((id) => id.toString("hex")).sort());
      });
      return heard;
    }
    const idOf = (source: string) => entityId(tenant, { source }).toString("hex");
    expect(await put(model(10, {}, "a"), model(10, {}, "b"))).toEqual([[idOf("a"), idOf("b")].sort()]);
    expect(await put(model(11, {}, "a"), model(minute, {}, "b"))).toEqual([]);
    expect(await put(model(minute, { name: "new" }, "a"), model(minute, {}, "b"))).toEqual([[idOf("a")]]);
    expect(await put({ ...deletion(2 * minute), dimensions: { source: "a" } })).toEqual([]);
    expect(await put(model(3 * minute, {}, "a"))).toEqual([[idOf("a")]]);
  });

  test("whose hearer fails is not stored", async () => {
    const tenant = randomUUID();
    const failing = putModels(sql, tenant, [model(10)], 100, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(await entity(tenant)).toBeUndefined();
  });

  const anyModel = fc
    .record({ time: fc.integer({ min: 1, max: 6 }), kind: fc.constantFrom("a", "b", "delete") })
    // Minutes apart: within one, a model that changes nothing does not move the stored time (docs/decisions/0009).
    .map(({ time, kind }) => (kind === "delete" ? deletion(time * minute) : model(time * minute, { name: kind })));

  test("ends as its items one by one", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyModel, { minLength: 1, maxLength: 8 }), async (items) => {
        const together = await after(items);
        const apart = await after(...items.map((each) => [each]));
        for (const key of ["metadata", "name", "deleted_ms"]) expect(together?.[key]).toEqual(apart?.[key]);
      }),
      { numRuns: 100 },
    );
  }, 30_000);

  test("of a thousand, sent at once by many clients in different orders, neither deadlocks nor loses one", async () => {
    const tenant = randomUUID();
    const models = Array.from({ length: 1000 }, (_, i) => model(10, { name: `n${i}` }, `s${i}`));
    await Promise.all(
      Array.from({ length: 8 }, (_, i) => putModels(sql, tenant, i % 2 ? models : models.toReversed(), 100)),
    );
    const [{ count }] = await sql<[{ count: bigint }]>`select count(*) from entities where tenant_id = ${tenant}`;
    expect(Number(count)).toBe(1000);
  });
});
