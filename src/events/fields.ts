import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import type { SortKey } from "../db/keyset.ts";

/** The event fields that stand in columns, with the expression they are read by: o occurrence, e event, n entity. */
const columns = {
  id: { type: "bytea", sql: (db: Db) => db`o.event_id` },
  name: { type: "text", sql: (db: Db) => db`e.name` },
  type: { type: "text", sql: (db: Db) => db`o.type` },
  summary: { type: "text", sql: (db: Db) => db`o.summary` },
  // Its beginning: sort keys stand in cursors.
  body: { type: "text", sql: (db: Db) => db`left(o.body, 255)` },
  severity: { type: "bigint", sql: (db: Db) => db`o.severity` },
  status: { type: "bigint", sql: (db: Db) => db`o.status` },
  acknowledged: { type: "boolean", sql: (db: Db) => db`o.acknowledged` },
  entity: { type: "bytea", sql: (db: Db) => db`e.entity_id` },
  entityName: { type: "text", sql: (db: Db) => db`n.name` },
  startTime: { type: "bigint", sql: (db: Db) => db`o.start_ms` },
  lastSeen: { type: "bigint", sql: (db: Db) => db`o.last_seen_ms` },
  endTime: { type: "bigint", sql: (db: Db) => db`o.end_ms` },
  instanceCount: { type: "bigint", sql: (db: Db) => db`o.instance_count` },
  count: {
    type: "bigint",
    sql: (db: Db) =>
      db`(select count(*) from occurrences c where c.tenant_id = o.tenant_id and c.event_id = o.event_id)`,
  },
} satisfies Record<string, { type: SortKey["type"]; sql: (db: Db) => Fragment }>;

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

function jsonValue(db: Db, { kind, key }: Exclude<EventField, { kind: "column" }>): Fragment {
  switch (kind) {
    case "dimension":
      return db`(n.dimensions -> ${key})`;
    case "metadata":
      return db`(o.metadata -> ${key})`;
    case "coreProperty":
      return db`coalesce(n.dimensions -> ${key}, case when ${key}::text = 'name' then to_jsonb(n.name) else n.metadata -> ${key} end)`;
    case "bare":
      return db`coalesce(n.dimensions -> ${key}, o.metadata -> ${key})`;
  }
}

/** The keys that order occurrences by a field: numbers before text before booleans, a list by its first element. */
export function eventSortKeys(db: Db, field: EventField, descending: boolean): SortKey[] {
  if (field.kind === "column") {
    const { type, sql } = columns[field.name];
    return [{ expression: sql(db), type, descending }];
  }
  const whole = jsonValue(db, field);
  const value = db`(case jsonb_typeof(${whole}) when 'array' then ${whole} -> 0 else ${whole} end)`;
  const rank = db`(case jsonb_typeof(${value}) when 'number' then 1 when 'string' then 2 when 'boolean' then 3 end)`;
  const number = db`(case jsonb_typeof(${value}) when 'number' then (${value})::float8 end)`;
  const text = db`(case when jsonb_typeof(${value}) in ('string', 'boolean') then left(${value} #>> '{}', 255) end)`;
  return [
    { expression: rank, type: "bigint", descending },
    { expression: number, type: "float8", descending },
    { expression: db`(${text} collate "C")`, type: "text", descending },
  ];
}
