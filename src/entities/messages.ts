import { create } from "@bufbuild/protobuf";
import { type Entity, EntitySchema } from "#gen/belfry/entities/v1/entity_pb.ts";
import { coreProperties, schemaIds } from "./core-properties.ts";
import { idText } from "./identity.ts";

export interface EntityRow {
  id: Buffer;
  name: string;
  dimensions: Record<string, string>;
  metadata: Record<string, unknown>;
  model_ms: bigint | null;
  created_ms: bigint;
  updated_ms: bigint;
  liveness_ms: bigint;
}

const PRODUCTION = 1000n;
const PRIORITY = 3n;

function wholeNumber(value: unknown, fallback: bigint): bigint {
  return Number.isSafeInteger(value) ? BigInt(value as number) : fallback;
}

/** An entity as the API shows it. */
export function toEntity(row: EntityRow, tenant: { id: string; name: string }): Entity {
  const id = idText(row.id);
  return create(EntitySchema, {
    id,
    factIds: row.model_ms === null ? [] : [id],
    schemaIds: schemaIds(row.metadata),
    name: row.name,
    timestamp: row.model_ms ?? 0n,
    tenant: tenant.name,
    dimensions: row.dimensions,
    coreProperties: coreProperties({ ...row, id, tenantId: tenant.id }),
    createTime: row.created_ms,
    updateTime: row.updated_ms,
    productionState: wholeNumber(row.metadata.productionState, PRODUCTION),
    priority: wholeNumber(row.metadata.priority, PRIORITY),
    livenessTime: row.liveness_ms,
  });
}
