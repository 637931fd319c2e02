import type { EntityField } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import type { MetricEntry } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import type { Db } from "../db/connect.ts";
import { allEntries, getEntries } from "./entries.ts";
import { entityFields, metrics } from "./kinds.ts";

/** The entries of entity fields that are in effect for a tenant, by name. Names are spelled as in clauses. */
export function effectiveEntityFields(db: Db, tenantId: string): Promise<EntityField[]> {
  return allEntries(db, tenantId, entityFields, "TENANT");
}

/** The entries of these metrics that are in effect for a tenant, by their names; the layer of its own ones is TENANT. */
export async function effectiveMetrics(
  db: Db,
  tenantId: string,
  names: readonly string[],
): Promise<Map<string, MetricEntry>> {
  const entries = await getEntries(db, tenantId, metrics, "TENANT", names);
  return new Map(entries.map((entry) => [entry.name, entry]));
}
