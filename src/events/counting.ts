import type { Fragment } from "postgres";
import type { EventQuery, EventField as NamedField } from "#gen/belfry/events/v1/query_service_pb.ts";
import { compareCodePoints } from "../clause/code-point-order.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { idText } from "../entities/identity.ts";
import { failedPrecondition } from "../errors.ts";
import { type ColumnField, type EventField, eventField, fieldColumn, mapValue } from "./fields.ts";
import { matchingInstances, matchingOccurrences } from "./matching.ts";

/** How many counts an answer may hold: values, or values in buckets. */
export const countsMax = 200_000;

/** How many occurrences, or instances, have this value of this field, in this bucket. */
export interface Count {
  field: string;
  value: string | number;
  /** Start of the bucket, ms since the epoch; 0 when nothing was asked about buckets. */
  bucketMs: bigint;
  count: bigint;
}

interface Question {
  query: EventQuery;
  /** Names of fields, each once. Without any there is one field, `total`, whose value is 0. */
  fields: readonly string[];
  countInstances: boolean;
  /** Length of a bucket, ms. Undefined: no buckets. */
  bucketMs?: bigint;
}

/** The names of these fields, each once. */
export function fieldNames(...lists: readonly NamedField[][]): string[] {
  return [...new Set(lists.flat().map(({ field }) => field))];
}

/** The keys of an answer: the fields, or `total` without any. */
export const namesOf = (fields: readonly string[]) => (fields.length === 0 ? ["total"] : fields);

/**
 * Counts by the values of fields, in the order of the fields, then of values: numbers, then texts by code point. A list
 * counts for each of its elements, a missing value for none.
 * @throws code 9 when there are more than `countsMax` counts
 */
export async function readCounts(db: Db, tenantId: string, question: Question, signal: AbortSignal): Promise<Count[]> {
  const { fields } = question;
  const kinds = fields.map((name) => ({ name, field: eventField(name) }));
  const columns = kinds.flatMap(({ name, field }) => (field.kind === "column" ? [{ name, field: field.name }] : []));
  const counts: Count[] = [];
  if (columns.length > 0 || fields.length === 0) {
    counts.push(...(await countColumns(db, tenantId, question, columns, signal)));
  }
  for (const { name, field } of kinds) {
    if (field.kind !== "column") counts.push(...(await countElements(db, tenantId, question, name, field, signal)));
  }
  if (counts.length > countsMax) throw tooManyCounts();
  // Without rows there is no group.
  if (fields.length === 0 && counts.length === 0) counts.push({ field: "total", value: 0, bucketMs: 0n, count: 0n });
  const order = new Map(fields.map((name, i) => [name, i]));
  return counts.sort(
    (a, b) => (order.get(a.field) ?? 0) - (order.get(b.field) ?? 0) || compareValues(a.value, b.value),
  );
}

/** Code 9: the answer would not fit. */
export const tooManyCounts = () =>
  failedPrecondition(`there are more than ${countsMax} counts: ask for fewer fields or buckets, or for a shorter time`);

function compareValues(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return compareCodePoints(a, b);
  return typeof a === "number" ? -1 : 1;
}

function rowsOf(db: Db, tenantId: string, { query, fields, countInstances, bucketMs }: Question) {
  const matching = countInstances
    ? matchingInstances(db, tenantId, query, "query", fields)
    : matchingOccurrences(db, tenantId, query, "query");
  const bucket =
    bucketMs === undefined ? db`0::bigint` : db`${matching.timeMs} - ${matching.timeMs} % ${bucketMs}::bigint`;
  return { ...matching, bucket };
}

/** All fields that stand in columns, in one pass over the rows. */
async function countColumns(
  db: Db,
  tenantId: string,
  question: Question,
  fields: { name: string; field: ColumnField }[],
  signal: AbortSignal,
): Promise<Count[]> {
  const { from, where, bucket } = rowsOf(db, tenantId, question);
  const names = fields.map((_, i) => db`${db(`value_${i}`)}`);
  const values = fields.map(({ field }, i) => db`${fieldColumn(db, field)} as ${names[i] as Fragment}`);
  // A constant bucket would be hashed with each row.
  const buckets = question.bucketMs === undefined ? [] : [db`bucket`];
  const sets = names.map((name) => db`(${list(db, [...buckets, name])})`);
  const [select, by] =
    fields.length === 0
      ? [db`0 as grouped`, db`(${buckets.length === 0 ? db`` : db`bucket`})`]
      : [db`grouping(${list(db, names)}) as grouped, ${list(db, names)}`, db`grouping sets (${list(db, sets)})`];
  const statement = db<Record<string, unknown>[]>`
    select count(*) as count, ${buckets.length === 0 ? db`0::bigint as bucket` : db`bucket`}, ${select}
    from (select ${list(db, [db`${bucket} as bucket`, ...values])} from ${from} where ${where}) as found
    group by ${by}
    limit ${countsMax + 1}`;
  const rows = await cancelOn(statement, signal);
  return rows.flatMap((row) => {
    // A bit of `grouped` is set for each field that the row does not group by, the first field's is the highest.
    const i = fields.findIndex((_, n) => (Number(row.grouped) & (1 << (fields.length - 1 - n))) === 0);
    const value = fields.length === 0 ? 0 : valueOf(row[`value_${i}`]);
    if (value === undefined) return [];
    const field = fields[i]?.name ?? "total";
    return [{ field, value, bucketMs: row.bucket as bigint, count: row.count as bigint }];
  });
}

const list = (db: Db, parts: readonly Fragment[]) => parts.reduce((left, right) => db`${left}, ${right}`);

/** A key of a map: its value may be a list. */
async function countElements(
  db: Db,
  tenantId: string,
  question: Question,
  name: string,
  field: Exclude<EventField, { kind: "column" }>,
  signal: AbortSignal,
): Promise<Count[]> {
  const { from, where, bucket } = rowsOf(db, tenantId, question);
  const statement = db<{ bucket: bigint; value: unknown; count: bigint }[]>`
    select bucket, element as value, count(*) as count
    from (select ${bucket} as bucket, ${mapValue(db, tenantId, field)} as value from ${from} where ${where}) as found
      cross join lateral jsonb_array_elements(
        case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end
      ) as elements (element)
    where value is not null and jsonb_typeof(element) in ('string', 'number', 'boolean')
    group by bucket, element
    limit ${countsMax + 1}`;
  const rows = await cancelOn(statement, signal);
  return rows.flatMap((row) => {
    const value = valueOf(row.value);
    return value === undefined ? [] : [{ field: name, value, bucketMs: row.bucket, count: row.count }];
  });
}

function valueOf(value: unknown): string | number | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "number" || typeof value === "string") return value;
  if (typeof value === "bigint") return Number(value);
  return value instanceof Uint8Array ? idText(Buffer.from(value)) : String(value);
}
