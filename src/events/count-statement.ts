import type { Fragment } from "postgres";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { EventQuery, EventField as NamedField } from "#gen/belfry/events/v1/query_service_pb.ts";
import { compareCodePoints } from "../clause/code-point-order.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { pageBytesMax } from "../db/paging/page-contents.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { idText } from "../entities/identity.ts";
import { failedPrecondition, invalidField } from "../errors.ts";
import { type ColumnField, type EventField, eventField, fieldColumn, mapValue } from "./fields.ts";
import { type MatchingOccurrences, matchingInstances, matchingOccurrences } from "./matching.ts";

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
export const groupNamesOf = (fields: readonly string[]) => (fields.length === 0 ? ["total"] : fields);

/**
 * Counts by the values of fields, in the order of the fields, then of values: numbers, then texts by code point. A list
 * counts for each of its elements, a missing value for none.
 * @throws code 9 when there are more than `countsMax` counts; code 3 when their values hold more bytes than an answer may
 */
export async function countByGroup(
  db: Db,
  tenantId: string,
  question: Question,
  signal: AbortSignal,
): Promise<Count[]> {
  const { query, fields, countInstances } = question;
  const matching = countInstances
    ? matchingInstances(db, tenantId, query, "query", fields)
    : await matchingOccurrences(db, tenantId, query, "query", signal);
  const kinds = fields.map((name) => ({ name, field: eventField(name) }));
  const columns = kinds.flatMap(({ name, field }) => (field.kind === "column" ? [{ name, field: field.name }] : []));
  const counts: Count[] = [];
  let bytes = 0;
  const add = (found: Counted) => {
    bytes += found.bytes;
    if (bytes > pageBytesMax) throw tooLargeValues();
    for (const count of found.counts) counts.push(count);
    if (counts.length > countsMax) throw tooManyCounts();
  };
  if (columns.length > 0 || fields.length === 0)
    add(await countColumns(db, tenantId, question, matching, columns, signal));
  for (const { name, field } of kinds) {
    if (field.kind !== "column") add(await countElements(db, tenantId, question, matching, { name, field }, signal));
  }
  // Without rows there is no group.
  if (fields.length === 0 && counts.length === 0) counts.push({ field: "total", value: 0, bucketMs: 0n, count: 0n });
  const order = new Map(fields.map((name, i) => [name, i]));
  return counts.sort(
    (a, b) => (order.get(a.field) ?? 0) - (order.get(b.field) ?? 0) || compareValues(a.value, b.value),
  );
}

/** Code 9: the answer would not fit. */
export const tooManyCounts = () =>
  failedPrecondition(
    `there are more than ${countsMax} counts: ask for fewer fields or buckets, or for a shorter time`,
    ErrorReason.ANSWER_TOO_LARGE,
  );

const tooLargeValues = () =>
  invalidField("fields", `must have values of at most ${pageBytesMax} bytes together`, FieldRule.SIZE);

function compareValues(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return compareCodePoints(a, b);
  return typeof a === "number" ? -1 : 1;
}

/** Start of the bucket that a row counts in. */
const bucketOf = (db: Db, { bucketMs }: Question, { timeMs }: MatchingOccurrences) =>
  bucketMs === undefined ? db`0::bigint` : db`${timeMs} - ${timeMs} % ${bucketMs}::bigint`;

/** What a statement has counted, and the bytes of its values, each once. */
interface Counted {
  counts: Count[];
  bytes: number;
}

/** A value with its buckets, and the bytes of all of them; the value is null when they are more than an answer holds. */
type ValueRow = Record<string, unknown> & { buckets: bigint[]; counts: bigint[]; bytes: number };

/** The rows of `counted` (bucket, count, and these columns) by their values, each of which is read once. */
async function byValue(
  db: Db,
  counted: Fragment,
  keys: readonly Fragment[],
  values: readonly Fragment[],
  signal: AbortSignal,
): Promise<ValueRow[]> {
  const columns = [...keys, ...values];
  const shown = values.map((value) => db`case when bytes <= ${pageBytesMax} then ${value} end as ${value}`);
  const statement = db<ValueRow[]>`
    with counted as (${counted}), listed as (
      select ${list(db, [...columns, db`array_agg(bucket) as buckets`])}, array_agg(count) as counts,
        sum(octet_length(concat(${list(db, [db`''`, ...values])}))) over () as bytes
      from counted group by ${list(db, columns)}
    )
    select ${list(db, [...keys, ...shown, db`buckets`])}, counts, bytes::float8 as bytes from listed`;
  return await cancelOn(statement, signal);
}

