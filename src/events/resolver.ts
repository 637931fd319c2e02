import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Condition, Field, FieldValue, Indexed, Resolver } from "../clause/field.ts";
import { byteaArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { coreProperties } from "../entities/core-properties.ts";
import { entityResolver } from "../entities/fields.ts";
import { idText, parseId } from "../entities/identity.ts";
import { nameText } from "../entities/texts.ts";
import {
  bareKeyOf,
  columnField,
  type EventField,
  type EventRow,
  eventField,
  labelValueSql,
  mapValue,
  toTexts,
} from "./fields.ts";
import { labelOf, labelView } from "./labels.ts";
import { occurrenceIdText, parseOccurrenceId } from "./occurrence-id.ts";

/** How clauses read occurrences: o in statements, with their event e and its entity n. */
export function eventResolver(tenantId: string): Resolver<EventRow> {
  return {
    field(key) {
      const field = eventField(key);
      if (field.kind !== "column") return mapField(tenantId, field);
      const column = columnField(tenantId, field.name);
      if (field.name === "lastSeen") return { ...column, index: seenIndex };
      if (field.name !== "entityName") return column;
      return { ...column, index: (db, condition) => entityNameIndex(db, tenantId, condition) };
    },
    withIds,
    idsOf: (row) => [idText(row.event_id), occurrenceIdText(row.event_id, row.number)],
  };
}

function withIds(db: Db, ids: readonly string[]): Fragment {
  const events = ids.flatMap((id) => parseId(id) ?? []);
  const occurrences = ids.flatMap((id) => parseOccurrenceId(id) ?? []);
  const ofEvents = db`o.event_id = any(${byteaArray(events)}::bytea[])`;
  if (occurrences.length === 0) return ofEvents;
  const eventIds = byteaArray(occurrences.map(({ eventId }) => eventId));
  const numbers = int4Array(occurrences.map(({ number }) => number));
  return db`(${ofEvents} or (o.event_id = any(${eventIds}::bytea[])
    and (o.event_id, o.number) in (select * from unnest(${eventIds}::bytea[], ${numbers}::int4[]))))`;
}

function mapField(tenantId: string, field: Exclude<EventField, { kind: "column" }>): Field<EventRow> {
  const { kind, key } = field;
  const sql = (db: Db) => mapValue(db, tenantId, field);
  switch (kind) {
    case "dimension":
      return {
        type: "text",
        sql: (db) => db`(n.dimensions ->> ${key}::text)`,
        get: (row) => own(row.entity_dimensions, key),
        index: (db, condition) => entityIndex(db, tenantId, `dimensions.${key}`, condition),
      };
    case "coreProperty":
      return {
        type: "json",
        sql,
        get: (row) => own(corePropertiesOf(row, tenantId), key),
        index: (db, condition) => entityIndex(db, tenantId, `coreProperties.${key}`, condition),
      };
    case "metadata":
      return { type: "json", sql, get: (row) => own(metadataOf(row), key) };
    case "label":
      return { type: "text", sql: (db) => labelValueSql(db, key), get: (row) => labelIn(row, key) };
    case "bare":
      return { type: "json", sql, get: (row) => own(row.entity_dimensions, key) ?? own(metadataOf(row), key) };
  }
}

/** The same as `labelValueSql`. */
function labelIn(row: EventRow, name: string): string | undefined {
  const labels = labelView({
    kind: "occurrence",
    event: toTexts({ alert_labels: null, ...row }),
    occurrence: row,
    dimensions: row.entity_dimensions,
  });
  const bare = bareKeyOf(name);
  const found = labelOf(labels, name) || (own(row.entity_dimensions, bare) ?? own(metadataOf(row), bare));
  return found === undefined || found === null || typeof found === "string"
    ? (found ?? undefined)
    : JSON.stringify(found);
}

const own = <T>(map: Record<string, T>, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined);
const metadataOf = (row: EventRow) => row.metadata as Record<string, FieldValue>;

function corePropertiesOf(row: EventRow, tenantId: string): Record<string, string[]> {
  return coreProperties({
    id: idText(row.entity_id),
    tenantId,
    name: row.entity_name,
    dimensions: row.entity_dimensions,
    metadata: row.entity_metadata,
  });
}

/** What is asked of an entity, by way of the index on entities. */
function entityIndex(db: Db, tenantId: string, key: string, condition: Condition): Indexed | undefined {
  const found = entityResolver(tenantId).field(key)?.index?.(db, condition);
  return found && { sql: () => ofEntities(db, tenantId, found.sql()), exact: found.exact };
}

/** Last sights by their five minutes: whole multiples of 300,000 ms. */
function seenIndex(db: Db, condition: Condition): Indexed | undefined {
  const parts = condition.map(({ operation, value }): Fragment | undefined => {
    if (typeof value !== "number" || !Number.isFinite(value)) return undefined;
    const slot = BigInt(Math.floor(Math.min(Math.max(value, -9e15), 9e15) / 300_000));
    switch (operation) {
      case Operation.OP_EQUALS:
        return db`o.seen_slot = ${slot}`;
      case Operation.OP_GREATER:
      case Operation.OP_GREATER_OR_EQ:
        return db`o.seen_slot >= ${slot}`;
      case Operation.OP_LESS:
      case Operation.OP_LESS_OR_EQ:
        return db`o.seen_slot <= ${slot}`;
    }
    return undefined;
  });
  if (!parts.every((part) => part !== undefined)) return undefined;
  return { sql: () => sqlJoin(db, parts, "and"), exact: false };
}

/** Names of entities by the terms of all, since the index on their order holds only those that live. */
function entityNameIndex(db: Db, tenantId: string, condition: Condition): Indexed | undefined {
  const found = nameText(db, tenantId, condition);
  return found && { sql: () => ofEntities(db, tenantId, found.sql()), exact: false };
}

function ofEntities(db: Db, tenantId: string, condition: Fragment): Fragment {
  return db`e.entity_id in (select id from entities where tenant_id = ${tenantId} and ${condition})`;
}
