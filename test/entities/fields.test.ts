import { randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { checkClause } from "../../src/clause/check.ts";
import { toPredicate } from "../../src/clause/to-predicate.ts";
import { toSql } from "../../src/clause/to-sql.ts";
import type { Db } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { lockEntities, writeCustomProperties } from "../../src/entities/custom-properties.ts";
import { metadataKeys } from "../../src/entities/field-keys.ts";
import { entityResolver } from "../../src/entities/fields.ts";
import { entityId, idText } from "../../src/entities/identity.ts";
import { matchingEntities } from "../../src/entities/matching.ts";
import type { EntityRow } from "../../src/entities/messages.ts";
import { setWindowStates } from "../../src/entities/production-state.ts";
import { unpaced } from "../../src/event-loop.ts";
import { cases } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { putModels } from "./stored.ts";

const { sql } = await testDatabase();
const tenant = randomUUID();

const texts = [
  "", "a", "A", "ab", "abc", "abc def", "ABC", "5", "5.0", "-5", "05", "1e3", "1e999", "true", "straße", "ſ", "Σίσυφος",
  'quo"ted', "back\\slash", "new\nline", "100%", "a_b", "it's", "'; drop table entities --", "😀😁", "\u0001x", "x & y | z",
  "k".repeat(63), "k".repeat(64), "k".repeat(65), "k".repeat(500), "😀".repeat(64), "😀".repeat(130), '"x": "y', '", "',
]; // biome-ignore format: a list of words
const numbers = [0, -0, 5, -5, 0.1, -0.1, 1000, 1e300, -1e300, 5e-324, 2 ** 53, 123.456, 1099.5];
const keys = [
  "source",
  "device",
  "type",
  "team",
  "k ey",
  'quo"te',
  "back\\",
  "it's",
  "😀",
  "l".repeat(100),
  "l".repeat(101),
];

const text = fc.constantFrom(...texts);
const number = fc.oneof(fc.constantFrom(...numbers), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer());
const scalar = fc.oneof(text, number, fc.boolean());
const value = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 2, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(null, {}, { a: 1 }, [["nested"]]) },
);
const object = (of: fc.Arbitrary<unknown>) => fc.dictionary(fc.constantFrom(...keys), of, { maxKeys: 6 });

const entity = fc.record({
  dimensions: object(text.map((each) => each || "-")),
  metadata: fc.tuple(
    object(value),
    fc.dictionary(fc.constantFrom("name", "priority", "_orgs_location", "parent"), value),
  ),
  custom: object(value.filter((each) => each !== null)),
});

async function store(): Promise<EntityRow[]> {
  const made = fc.sample(entity, { numRuns: 250, seed: 4 });
  const now = Date.now();
  const models = made.map(({ dimensions, metadata: [some, more] }, i) => ({
    timestampMs: BigInt(now),
    dimensions: { ...(dimensions as Record<string, string>), n: String(i) },
    metadata: { ...some, ...more },
  }));
  await putModels(sql, tenant, models, now);
  return await transaction(sql, async (tx) => {
    const ids = await tx<{ id: Buffer; n: string }[]>`
      select id, dimensions ->> 'n' as n from entities where tenant_id = ${tenant}`;
    const properties = ids.map(({ id, n }) => ({ id, properties: made[Number(n)]?.custom ?? {} }));
    await writeCustomProperties(tx, tenant, properties, now);
    const some = ids.filter(({ n }) => Number(n) % 3 === 0);
    await setWindowStates(
      tx,
      tenant,
      some.map(({ id, n }) => ({ id, windowState: BigInt(n) })),
      now,
    );
    return await lockEntities(
      tx,
      tenant,
      ids.map(({ id }) => id),
    );
  });
}

const field = fc.oneof(
  fc
    .tuple(
      fc.constantFrom("", "dimensions.", "coreProperties.", "customProperties.", "metadataFields."),
      fc.constantFrom(...keys, "n", "nowhere"),
    )
    .map((parts) => parts.join("")),
  fc.constantFrom(
    "name", "id", "tenant", "timestamp", "createTime", "updateTime", "livenessTime", "productionState", "priority", "schemaIds",
    "factIds", "coreProperties.name", "coreProperties._svc_schemaIds", "coreProperties._svc_direct_entity_id",
    "coreProperties._svc_tenant_id", "coreProperties._orgs_location", "_orgs_location", "coreProperties._svc_parent_entity_id",
  ), // biome-ignore format: a list of words
);

const wkt = (value: unknown): unknown => {
  if (typeof value === "string") return { kind: { case: "stringValue", value } };
  if (typeof value === "number") return { kind: { case: "numberValue", value } };
  if (typeof value === "boolean") return { kind: { case: "boolValue", value } };
  return { kind: { case: "listValue", value: { values: (value as unknown[]).map(wkt) } } };
};
const wanted = fc.oneof(
  scalar,
  text.map((each) => [...each].slice(0, 70).join("")),
);
const bound = fc.oneof(text, number);

type Init = MessageInitShape<typeof ClauseSchema>;
const filter = fc.oneof(
  fc.tuple(field, fc.constantFrom(Operation.OP_EQUALS, Operation.OP_NOT_EQUALS), wanted),
  fc.tuple(field, fc.constantFrom(Operation.OP_CONTAINS, Operation.OP_STARTS_WITH, Operation.OP_END_WITH, Operation.OP_TEXT, Operation.OP_NOT_CONTAINS), text),
  fc.tuple(field, fc.constantFrom(Operation.OP_GREATER, Operation.OP_GREATER_OR_EQ, Operation.OP_LESS, Operation.OP_LESS_OR_EQ), bound),
  fc.tuple(field, fc.constant(Operation.OP_EXISTS), fc.boolean()),
  fc.tuple(field, fc.constantFrom(Operation.OP_IN, Operation.OP_NOT_IN), fc.array(scalar, { maxLength: 4 })),
).map(([field, operation, value]): Init => ({ filter: { field, operation, value: wkt(value) as never } })); // biome-ignore format: a line an operation
const range = fc
  .record({ path: field, gte: bound, gt: bound, lte: bound, lt: bound }, { requiredKeys: ["path"] })
  .filter((made) => Object.keys(made).length > 1)
  .map(
    ({ path, ...bounds }): Init => ({
      range: { path, ...(Object.fromEntries(Object.entries(bounds).map(([key, each]) => [key, wkt(each)])) as object) },
    }),
  );
