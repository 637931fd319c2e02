import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import { type Entity, EntitySchema } from "#gen/belfry/entities/v1/entity_pb.ts";
import type { Field } from "../clause/field.ts";
import type { Db } from "../db/connect.ts";
import { coreProperties, schemaIds } from "./core-properties.ts";
import { displayName } from "./display-name.ts";
import { idText } from "./identity.ts";
import { priority, productionState } from "./production-state.ts";

export interface EntityRow {
  id: Buffer;
  name: string;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
  custom_properties: Record<string, unknown>;
  /** What its model names, and what a maintenance window gives. */
  model_production_state: bigint | null;
  window_production_state: bigint | null;
  priority: bigint | null;
  model_ms: bigint | null;
  created_ms: bigint;
  updated_ms: bigint;
  liveness_ms: bigint;
}

/** The columns of an `EntityRow`. */
export const entityColumns = (db: Db): Fragment =>
  db`id, name, dimensions, metadata, custom_properties, model_production_state, window_production_state, priority,
    model_ms, created_ms, updated_ms, liveness_ms`;

/** Fields that a search asked for, by their keys; undefined: a key that names none. */
export type ChosenFields = readonly (readonly [string, Field<EntityRow> | undefined])[];

/** The values of fields, of those that the entity has. */
function valuesOf(row: EntityRow, fields: ChosenFields): JsonObject {
  return Object.fromEntries(
    fields.flatMap(([key, field]): [string, JsonValue][] => {
      const value = field?.get(row) ?? null;
      return value === null ? [] : [[key, value as JsonValue]];
    }),
  );
}

/** An entity as the API shows it, with the fields that were chosen. */
export function toEntity(row: EntityRow, tenant: { id: string; name: string }, chosen: ChosenFields = []): Entity {
  const { name, dimensions, metadata, custom_properties } = row;
  // Set one by one: pages hold many, and create() would copy an initialiser field by field.
  const entity = create(EntitySchema);
  entity.id = idText(row.id);
  if (row.model_ms !== null) entity.factIds = [entity.id];
  entity.schemaIds = schemaIds(metadata);
  entity.name = name;
  entity.displayName = displayName(name, dimensions);
  entity.timestamp = row.model_ms ?? 0n;
  entity.tenant = tenant.name;
  if (chosen.length > 0) entity.fields = valuesOf(row, chosen);
  entity.dimensions = dimensions;
  entity.coreProperties = coreProperties({ id: entity.id, tenantId: tenant.id, name, dimensions, metadata });
  entity.createTime = row.created_ms;
  entity.updateTime = row.updated_ms;
  entity.productionState = productionState(row);
  entity.priority = priority(row);
  entity.livenessTime = row.liveness_ms;
  if (Object.keys(custom_properties).length > 0) entity.customProperties = custom_properties as JsonObject;
  return entity;
}
