import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldKind, Order, SearchEntitiesRequestSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { entityId } from "../../src/entities/identity.ts";
import { putModels } from "../../src/entities/put.ts";
import { searchEntities } from "../../src/entities/search.ts";
import { setWindowStates } from "../../src/entities/state.ts";
import { testDatabase } from "../support/database.ts";

const { sql } = await testDatabase();
const nowMs = 1_000_000;

/** Three hosts: `a` without a state, `b` in test, `c` decommissioned. */
async function hosts() {
  const tenant = { id: randomUUID(), name: "north" };
  const idOf = (source: string) => entityId(tenant.id, { source });
  const put = (source: string, metadata: Record<string, unknown>, timeMs = nowMs) =>
    putModels(sql, tenant.id, [{ timestampMs: BigInt(timeMs), dimensions: { source }, metadata }], timeMs);
  await put("a", {});
  await put("b", { productionState: 400, priority: 5 });
  await put("c", { productionState: -1, priority: 0 });

  async function states(field = "productionState", value = 0) {
    const request = create(SearchEntitiesRequestSchema, {
      searchInput: {
        query: {
          clause: {
            filter: { field, operation: Operation.OP_GREATER_OR_EQ, value: { kind: { case: "numberValue", value } } },
          },
        },
        sortby: [{ fieldKind: FieldKind.PROPERTY, field, order: Order.DESCENDING }],
      },
    });
    const { entities } = await searchEntities(sql, tenant, request, AbortSignal.timeout(10_000));
    return entities?.entities.map(({ name, productionState }) => `${name.slice(-1)} ${productionState}`);
  }
  const set = (states: Record<string, bigint | null>, options: { force?: boolean; modelState?: bigint } = {}) =>
    setWindowStates(
      sql,
      tenant.id,
      Object.entries(states).map(([source, windowState]) => ({ id: idOf(source), windowState, ...options })),
      { nowMs: nowMs + 1, ...options },
    );
  return { tenant, idOf, put, states, set };
}

describe("the production state of an entity", () => {
  test("is that of its model, else 1000; it is found, ordered by and shown", async () => {
    const { states } = await hosts();
    expect(await states("productionState", -1)).toEqual(["a 1000", "b 400", "c -1"]);
    expect(await states("productionState", 400)).toEqual(["a 1000", "b 400"]);
    expect(await states("priority")).toEqual(["b 400", "a 1000", "c -1"]);
    expect(await states("priority", 3)).toEqual(["b 400", "a 1000"]);
  });

  test("is that of a window while it has one; then the model's again, the newest", async () => {
    const { states, set, put, idOf } = await hosts();
    expect(await set({ a: 300n, b: 300n })).toHaveLength(2);
    expect(await states()).toEqual(["a 300", "b 300"]);
    await put("b", { productionState: 500 }, nowMs + 1000);
    expect(await states()).toEqual(["a 300", "b 300"]);
    expect(await set({ a: 300n, b: null })).toEqual([idOf("b")]);
    expect(await states()).toEqual(["b 500", "a 300"]);
  });

  test("of a decommissioned entity changes only by force", async () => {
    const { states, set } = await hosts();
    expect(await set({ c: 300n })).toEqual([]);
    expect(await set({ c: 300n }, { force: true })).toHaveLength(1);
    expect(await states("productionState", 300)).toEqual(["a 1000", "b 400", "c 300"]);
  });

  test("may be left behind by a window in the model's place, until a changed model names one", async () => {
    const { states, set, put } = await hosts();
    await set({ b: 300n });
    await set({ b: null }, { modelState: 500n });
    expect(await states()).toEqual(["a 1000", "b 500"]);
    await put("b", { productionState: 400, priority: 5 }, nowMs + 1000);
    expect(await states()).toEqual(["a 1000", "b 500"]);
    await put("b", { productionState: 400, priority: 4 }, nowMs + 2000);
    expect(await states()).toEqual(["a 1000", "b 400"]);
  });

  test("of another tenant's or a deleted entity stays", async () => {
    const { states, put, set, idOf, tenant } = await hosts();
    await put("a", { _svc_deleted_entity: true }, nowMs + 1000);
    expect(await set({ a: 300n, unknown: 300n })).toEqual([]);
    expect(await setWindowStates(sql, randomUUID(), [{ id: idOf("b"), windowState: 300n }], { nowMs })).toEqual([]);
    expect(await states()).toEqual(["b 400"]);
    await put("a", {}, nowMs + 2000);
    expect(await states()).toEqual(["a 1000", "b 400"]);
    const [row] =
      await sql`select window_production_state from entities where tenant_id = ${tenant.id} and id = ${idOf("a")}`;
    expect(row).toEqual({ window_production_state: null });
  });
});
