import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type EntityGroup, EntityGroupSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Columns } from "../clause/field.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { invalidField } from "../errors.ts";
import type { MatchingEntities } from "./matching.ts";

const GROUPS_MAX = 10_000;

/**
 * Counts the matches by the values of fields, the largest groups first. A list counts in each of
 * its elements, a missing value is null.
 * @param path the fields' place in the request. @throws code 3 when there are more than 10,000 groups, or more bytes than an answer holds.
 */
export async function groupEntities(
  db: Db,
  { from, sql, few }: MatchingEntities,
  keys: readonly string[],
  columns: Columns,
  path: string,
  signal: AbortSignal,
): Promise<EntityGroup[]> {
  const names = keys.map((_, i) => db(`group_${i}`));
  const found = keys.map((key, i) => {
    const field = columns.field(key);
    const sql = field?.sql(db) ?? db`null::text`;
    const value = field?.type === "json" ? sql : db`to_jsonb(${sql})`;
    return db`${value} as ${db(`value_${i}`)}`;
  });
  const tables = names.map(
    (name, i) => db`left join lateral (
      select distinct nullif(item, 'null') as value from jsonb_path_query(${db(`value_${i}`)}, '$[*]') as listed (item)
    ) as ${name as never} on true`,
  );
  // Elements of lists seem this many that a scan of the whole table beside them looks as cheap as the index that finds few.
  const materialized = few ? db`materialized` : db`not materialized`;
  const values = sqlJoin(
    db,
    names.map((name) => db`${name}.value`),
    ",",
  );
  const missing = sqlJoin(
    db,
    names.map((name) => db`${name}.value is null`),
    ",",
  );
  const rows = await cancelOn(
    db<{ values: JsonValue[] | null; count: bigint }[]>`
      with matching as ${materialized} (
        select ${sqlJoin(db, found, ",")} from ${from} where ${sql}
      ), counted as (
        select jsonb_build_array(${values}) as values, jsonb_build_array(${missing}) as missing, count(*) as count
        from matching ${tables}
        group by 1, 2
        order by count desc, 2, 1 limit ${GROUPS_MAX + 1}
      ), sized as (select *, sum(pg_column_size(values)) over (order by count desc, missing, values) as bytes from counted)
      select case when bytes <= ${pageBytesMax} then values end as values, count from sized
      order by sized.count desc, sized.missing, sized.values`,
    signal,
  );
  if (rows.length > GROUPS_MAX) throw invalidField(path, `must make at most ${GROUPS_MAX} groups`, FieldRule.SIZE);
  if (rows.some(({ values }) => values === null)) {
    throw invalidField(path, `must make groups of at most ${pageBytesMax} bytes together`, FieldRule.SIZE);
  }
  return rows.map(({ values, count }) =>
    create(EntityGroupSchema, { values: (values ?? []).map((value) => fromJson(ValueSchema, value)), count }),
  );
}
