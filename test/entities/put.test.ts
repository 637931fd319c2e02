import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { unbounded } from "../../src/entities/bounds.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { metadataKeys } from "../../src/entities/field-keys.ts";
import { entityId } from "../../src/entities/identity.ts";
import { liveness } from "../../src/entities/liveness.ts";
import type { ModelItem } from "../../src/entities/put.ts";
import { retainEntities } from "../../src/entities/retention.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { bareTenant } from "../support/tenant.ts";
import { putModels, touchEntities } from "./stored.ts";

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

/** Until a statement waits for a lock in this database. */
async function waiting() {
  while ((await lockWaits(sql)) === 0) await sleep(5);
}

async function after(...batches: ModelItem[][]) {
  const tenant = await bareTenant(sql);
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

  test.each([" ", "\u00a0", "\u3000", "\u200b\u2060", "\u3164", "\u2800 "])(
    "whose name is blank (%j) leaves the entity named after its dimensions",
    async (name) => {
      expect(await after([model(10, { name })])).toMatchObject({ name: "source=web-1", metadata: { name } });
      expect(await after([model(10, { name: "a" })], [model(20, { name })])).toMatchObject({ name: "source=web-1" });
    },
  );

  test("describes an entity that so far was only seen in events, whatever its time", async () => {
    const tenant = await bareTenant(sql);
    const dimensions = { source: "web-1" };
    await touchEntities(sql, tenant, [{ id: entityId(tenant, dimensions), dimensions, timestampMs: 9n * 60_000n }], 1);
    expect(await entity(tenant)).toMatchObject({ name: "source=web-1", model_ms: null });
    await putModels(sql, tenant, [model(10, { name: "a" })], 1);
    expect(await entity(tenant)).toMatchObject({ name: "a", model_ms: 10n, liveness_ms: 9n * 60_000n });
  });

  test("sent again writes no new row version; a newer one that says the same moves the times alone", async () => {
    const tenant = await bareTenant(sql);
    await putModels(sql, tenant, [model(10, { name: "a", rack: 1 })], 100);
    const first = await entity(tenant);
    // The order of its keys is none of its content.
    await putModels(sql, tenant, [model(10, { rack: 1, name: "a" })], 200);
    expect(await entity(tenant)).toEqual(first);
    await putModels(sql, tenant, [model(20, { name: "a", rack: 1 })], 200);
    expect(await entity(tenant)).toEqual({ ...first, model_ms: 20n, version: expect.anything() });
    await putModels(sql, tenant, [model(minute + 5, { name: "a", rack: 1 })], 300);
    expect(await entity(tenant)).toMatchObject({ liveness_ms: BigInt(minute), updated_ms: first?.updated_ms });
  });
});

