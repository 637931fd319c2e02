import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { type Query, QuerySchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type CustomPropertyUpdater,
  CustomPropertyUpdaterSchema,
} from "#gen/belfry/properties/v1/custom_property_updater_pb.ts";

export interface UpdaterRow {
  id: string;
  name: string;
  description: string;
  entityInput: JsonValue;
  properties: JsonObject;
  enabled: boolean;
  sequence: number;
  tags: string[];
}

/** The query of an updater, as it is stored. */
export function toQuery(stored: JsonValue): Query {
  return fromJson(QuerySchema, stored);
}

/** An updater as the API shows it. */
export function toUpdater(row: UpdaterRow): CustomPropertyUpdater {
  return create(CustomPropertyUpdaterSchema, {
    id: row.id,
    name: row.name,
    description: row.description,
    entityInput: toQuery(row.entityInput),
    properties: row.properties,
    enabled: row.enabled,
    sequence: row.sequence,
    tags: row.tags,
  });
}
