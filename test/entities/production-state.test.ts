import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldKind, Order, SearchEntitiesRequestSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityId } from "../../src/entities/identity.ts";
import { lockProductionStates, setWindowStates } from "../../src/entities/production-state.ts";
import { searchEntities } from "../../src/entities/search.ts";
import { testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";
import { putModels } from "./stored.ts";

const { sql } = await testDatabase();
const nowMs = 1_000_000;

/** Three hosts: `a` without a state, `b` in test, `c` decommissioned. */
async function hosts() {
  const tenant = { id: await bareTenant(sql), name: "north" };
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
  const set = (states: Record<string, bigint | null>, options: { modelState?: bigint } = {}) =>
    setWindowStates(
      sql,
      tenant.id,
      Object.entries(states).map(([source, windowState]) => ({ id: idOf(source), windowState, ...options })),
      nowMs + 1,
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

  test("reports which entities are decommissioned, whatever a window says", async () => {
    const { tenant, set, idOf } = await hosts();
    await set({ c: 300n, b: -1n });
    const ids = ["a", "b", "c"].map(idOf);
    const locked = await transaction(sql, (tx) => lockProductionStates(tx, tenant.id, [...ids, idOf("unknown")]));
    expect(locked.filter(({ decommissioned }) => decommissioned).map(({ id }) => id)).toEqual([idOf("c")]);
    expect(locked.map(({ id }) => id)).toEqual(ids.sort(Buffer.compare));
  });

  test("may be left behind by a window in the model's place, until a model names another", async () => {
    const { states, set, put } = await hosts();
    await set({ b: 300n });
    await set({ b: null }, { modelState: 500n });
    expect(await states()).toEqual(["a 1000", "b 500"]);
    await put("b", { productionState: 400, priority: 5 }, nowMs + 1000);
    expect(await states()).toEqual(["a 1000", "b 500"]);
    await put("b", { productionState: 400, priority: 4 }, nowMs + 120_000);
    expect(await states()).toEqual(["a 1000", "b 500"]);
    await put("b", { productionState: 401, priority: 4 }, nowMs + 180_000);
    expect(await states()).toEqual(["a 1000", "b 401"]);
  });

  test("of another tenant's entity stays", async () => {
    const { states, set, idOf } = await hosts();
    expect(await set({ unknown: 300n })).toEqual([]);
    expect(await setWindowStates(sql, randomUUID(), [{ id: idOf("b"), windowState: 300n }], nowMs)).toEqual([]);
    expect(await states()).toEqual(["a 1000", "b 400"]);
  });

  test("comes to its end on a deleted entity, too, so that it is not there when the entity comes back", async () => {
    const { states, put, set } = await hosts();
    await set({ a: 300n });
    await put("a", { _svc_deleted_entity: true }, nowMs + 1000);
    await set({ a: null });
    await put("a", {}, nowMs + 2000);
    expect(await states()).toEqual(["a 1000", "b 400"]);
  });
});
