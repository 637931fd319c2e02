import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { SeveritySchema, StatusSchema } from "#gen/belfry/events/v1/event_pb.ts";
import { beginsSql } from "../clause/code-point-order.ts";
import type { Condition, Field, FieldValue, Indexed } from "../clause/field.ts";
import { fieldDoubt } from "../clause/field-doubt.ts";
import { sortPieces } from "../clause/sort.ts";
import { jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { SortKey } from "../db/paging/keyset.ts";
import { eventIds, idIndex, idText, idTextSql } from "../entities/identity.ts";
import { labelSql } from "./labels.ts";
import type { OccurrenceRow } from "./rows.ts";

/** What a report says of the event itself; the same in all its occurrences. */
export interface EventTexts {
  readonly name: string;
  /** Distinguishes it from others of its name on its entity; absent or empty: nothing does. */
  readonly dedupKey?: string;
  /** The labels of the alert that it is, as they were sent; absent: it is none, or its metadata hold them whole. */
  readonly alertLabels?: Readonly<Record<string, string>>;
}

/** An event, whatever happens to it. */
export interface EventIdentity extends EventTexts {
  readonly id: Buffer;
  readonly entityId: Buffer;
}

/** Returns the texts of an event, or of the message in which agents send it. */
export const eventTexts = (event: EventTexts): EventTexts => ({ name: event.name, ...fromMore(moreOf(event)) });

/** Returns the event that texts are of, on the entity with these dimensions. */
export function identityOf(tenantId: string, dimensions: Record<string, string>, texts: EventTexts): EventIdentity {
  const { eventId: id, entityId } = eventIds(tenantId, dimensions, texts.name, texts.dedupKey);
  return { id, entityId, ...eventTexts(texts) };
}

/** Returns the texts beyond the name, in the order in which facts hold them (docs/formats/feed.md): add at the end. */
export const moreOf = ({ dedupKey = "", alertLabels }: EventTexts) => [dedupKey, alertLabels ?? null] as const;

/** Reads what `moreOf` returned, also on an older server, which lacks what was added since. */
export function fromMore([dedupKey, alertLabels]: readonly unknown[]): Omit<EventTexts, "name"> {
  const texts = { ...(dedupKey ? { dedupKey } : {}), ...(alertLabels ? { alertLabels } : {}) };
  return texts as Omit<EventTexts, "name">;
}

/** Columns of an event that rows of occurrences have. */
export interface EventColumns {
  event_name: string;
  dedup_key: string | null;
  entity_id: Buffer;
}

/** All columns of an event, but for its id. */
export interface IdentityColumns extends EventColumns {
  alert_labels: Readonly<Record<string, string>> | null;
}

/** EventColumns, from e. */
export const eventColumns = (db: Db) => db`e.name as event_name, e.dedup_key, e.entity_id`;
/** The same of a row that has them. */
export const eventColumnNames = (db: Db) => db`event_name, dedup_key, entity_id`;
/** IdentityColumns, from e. */
export const identityColumns = (db: Db) => db`${eventColumns(db)}, e.alert_labels`;

/** Columns of the texts in the table. */
export const textColumns = (db: Db) => db`name, dedup_key, alert_labels`;
/** Arrays of the same columns, for `unnest`. */
export const textArrays = (db: Db, events: readonly EventTexts[]) =>
  db`${textArray(events.map(({ name }) => name))}::text[],
    ${textArray(events.map(({ dedupKey }) => dedupKey || null))}::text[],
    ${jsonArray(events.map(({ alertLabels }) => alertLabels ?? null))}::json[]`;

/** Returns the texts of an event by its row. */
export function toTexts({ event_name, dedup_key, alert_labels }: IdentityColumns): EventTexts {
  return { name: event_name, ...fromMore([dedup_key, alert_labels]) };
}

/** Returns the event of a row. */
export function toIdentity(id: Buffer, row: IdentityColumns): EventIdentity {
  return { id, entityId: row.entity_id, ...toTexts(row) };
}

/** Returns the row of an event. */
export function toColumns({ entityId, name, dedupKey, alertLabels }: EventIdentity): IdentityColumns {
  return { event_name: name, dedup_key: dedupKey || null, alert_labels: alertLabels ?? null, entity_id: entityId };
}

/** An occurrence, with how many its event has. */
export type EventRow = OccurrenceRow & { count: bigint } & Partial<Pick<IdentityColumns, "alert_labels">>;

/** A field that is in a column: `id`s are texts to clauses, and bytes to the database. */
interface Column {
  /** Whether each instance has its own, its occurrence has one for all of them, or its event for all occurrences. */
  of: "instance" | "occurrence" | "event";
  type: "text" | "bigint" | "boolean" | "id";
  /** The expression it is read by: o occurrence, e event, n entity. A query in it names the tenant by its own parameter. */
  sql(db: Db, tenantId: string): Fragment;
  get(row: EventRow): FieldValue | undefined;
  numbers?: Readonly<Record<string, number>>;
  /** A text with an index by its beginning. */
  indexed?: true;
}

const numbersOf = ({ values }: { values: readonly { name: string; number: number }[] }) =>
  Object.fromEntries(values.map(({ name, number }) => [name, number]));

const columns = {
  id: { of: "event", type: "id", sql: (db) => db`o.event_id`, get: (row) => idText(row.event_id) },
  name: { of: "event", type: "text", indexed: true, sql: (db) => db`e.name`, get: (row) => row.event_name },
  dedupKey: {
    of: "event",
    type: "text",
    indexed: true,
    sql: (db) => db`e.dedup_key`,
    get: (row) => row.dedup_key ?? undefined,
  },
  type: { of: "occurrence", type: "text", sql: (db) => db`o.type`, get: (row) => row.type },
  summary: { of: "occurrence", type: "text", sql: (db) => db`o.summary`, get: (row) => row.summary },
  body: { of: "occurrence", type: "text", sql: (db) => db`o.body`, get: (row) => row.body },
  severity: {
    of: "instance",
    type: "bigint",
    sql: (db) => db`o.severity`,
    get: (row) => row.severity,
    numbers: numbersOf(SeveritySchema),
  },
  status: {
    of: "instance",
    type: "bigint",
    sql: (db) => db`o.status`,
    get: (row) => row.status,
    numbers: numbersOf(StatusSchema),
  },
  acknowledged: { of: "occurrence", type: "boolean", sql: (db) => db`o.acknowledged`, get: (row) => row.acknowledged },
  entity: { of: "event", type: "id", sql: (db) => db`e.entity_id`, get: (row) => idText(row.entity_id) },
  entityName: { of: "event", type: "text", sql: (db) => db`n.name`, get: (row) => row.entity_name },
  startTime: { of: "occurrence", type: "bigint", sql: (db) => db`o.start_ms`, get: (row) => Number(row.start_ms) },
  lastSeen: {
    of: "occurrence",
    type: "bigint",
    sql: (db) => db`o.last_seen_ms`,
    get: (row) => Number(row.last_seen_ms),
  },
  endTime: {
    of: "occurrence",
    type: "bigint",
    sql: (db) => db`o.end_ms`,
    get: (row) => (row.end_ms === null ? undefined : Number(row.end_ms)),
  },
  expiresAt: {
    of: "occurrence",
    type: "bigint",
    sql: (db) => db`o.expires_ms`,
    get: (row) => (row.expires_ms === null ? undefined : Number(row.expires_ms)),
  },
  instanceCount: {
    of: "occurrence",
    type: "bigint",
    sql: (db) => db`o.instance_count`,
    get: (row) => Number(row.instance_count),
  },
  count: {
    of: "occurrence",
    type: "bigint",
    sql: (db, tenantId) =>
      db`(select count(*) from occurrences c where c.tenant_id = ${tenantId} and c.event_id = o.event_id)`,
    get: (row) => Number(row.count),
  },
} satisfies Record<string, Column>;

export type ColumnField = keyof typeof columns;
/** The names of all columns. */
export const columnFields = Object.keys(columns) as ColumnField[];

const ofEvent = Object.entries<Column>(columns).filter(([, { of }]) => of === "event");

/** Returns those members of an event's message, occurrences aside, that are shown. */
export function eventMembers(
  row: EventRow,
  isShown: (name: ColumnField) => boolean,
): Partial<Record<ColumnField, string>> {
  const shown = ofEvent.filter(([name]) => isShown(name as ColumnField));
  return Object.fromEntries(shown.map(([name, { get }]) => [name, get(row)]));
}

/** Tells whether an instance has the field of this name without its occurrence. */
export function isOfInstance(name: string): boolean {
  const field = eventField(name);
  return field.kind === "column" && columns[field.name].of !== "occurrence";
}

/** What a field's name means: a column, a key of one of the maps, or a bare key: of the dimensions, else of the metadata. */
export type EventField =
  | { kind: "column"; name: ColumnField }
  | { kind: "dimension" | "metadata" | "coreProperty" | "label" | "bare"; key: string };

/** Stands before the name of a label. */
const labelsPrefix = "labels.";

const maps = [
  ["dimensions.", "dimension"],
  ["metadataFields.", "metadata"],
  ["coreProperties.", "coreProperty"],
  [labelsPrefix, "label"],
] as const;

/** What a field's name means. Every name means something; a key that an event does not have is a missing value. */
export function eventField(name: string): EventField {
  if (Object.hasOwn(columns, name)) return { kind: "column", name: name as ColumnField };
  for (const [prefix, kind] of maps) if (name.startsWith(prefix)) return { kind, key: name.slice(prefix.length) };
  return { kind: "bare", key: name };
}

/** Says which of these fields was hardly meant; empty: none, as far as names tell. */
export function eventFieldDoubt(names: readonly string[]): string {
  const keys = names.filter((name) => !name.startsWith("entity.") && eventField(name).kind === "bare");
  return fieldDoubt(keys, columnFields);
}

/** The column of a field, as the database has it: ids are bytes. */
export function fieldColumn(db: Db, tenantId: string, name: ColumnField): Fragment {
  return columns[name].sql(db, tenantId) as Fragment;
}

/** The numbers of a column that is an enumeration, by their names. */
export const columnNumbers = (name: ColumnField): Column["numbers"] => (columns[name] as Column).numbers;

/** A column as clauses read it. */
export function columnField(tenantId: string, name: ColumnField): Field<EventRow> {
  const { type, get, numbers, indexed }: Column = columns[name];
  const sql = (db: Db) => fieldColumn(db, tenantId, name);
  if (indexed) return { type: "text", sql, get, index: (db, condition) => textIndex(db, sql(db), condition) };
  if (type !== "id") return { type, sql, get, ...(numbers && { numbers }) };
  const index = (db: Db, condition: Condition) => idIndex(db, sql(db), condition);
  return { type: "text", sql: (db) => idTextSql(db, sql(db)), get, index };
}

/** A name or a key of events, each of which has an index. */
function textIndex(db: Db, column: Fragment, [only]: Condition): Indexed | undefined {
  if (only?.operation === Operation.OP_EQUALS && typeof only.value === "string")
    return { sql: () => db`${column} = ${only.value}::text`, exact: true };
  if (only?.operation !== Operation.OP_STARTS_WITH) return undefined;
  return { sql: () => beginsSql(db, column, only.value), exact: true };
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
    case "label":
      return db`to_jsonb(${labelValueSql(db, key)})`;
    case "bare":
      return db`coalesce(n.dimensions -> ${key}::text, o.metadata -> ${key}::text)`;
  }
}

/** The key of a label's field as it stands: a dimension or a metadata field may be called like it. */
export const bareKeyOf = (label: string) => `${labelsPrefix}${label}`;

/** The value of a label; where there is none, that of the key as it stands. */
export function labelValueSql(db: Db, name: string): Fragment {
  const bare = bareKeyOf(name);
  return db`coalesce(${labelSql(db, name)}, n.dimensions ->> ${bare}::text, o.metadata ->> ${bare}::text)`;
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
