import type { Fragment } from "postgres";
import { SeveritySchema, StatusSchema } from "#gen/belfry/events/v1/event_pb.ts";
import type { Condition, Field, FieldValue } from "../clause/field.ts";
import { sortPieces } from "../clause/sort.ts";
import type { Db } from "../db/connect.ts";
import type { SortKey } from "../db/paging/keyset.ts";
import { idIndex, idText, idTextSql } from "../entities/identity.ts";
import type { OccurrenceRow } from "./rows.ts";

/** An occurrence, with how many its event has. */
export type EventRow = OccurrenceRow & { count: bigint };

/** A field that is in a column: `id`s are texts to clauses, and bytes to the database. */
interface Column {
  type: "text" | "bigint" | "boolean" | "id";
  /** The expression it is read by: o occurrence, e event, n entity. A query in it names the tenant by its own parameter. */
  sql(db: Db, tenantId: string): Fragment;
  get(row: EventRow): FieldValue | undefined;
  numbers?: Readonly<Record<string, number>>;
}

const numbersOf = ({ values }: { values: readonly { name: string; number: number }[] }) =>
  Object.fromEntries(values.map(({ name, number }) => [name, number]));

const columns = {
  id: { type: "id", sql: (db) => db`o.event_id`, get: (row) => idText(row.event_id) },
  name: { type: "text", sql: (db) => db`e.name`, get: (row) => row.event_name },
  dedupKey: { type: "text", sql: (db) => db`e.dedup_key`, get: (row) => row.dedup_key ?? undefined },
  type: { type: "text", sql: (db) => db`o.type`, get: (row) => row.type },
  summary: { type: "text", sql: (db) => db`o.summary`, get: (row) => row.summary },
  body: { type: "text", sql: (db) => db`o.body`, get: (row) => row.body },
  severity: {
    type: "bigint",
    sql: (db) => db`o.severity`,
    get: (row) => row.severity,
    numbers: numbersOf(SeveritySchema),
  },
  status: { type: "bigint", sql: (db) => db`o.status`, get: (row) => row.status, numbers: numbersOf(StatusSchema) },
  acknowledged: { type: "boolean", sql: (db) => db`o.acknowledged`, get: (row) => row.acknowledged },
  entity: { type: "id", sql: (db) => db`e.entity_id`, get: (row) => idText(row.entity_id) },
  entityName: { type: "text", sql: (db) => db`n.name`, get: (row) => row.entity_name },
  startTime: { type: "bigint", sql: (db) => db`o.start_ms`, get: (row) => Number(row.start_ms) },
  lastSeen: { type: "bigint", sql: (db) => db`o.last_seen_ms`, get: (row) => Number(row.last_seen_ms) },
  endTime: {
    type: "bigint",
    sql: (db) => db`o.end_ms`,
    get: (row) => (row.end_ms === null ? undefined : Number(row.end_ms)),
  },
  expiresAt: {
    type: "bigint",
    sql: (db) => db`o.expires_ms`,
    get: (row) => (row.expires_ms === null ? undefined : Number(row.expires_ms)),
  },
  instanceCount: { type: "bigint", sql: (db) => db`o.instance_count`, get: (row) => Number(row.instance_count) },
  count: {
    type: "bigint",
    sql: (db, tenantId) =>
      db`(select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = o.event_id)`,
    get: (row) => Number(row.count),
  },
} satisfies Record<string, Column>;

export type ColumnField = keyof typeof columns;

/** What a field's name means: a column, a key of one of the maps, or a bare key: of the dimensions, else of the metadata. */
export type EventField =
  | { kind: "column"; name: ColumnField }
  | { kind: "dimension" | "metadata" | "coreProperty" | "bare"; key: string };

const maps = [
  ["dimensions.", "dimension"],
  ["metadataFields.", "metadata"],
  ["coreProperties.", "coreProperty"],
] as const;

