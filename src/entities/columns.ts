import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { beginsSql } from "../clause/code-point-order.ts";
import type { Condition, Field, Indexed } from "../clause/field.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { idIndex, idText, idTextSql } from "./identity.ts";
import type { EntityRow } from "./messages.ts";
import { priority, prioritySql, productionState, productionStateSql } from "./production-state.ts";
import { nameText } from "./texts.ts";

type Make = (tenantId: string, known: { tenantName?: string }) => Field<EntityRow>;

/** A condition on the name as the index over names answers it: compared as text alone. */
function nameIndex(db: Db, tenantId: string, condition: Condition): Indexed | undefined {
  const parts = condition.map((comparison): Fragment | undefined => {
    const { operation, value } = comparison;
    if (operation === Operation.OP_IN) {
      const texts = value.filter((item) => typeof item === "string");
      const others = value.some((item) => typeof item === "number");
      return others ? undefined : db`name = any(${textArray(texts)}::text[])`;
    }
    if (typeof value !== "string") return undefined;
    switch (operation) {
      case Operation.OP_EQUALS:
        return db`name = ${value}::text`;
      case Operation.OP_STARTS_WITH:
        return beginsSql(db, db`name`, value);
      case Operation.OP_GREATER:
        return db`name > ${value}::text`;
      case Operation.OP_GREATER_OR_EQ:
        return db`name >= ${value}::text`;
      case Operation.OP_LESS:
        return db`name < ${value}::text`;
      case Operation.OP_LESS_OR_EQ:
        return db`name <= ${value}::text`;
    }
    return undefined;
  });
  if (!parts.every((part) => part !== undefined)) return nameText(db, tenantId, condition);
  const isEqual = condition.some(({ operation }) => operation === Operation.OP_EQUALS || operation === Operation.OP_IN);
  return { sql: () => sqlJoin(db, parts, "and"), exact: true, broad: !isEqual, by: "entities_name" };
}

function number(column: (db: Db) => Fragment, get: (row: EntityRow) => bigint | null): Make {
  return () => ({
    type: "bigint",
    sql: column,
    get(row) {
      const value = get(row);
      return value === null ? undefined : Number(value);
    },
  });
}

/** The properties of entities that are no keys of a map, by their names. */
export const entityFields: ReadonlyMap<string, Make> = new Map<string, Make>([
  [
    "id",
    () => ({
      type: "text",
      sql: (db) => idTextSql(db, db`id`),
      get: ({ id }) => idText(id),
      index: (db, condition) => {
        const found = idIndex(db, db`id`, condition);
        return found && { ...found, by: "ids" };
      },
    }),
  ],
  [
    "name",
    (tenantId) => ({
      type: "text",
      sql: (db) => db`name`,
      get: ({ name }) => name,
      index: (db, asked) => nameIndex(db, tenantId, asked),
    }),
  ],
  [
    "tenant",
    (_tenantId, { tenantName = "" }) => ({
      type: "text",
      sql: (db) => db`${tenantName}::text`,
      get: () => tenantName,
    }),
  ],
  [
    "timestamp",
    number(
      (db) => db`model_ms`,
      ({ model_ms }) => model_ms,
    ),
  ],
  [
    "createTime",
    number(
      (db) => db`created_ms`,
      ({ created_ms }) => created_ms,
    ),
  ],
  [
    "updateTime",
    number(
      (db) => db`updated_ms`,
      ({ updated_ms }) => updated_ms,
    ),
  ],
  [
    "livenessTime",
    number(
      (db) => db`liveness_ms`,
      ({ liveness_ms }) => liveness_ms,
    ),
  ],
  ["productionState", number(productionStateSql, productionState)],
  ["priority", number(prioritySql, priority)],
  [
    "factIds",
    () => ({
      type: "json",
      sql: (db) => db`(case when model_ms is null then '[]' else jsonb_build_array(${idTextSql(db, db`id`)}) end)`,
      get: ({ id, model_ms }) => (model_ms === null ? [] : [idText(id)]),
    }),
  ],
]);

/** The names of all properties that are no keys of a map. */
export const columnNames: readonly string[] = [...entityFields.keys(), "schemaIds"];
