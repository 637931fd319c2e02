import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type EntityGroup, EntityGroupSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import type { Columns } from "../clause/field.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { joined } from "../db/joined.ts";
import { invalidField } from "../errors.ts";
import type { Matching } from "./matching.ts";

const GROUPS_MAX = 10_000;

/**
 * Counts the matches by the values of fields, the largest groups first. A list counts in each of
 * its elements, a missing value is null.
 * @param path the fields' place in the request. @throws code 3 when there are more than 10,000 groups.
 */
export async function groupEntities(
  db: Db,
  { from, sql }: Matching,
  keys: readonly string[],
  columns: Columns,
  path: string,
  signal: AbortSignal,
): Promise<EntityGroup[]> {
  const names = keys.map((_, i) => db(`group_${i}`));
  const tables = keys.map((key, i) => {
    const field = columns.field(key);
    const sql = field?.sql(db) ?? db`null::text`;
    const value = field?.type === "json" ? sql : db`to_jsonb(${sql})`;
    return db`left join lateral (
      select distinct nullif(item, 'null') as value from jsonb_path_query(${value}, '$[*]') as listed (item)
    ) as ${names[i] as never} on true`;
  });
  const values = joined(
    db,
    names.map((name) => db`${name}.value`),
    ",",
  );
  const missing = joined(
    db,
    names.map((name) => db`${name}.value is null`),
    ",",
  );
  const rows = await cancelOn(
    db<{ values: JsonValue[]; count: bigint }[]>`
      select jsonb_build_array(${values}) as values, count(*) as count
      from ${from} ${tables}
      where ${sql}
      group by 1, jsonb_build_array(${missing})
      order by count desc, jsonb_build_array(${missing}), 1 limit ${GROUPS_MAX + 1}`,
    signal,
  );
  if (rows.length > GROUPS_MAX) throw invalidField(path, `must make at most ${GROUPS_MAX} groups`);
  return rows.map(({ values, count }) =>
    create(EntityGroupSchema, { values: values.map((value) => fromJson(ValueSchema, value)), count }),
  );
}