/** What a field's name means. Every name means something; a key that an event does not have is a missing value. */
export function eventField(name: string): EventField {
  if (Object.hasOwn(columns, name)) return { kind: "column", name: name as ColumnField };
  for (const [prefix, kind] of maps) if (name.startsWith(prefix)) return { kind, key: name.slice(prefix.length) };
  return { kind: "bare", key: name };
}

/** Returns the column that a bare key is one letter away from, or differs from in case alone; undefined when none is. */
export function nearlyNamed(name: string): string | undefined {
  if (name.length < 4 || eventField(name).kind !== "bare") return undefined;
  return Object.keys(columns).find((known) => known.length >= 4 && isSlip(name.toLowerCase(), known.toLowerCase()));
}

/** Tells whether one letter more, less, other or exchanged with the next makes one text of the other. */
function isSlip(one: string, other: string): boolean {
  // Hardly anyone mistakes the first; `mount` is not meant for `count`.
  if (one[0] !== other[0]) return false;
  let from = 1;
  while (from < one.length && one[from] === other[from]) from++;
  const [rest, otherRest] = [one.slice(from), other.slice(from)];
  return (
    rest.slice(1) === otherRest.slice(1) ||
    rest.slice(1) === otherRest ||
    rest === otherRest.slice(1) ||
    (rest[0] === otherRest[1] && rest[1] === otherRest[0] && rest.slice(2) === otherRest.slice(2))
  );
}

/** The column of a field, as the database has it: ids are bytes. */
export function fieldColumn(db: Db, tenantId: string, name: ColumnField): Fragment {
  return columns[name].sql(db, tenantId) as Fragment;
}

/** A column as clauses read it. */
export function columnField(tenantId: string, name: ColumnField): Field<EventRow> {
  const { type, get, numbers }: Column = columns[name];
  const sql = (db: Db) => fieldColumn(db, tenantId, name);
  if (type !== "id") return { type, sql, get, ...(numbers && { numbers }) };
  const index = (db: Db, condition: Condition) => idIndex(db, sql(db), condition);
  return { type: "text", sql: (db) => idTextSql(db, sql(db)), get, index };
}

/** The value of a key of one of the maps: jsonb, null when there is none. */
export function mapValue(db: Db, tenantId: string, { kind, key }: Exclude<EventField, { kind: "column" }>): Fragment {
  switch (kind) {
    case "dimension":
      return db`(n.dimensions -> ${key}::text)`;
    case "metadata":
      return db`(o.metadata -> ${key}::text)`;
    case "coreProperty":
      return corePropertyValue(db, tenantId, key);
    case "bare":
      return db`coalesce(n.dimensions -> ${key}::text, o.metadata -> ${key}::text)`;
  }
}

function corePropertyValue(db: Db, tenantId: string, key: string): Fragment {
  switch (key) {
    case "name":
      return db`to_jsonb(n.name)`;
    case "_svc_direct_entity_id":
      return db`to_jsonb(${idTextSql(db, db`n.id` as Fragment)})`;
    case "_svc_tenant_id":
      return db`to_jsonb(${tenantId}::text)`;
    case "_svc_schemaIds":
      return db`coalesce(n.core_properties -> ${key}::text, '["Base.Entity"]')`;
    default:
      return db`coalesce(n.dimensions -> ${key}::text, n.core_properties -> ${key}::text)`;
  }
}

/** The keys that order occurrences by a field: numbers before text before booleans, a list by its first element. */
export function eventSortKeys(db: Db, tenantId: string, field: EventField, descending: boolean): SortKey[] {
  if (field.kind !== "column") {
    return sortPieces(db, { type: "json", sql: mapValue(db, tenantId, field) }, descending);
  }
  const { type }: Column = columns[field.name];
  const sql = fieldColumn(db, tenantId, field.name);
  if (type === "id") return sortPieces(db, { type: "text", sql: idTextSql(db, sql) }, descending);
  // Of a body its beginning: sort keys are in cursors.
  if (field.name === "body") return [{ expression: db`left(o.body, 255)`, type: "text", descending }];
  return [{ expression: sql, type, descending }];
}
