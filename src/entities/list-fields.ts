import { create } from "@bufbuild/protobuf";
import {
  FieldSelection,
  type ListDefaultFieldsRequest,
  type ListDefaultFieldsResponse,
  ListDefaultFieldsResponseSchema,
} from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { effectiveEntityFields } from "../dictionary/entries.ts";
import { columnNames } from "./columns.ts";
import { isCoreKey } from "./core-properties.ts";
import { type KeySource, readKeys } from "./field-keys.ts";
import { fieldKey, PREFIXES } from "./fields.ts";

/** What a key is, in the words of the API. */
function sourceOf(name: string): string {
  const { kind } = fieldKey(name);
  return kind === "column" || kind === "bare" ? "property" : kind;
}

/** The spellings in clauses of a key that entities have. */
function spellings({ source, key }: { source: KeySource; key: string }): string[] {
  const core = source === "dimension" || (source === "metadata" && isCoreKey(key));
  return [PREFIXES[source] + key, ...(core ? [PREFIXES.coreProperty + key] : [])];
}

/**
 * The fields of entities, spelled as in clauses: what the dictionary describes, and the keys that entities of the tenant
 * have or had. All of them can be searched by.
 */
export async function listDefaultFields(
  db: Db,
  tenantId: string,
  { option }: ListDefaultFieldsRequest,
): Promise<ListDefaultFieldsResponse> {
  const [described, seen] = await Promise.all([effectiveEntityFields(db, tenantId), readKeys(db, tenantId)]);
  const names = new Set([...columnNames, ...described.map(({ name }) => name), ...seen.flatMap(spellings)]);
  const core = ["property", "coreProperty"];
  const listed = [...names]
    .map((name) => [name, sourceOf(name)] as const)
    .filter(([, source]) => option === FieldSelection.ALL || core.includes(source))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return create(ListDefaultFieldsResponseSchema, {
    fields: listed.map(([name]) => name),
    fieldSources: Object.fromEntries(listed),
  });
}
