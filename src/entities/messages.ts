import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type Entity, EntitySchema } from "#gen/belfry/entities/v1/entity_pb.ts";
import type { Field } from "../clause/field.ts";
import { coreProperties, schemaIds } from "./core-properties.ts";
import { idText } from "./identity.ts";
import { PRIORITY, PRODUCTION, wholeNumber } from "./state.ts";

export interface EntityRow {
  id: Buffer;
  name: string;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
  custom_properties: Record<string, unknown>;
  model_ms: bigint | null;
  created_ms: bigint;
  updated_ms: bigint;
  liveness_ms: bigint;
}

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
  const id = idText(row.id);
  const custom = row.custom_properties as JsonObject;
  return create(EntitySchema, {
    id,
    factIds: row.model_ms === null ? [] : [id],
    schemaIds: schemaIds(row.metadata),
    name: row.name,
    timestamp: row.model_ms ?? 0n,
    tenant: tenant.name,
    ...(chosen.length > 0 && { fields: valuesOf(row, chosen) }),
    dimensions: row.dimensions,
    coreProperties: coreProperties({ ...row, id, tenantId: tenant.id }),
    createTime: row.created_ms,
    updateTime: row.updated_ms,
    productionState: wholeNumber(row.metadata.productionState, PRODUCTION),
    priority: wholeNumber(row.metadata.priority, PRIORITY),
    livenessTime: row.liveness_ms,
    ...(Object.keys(custom).length > 0 && { customProperties: custom }),
  });
}