describe("of models out of order", () => {
  test.each([
    ["an older name does not win", model(30, { name: "older" })],
    ["an older deletion does not delete", deletion(30)],
  ])("%s, judged by the newest model's time, also where that one changed nothing", async (_what, older) => {
    expect(await after([model(10, { name: "a" })], [model(40, { name: "a" })], [older])).toMatchObject({
      name: "a",
      deleted_ms: null,
      model_ms: 40n,
    });
  });

  test("a repeat counts as newest where points have moved the liveness on before it", async () => {
    const tenant = await bareTenant(sql);
    const dimensions = { source: "web-1" };
    await putModels(sql, tenant, [model(10, { name: "a" })], 1);
    const timestampMs = BigInt(3 * minute);
    await touchEntities(sql, tenant, [{ id: entityId(tenant, dimensions), dimensions, timestampMs }], 1);
    await putModels(sql, tenant, [model(2 * minute, { name: "a" })], 1);
    await putModels(sql, tenant, [model(minute, { name: "older" })], 1);
    expect(await entity(tenant)).toMatchObject({ name: "a", model_ms: BigInt(2 * minute), liveness_ms: timestampMs });
  });

  test("a repeat that was read before another name came wins over it by its time", async () => {
    const tenant = await bareTenant(sql);
    await putModels(sql, tenant, [model(10, { name: "a" })], 1);
    let repeated: Promise<unknown> = Promise.resolve();
    await transaction(sql, async (tx) => {
      await putModels(tx, tenant, [model(20, { name: "b" })], 1);
      // It reads what is committed, and waits for the lock.
      repeated = putModels(sql, tenant, [model(30, { name: "a" })], 1);
      await waiting();
    });
    await repeated;
    expect(await entity(tenant)).toMatchObject({ name: "a", model_ms: 30n });
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
    const tenant = await bareTenant(sql);
    const dimensions = { source: "web-1" };
    await putModels(sql, tenant, [model(10), deletion(20)], 100);
    await touchEntities(sql, tenant, [{ id: entityId(tenant, dimensions), dimensions, timestampMs: 999_999n }], 100);
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

  test("reports which living entities it created, described again or revived, in its transaction; repeats tell none", async () => {
    const tenant = await bareTenant(sql);
    const heard: string[][] = [];
    let now = 1_000_000;
    async function put(...models: ModelItem[]) {
      heard.length = 0;
      now += 1;
      await putModels(sql, tenant, models, now, async (tx, owner, ids) => {
        expect(owner).toBe(tenant);
        // Seen by the transaction itself, and by no one else yet.
        expect(
          await tx`select true from entities where tenant_id = ${tenant} and updated_ms = ${BigInt(now)}`,
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
    const tenant = await bareTenant(sql);
    const failing = putModels(sql, tenant, [model(10)], 100, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    expect(await entity(tenant)).toBeUndefined();
  });

  const anyModel = fc
    .record({ time: fc.integer({ min: 1, max: 6 }), kind: fc.constantFrom("a", "b", "delete") })
    .map(({ time, kind }) => (kind === "delete" ? deletion(time) : model(time, { name: kind })));

  test("ends as its items one by one", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyModel, { minLength: 1, maxLength: 8 }), async (items) => {
        const together = await after(items);
        const apart = await after(...items.map((each) => [each]));
        for (const key of ["metadata", "name", "deleted_ms"]) expect(together?.[key]).toEqual(apart?.[key]);
      }),
      { numRuns: cases(100) },
    );
  });

  test("of a thousand, sent at once by many clients in different orders, neither deadlocks nor loses one", async () => {
    const tenant = await bareTenant(sql);
    let begun = 0;
    const counting = new Proxy(sql, {
      get(target, name) {
        if (name === "begin") begun += 1;
        return Reflect.get(target, name);
      },
    });
    const clients = 8;
    // They make the entities, and then describe them again. A transaction that deadlocks would begin once more.
    for (const time of [10, 20]) {
      begun = 0;
      const models = Array.from({ length: 1000 }, (_, i) => model(time, { name: `n${i} ${time}` }, `s${i}`));
      await Promise.all(
        Array.from({ length: clients }, (_, i) =>
          putModels(counting, tenant, i % 2 ? models : models.toReversed(), 100),
        ),
      );
    }
    expect(begun).toBe(clients);
    const [{ count }] = await sql<[{ count: bigint }]>`select count(*) from entities where tenant_id = ${tenant}`;
    expect(Number(count)).toBe(1000);
  });
});

describe("the bound on a tenant's entities", () => {
  const bounds = { ...unbounded, entitiesMax: 3 };
  const reason = "the tenant has 3 entities, as many as BELFRY_ENTITIES_MAX allows";
  const put = (tenant: string, sources: string[], time = 10) =>
    putModels(
      sql,
      tenant,
      sources.map((source) => model(time, { time }, source)),
      1,
      undefined,
      undefined,
      bounds,
    );
  const counted = async (tenant: string) => {
    const [row] = await sql<[{ count: bigint; rows: bigint }]>`
      select (select count from tenant_counts where tenant_id = ${tenant} and what = 'entities') as count,
        (select count(*) from entities where tenant_id = ${tenant}) as rows`;
    return row;
  };

  test("refuses models of further ones by themselves; those that are there are described all the same", async () => {
    const tenant = await bareTenant(sql);
    expect(await put(tenant, ["a", "b"])).toEqual(new Map());
    const refused = await put(tenant, ["a", "c", "d", "b", "d"], 20);
    expect([...refused.values()]).toEqual([...refused].map(() => reason));
    expect(await counted(tenant)).toEqual({ count: 3n, rows: 3n });
    const rows = await sql`select from entities where tenant_id = ${tenant} and metadata = '{"time": 20}'`;
    expect(rows.count).toBe(3);
    expect(await put(tenant, ["a"], 30)).toEqual(new Map());
  });

  test("is not passed by several at once, nor by what is only seen", async () => {
    const tenant = await bareTenant(sql);
    const see = (source: string) =>
      touchEntities(
        sql,
        tenant,
        [{ id: entityId(tenant, { source }), dimensions: { source }, timestampMs: 1_000_000n }],
        1,
        undefined,
        bounds,
      );
    const puts = Array.from({ length: 6 }, (_, i) => put(tenant, [`m${i}`]));
    const sights = Array.from({ length: 6 }, (_, i) => see(`s${i}`));
    const refused = (await Promise.all(puts)).reduce((sum, { size }) => sum + size, 0);
    const unseen = (await Promise.all(sights)).reduce((sum, { length }) => sum + length, 0);
    expect(refused + unseen).toBe(9);
    expect(await counted(tenant)).toEqual({ count: 3n, rows: 3n });
  });

  test("leaves further names of fields out; a search that asks for them finds what has them", async () => {
    const tenant = await bareTenant(sql);
    const few = { ...unbounded, fieldsMax: 3 };
    await putModels(sql, tenant, [model(10, { a: 1, b: 1, c: 1 })], 1, undefined, undefined, few);
    await putModels(sql, tenant, [model(20, { a: 1, d: 1 }, "other")], 1, undefined, undefined, few);
    const rows = await sql`select source, key from entity_keys where tenant_id = ${tenant}`;
    expect(rows).toHaveLength(3);
    // The key may be one of those that were left out, so it is taken for one.
    expect(await metadataKeys(sql, tenant, ["d", "e"])).toEqual(new Set(["d", "e"]));
  });
});

describe("retention", () => {
  const day = 86_400_000;
  const now = 1000 * day;
  const world = async () => {
    const tenant = await bareTenant(sql);
    const used = new Set<string>();
    const id = (source: string) => entityId(tenant, { source });
    const retention = {
      idleSec: (30 * day) / 1000,
      deletedSec: (5 * day) / 1000,
      known: entityCache(),
      inUse: [
        async (_tx: unknown, _tenant: string, ids: readonly Buffer[]) =>
          ids.filter((each) => used.has(each.toString("hex"))),
      ],
    };
    return {
      tenant,
      id,
      use: (source: string) => used.add(id(source).toString("hex")),
      free: () => used.clear(),
      put: (source: string, ageDays: number, metadata = {}) =>
        putModels(sql, tenant, [model(now - ageDays * day, metadata, source)], now - ageDays * day),
      retain: (change = {}) =>
        transaction(sql, (tx) => retainEntities(tx, tenant, Buffer.alloc(0), { ...retention, ...change }, now)),
      async left() {
        const rows = await sql<{ source: string; deleted: boolean }[]>`
          select dimensions ->> 'source' as source, deleted_ms is not null as deleted from entities
          where tenant_id = ${tenant} order by 1`;
        return rows.map(({ source, deleted }) => (deleted ? `${source} deleted` : source));
      },
    };
  };

  test("removes what no data came of, and what was deleted; not what series or events need", async () => {
    const { put, retain, left, use, tenant } = await world();
    for (const source of ["idle", "idle, used"]) await put(source, 40);
    await put("lively", 20);
    for (const [source, age] of [
      ["deleted", 6],
      ["deleted, used", 6],
      ["deleted since", 4],
    ] as const) {
      await put(source, age + 1);
      await put(source, age, { _svc_deleted_entity: true });
    }
    use("idle, used");
    use("deleted, used");
    expect(await retain()).toBeUndefined();
    const kept = ["deleted since deleted", "deleted, used deleted", "idle, used deleted", "lively"];
    expect(await left()).toEqual(kept);
    await retain();
    expect(await left()).toEqual(kept);
    const [counts] = await sql`select count from tenant_counts where tenant_id = ${tenant} and what = 'entities'`;
    expect(counts).toEqual({ count: 4n });
  });

  test("that is off for idle ones leaves them", async () => {
    const { put, retain, left } = await world();
    await put("idle", 900);
    await retain({ idleSec: 0 });
    expect(await left()).toEqual(["idle"]);
  });

  test("any data bring back what had gone idle, unlike what a model has deleted", async () => {
    const { put, retain, left, use, free, id, tenant } = await world();
    for (const source of ["by a model", "by an event", "by points"]) {
      await put(source, 40);
      use(source);
    }
    await put("deleted", 41);
    await put("deleted", 40, { _svc_deleted_entity: true });
    use("deleted");
    await retain();
    expect(await left()).toEqual(["by a model deleted", "by an event deleted", "by points deleted", "deleted deleted"]);
    await put("by a model", 0);
    for (const source of ["by an event", "deleted"]) {
      await touchEntities(sql, tenant, [{ id: id(source), dimensions: { source }, timestampMs: BigInt(now) }], now);
    }
    const living = liveness(sql, minute, entityCache());
    for (const source of ["by points", "deleted"]) living.note(tenant, id(source), now);
    await living.stop();
    expect(await left()).toEqual(["by a model", "by an event", "by points", "deleted deleted"]);
    free();
    await retain();
    expect(await left()).toEqual(["by a model", "by an event", "by points"]);
  });
});