// Made when the rows are there; some ids come twice, some are of no row, some cannot be one.
const withIds = fc
  .array(fc.oneof({ weight: 5, arbitrary: fc.nat(250) }, fc.constantFrom(-1, -2)), { maxLength: 80 })
  .map((places): Init => {
    const unknown = idText(entityId(tenant, { source: "unknown" }));
    return {
      withIds: {
        ids: places
          .map((at) => rows[at]?.id ?? at)
          .map((id) => (typeof id !== "number" ? idText(id) : id === -1 ? unknown : unknown.slice(1))),
      },
    };
  });
const clause = fc.letrec<{ clause: Init; leaf: Init }>((tie) => ({
  leaf: fc.oneof({ weight: 6, arbitrary: filter }, { weight: 2, arbitrary: range }, withIds),
  clause: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    tie("leaf"),
    fc.array(tie("clause"), { minLength: 1, maxLength: 3 }).map((clauses): Init => ({ allOf: { clauses } })),
    fc.array(tie("clause"), { minLength: 1, maxLength: 3 }).map((clauses): Init => ({ anyOf: { clauses } })),
    tie("clause").map((inner): Init => ({ noneOf: { clause: inner } })),
  ),
})).clause;

let rows: EntityRow[];
beforeAll(async () => {
  rows = await store();
});

const keysOf = (ids: readonly { id: Buffer }[]) => ids.map(({ id }) => idText(id)).sort();

async function found(tx: Db, clause: Clause, known: object): Promise<string[]> {
  const resolver = entityResolver(tenant, known);
  const { from, sql } = matchingEntities(tx, tenant, checkClause(clause, "clause"), resolver);
  const found = keysOf(await tx<{ id: Buffer }[]>`select id from ${from} where ${sql}`);
  // As a condition alone, for who reads the rows in a way of his own.
  const matching = toSql(tx, clause, "clause", resolver);
  const alone = await tx<{ id: Buffer }[]>`
    select id from entities where tenant_id = ${tenant} and deleted_ms is null and ${matching}`;
  expect(keysOf(alone)).toEqual(found);
  return found;
}

test("indexes, rows and memory agree on every field and operation", async () => {
  const tenantName = "acme";
  const metadata = await metadataKeys(sql, tenant, [...keys, "n", "nowhere", "_orgs_location"]);
  await fc.assert(
    fc.asyncProperty(clause, async (init) => {
      const asked = create(ClauseSchema, init);
      const matches = toPredicate(asked, "clause", entityResolver(tenant, { tenantName }));
      const expected = keysOf(rows.filter((row) => matches(row, unpaced)));
      await transaction(sql, async (tx) => {
        await tx`set local enable_seqscan = off`;
        expect(await found(tx, asked, { tenantName, metadataKeys: metadata })).toEqual(expected);
        await tx`set local enable_bitmapscan = off`;
        await tx`set local enable_seqscan = on`;
        expect(await found(tx, asked, { tenantName })).toEqual(expected);
      });
    }),
    { numRuns: cases(120) },
  );
});

test("ids are looked up one by one, alone, beside another clause and within an `or`", async () => {
  const crowded = randomUUID();
  await sql`
    insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    select ${crowded}::uuid, substr(sha256(i::text::bytea), 1, 20), 'host ' || i, jsonb_build_object('source', 'host-' || i), '{}', 0, 0, ${Date.now()}
    from generate_series(1, 5000) as i`;
  await sql`analyze entities`;
  const ids = await sql<
    { id: Buffer }[]
  >`select id from entities where tenant_id = ${crowded} order by name limit 1000`;
  const withIds: Init = { withIds: { ids: ids.map(({ id }) => idText(id)) } };
  const other: Init = { filter: { field: "name", operation: Operation.OP_CONTAINS, value: wkt("host 1") as never } };
  // Its terms would be made again for each row.
  const broad: Init = {
    filter: { field: "dimensions.source", operation: Operation.OP_STARTS_WITH, value: wkt("host") as never },
  };
  const cases: [Init, string][] = [
    [withIds, "entities_id"],
    [{ allOf: { clauses: [withIds, broad] } }, "entities_id"],
    [{ allOf: { clauses: [withIds, other] } }, "entities_id"],
    [{ anyOf: { clauses: [withIds, other] } }, "entities_terms"],
  ];
  for (const [init, index] of cases) {
    const asked = create(ClauseSchema, init);
    const matching = matchingEntities(sql, crowded, checkClause(asked, "clause"), entityResolver(crowded));
    const alone = toSql(sql, asked, "clause", entityResolver(crowded));
    const plans = [
      await sql`explain select id from ${matching.from} where ${matching.sql}`,
      await sql`explain select id from entities where tenant_id = ${crowded} and deleted_ms is null and ${alone}`,
    ].map((plan) => plan.map((line) => line["QUERY PLAN"]).join("\n"));
    expect(plans[0]).toContain(index);
    if (index === "entities_id") expect(plans[0]).not.toContain("entity_terms");
    for (const plan of plans) expect(plan).not.toContain("Seq Scan");
  }
});