function countedOf(rows: readonly ValueRow[], fieldOf: (row: ValueRow) => { field: string; value: unknown }): Counted {
  const bytes = rows[0]?.bytes ?? 0;
  if (bytes > pageBytesMax) throw tooLargeValues();
  const counts = rows.flatMap((row) => {
    const { field, value: found } = fieldOf(row);
    const value = valueOf(found);
    if (value === undefined) return [];
    return row.buckets.map((bucketMs, i) => ({ field, value, bucketMs, count: row.counts[i] ?? 0n }));
  });
  return { counts, bytes };
}

/** All fields that are in columns, in one pass over the rows. */
async function countColumns(
  db: Db,
  tenantId: string,
  question: Question,
  matching: MatchingOccurrences,
  fields: { name: string; field: ColumnField }[],
  signal: AbortSignal,
): Promise<Counted> {
  const { from, where } = matching;
  const bucket = bucketOf(db, question, matching);
  const names = fields.map((_, i) => db`${db(`value_${i}`)}`);
  const values = fields.map(({ field }, i) => db`${fieldColumn(db, tenantId, field)} as ${names[i] as Fragment}`);
  // A constant bucket would be hashed with each row.
  const buckets = question.bucketMs === undefined ? [] : [db`bucket`];
  const sets = names.map((name) => db`(${list(db, [...buckets, name])})`);
  const [select, by] =
    fields.length === 0
      ? [db`0 as grouped`, db`(${buckets.length === 0 ? db`` : db`bucket`})`]
      : [db`grouping(${list(db, names)}) as grouped, ${list(db, names)}`, db`grouping sets (${list(db, sets)})`];
  const counted = db`
    select count(*) as count, ${buckets.length === 0 ? db`0::bigint as bucket` : db`bucket`}, ${select}
    from (select ${list(db, [db`${bucket} as bucket`, ...values])} from ${from} where ${where}) as found
    group by ${by}
    limit ${countsMax + 1}`;
  const rows = await byValue(db, counted as Fragment, [db`grouped`], names, signal);
  return countedOf(rows, (row) => {
    // A bit of `grouped` is set for each field that the row does not group by, the first field's is the highest.
    const i = fields.findIndex((_, n) => (Number(row.grouped) & (1 << (fields.length - 1 - n))) === 0);
    return { field: fields[i]?.name ?? "total", value: fields.length === 0 ? 0 : row[`value_${i}`] };
  });
}

const list = (db: Db, parts: readonly Fragment[]) => sqlJoin(db, parts, ",");

/** A key of a map: its value may be a list. */
async function countElements(
  db: Db,
  tenantId: string,
  question: Question,
  matching: MatchingOccurrences,
  { name, field }: { name: string; field: Exclude<EventField, { kind: "column" }> },
  signal: AbortSignal,
): Promise<Counted> {
  const { from, where } = matching;
  const bucket = bucketOf(db, question, matching);
  const counted = db`
    select bucket, element, count(*) as count
    from (select ${bucket} as bucket, ${mapValue(db, tenantId, field)} as value from ${from} where ${where}) as found
      cross join lateral jsonb_array_elements(
        case jsonb_typeof(value) when 'array' then value else jsonb_build_array(value) end
      ) as elements (element)
    where value is not null and jsonb_typeof(element) in ('string', 'number', 'boolean')
    group by bucket, element
    limit ${countsMax + 1}`;
  const rows = await byValue(db, counted as Fragment, [], [db`element`], signal);
  return countedOf(rows, ({ element }) => ({ field: name, value: element }));
}

function valueOf(value: unknown): string | number | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value === "number" || typeof value === "string") return value;
  if (typeof value === "bigint") return Number(value);
  return value instanceof Uint8Array ? idText(Buffer.from(value)) : String(value);
}
