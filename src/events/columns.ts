import type { Fragment } from "postgres";
import { bigintArray, boolArray, int4Array, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { Occurrence } from "./lifecycle.ts";

/** A column of an occurrence: what statements, the feed and conversions know of it. */
interface Column {
  name: string;
  type: keyof typeof types;
  /** The list of an entry of the feed that holds it, in the order of this table (docs/formats/feed.md): add to `rest`, at the end. */
  feed: "head" | "texts" | "rest";
  /** Lists of many occurrences show it. */
  search?: true;
  /** What is only seen once more, or kept open, changes nothing else. */
  seen?: true;
}

/** The array of a type, and what stands for a value in a row that is never made. */
const types = {
  int4: { array: int4Array, blank: "0" },
  bool: { array: boolArray, blank: "false" },
  text: { array: textArray, blank: "''" },
  jsonb: { array: jsonArray, blank: "'{}'" },
  bigint: { array: bigintArray, blank: "0" },
};

const table = {
  number: { name: "number", type: "int4", feed: "head", search: true },
  severity: { name: "severity", type: "int4", feed: "head", search: true },
  status: { name: "status", type: "int4", feed: "head", search: true },
  acknowledged: { name: "acknowledged", type: "bool", feed: "head", search: true },
  type: { name: "type", type: "text", feed: "texts", search: true },
  summary: { name: "summary", type: "text", feed: "texts", search: true },
  body: { name: "body", type: "text", feed: "texts" },
  metadata: { name: "metadata", type: "jsonb", feed: "texts" },
  startMs: { name: "start_ms", type: "bigint", feed: "rest", search: true },
  lastSeenMs: { name: "last_seen_ms", type: "bigint", feed: "head", search: true, seen: true },
  endMs: { name: "end_ms", type: "bigint", feed: "rest", search: true },
  instanceCount: { name: "instance_count", type: "bigint", feed: "head", search: true, seen: true },
  expiresMs: { name: "expires_ms", type: "bigint", feed: "rest", search: true, seen: true },
  keptOpenMs: { name: "kept_open_ms", type: "bigint", feed: "rest", seen: true },
  closedBy: { name: "closed_by", type: "int4", feed: "rest", search: true },
} as const satisfies Record<keyof Occurrence, Column>;

type Columns = typeof table;
type Key = keyof Occurrence;

/** A row of occurrences. */
export type StoredOccurrence = { event_id: Buffer } & { [K in Key as Columns[K]["name"]]: Occurrence[K] };

/** Names the members of an occurrence. */
export const columnKeys = Object.keys(table) as Key[];

/** Names those that have a mark. */
export function marked<const Mark extends Partial<Column>>(mark: Mark) {
  const has = (column: Column) => Object.entries(mark).every(([name, value]) => column[name as keyof Column] === value);
  return columnKeys.filter((key) => has(table[key])) as { [K in Key]: Columns[K] extends Mark ? K : never }[Key][];
}

/** A part of statements that is made once; values stand between its texts. */
function part(...texts: string[]) {
  const strings = Object.assign(texts, { raw: texts });
  return (db: Db, ...values: string[]) => db(strings, ...values) as Fragment;
}

/** The columns of these members, each after `of`. */
export const listed = (keys: readonly Key[], of = "") => part(keys.map((key) => of + table[key].name).join(", "));

/** How an insert writes these members, beside the event and the number that it conflicts with; all others stay as they are. */
export function writing(changed: readonly Key[]) {
  const keys: Key[] = ["number", ...changed];
  const nameOf = (key: Key) => table[key].name;
  const blankOr = (key: Key) => (keys.includes(key) ? nameOf(key) : types[table[key].type].blank);
  const arrays = part("", ...keys.map((key, i) => `::${table[key].type}[]${i < changed.length ? ", " : ""}`));
  return {
    names: part(keys.map(nameOf).join(", ")),
    /** In the place of all columns. */
    orBlanks: part(columnKeys.map(blankOr).join(", ")),
    /** For `do update set`. */
    replaced: part(changed.map((key) => `${nameOf(key)} = excluded.${nameOf(key)}`).join(", ")),
    /** For `unnest`. */
    arrays: (db: Db, rows: readonly Occurrence[]) =>
      arrays(db, ...keys.map((key) => types[table[key].type].array(rows.map((row) => row[key]) as never[]))),
  };
}

/** Returns the row of an occurrence of this event. */
export function toRow(eventId: Buffer, occurrence: Occurrence): StoredOccurrence {
  const row: Record<string, unknown> = { event_id: eventId };
  for (const key of columnKeys) row[table[key].name] = occurrence[key];
  return row as StoredOccurrence;
}

/** A row of occurrences as the lifecycle knows it. */
export function toOccurrence(row: StoredOccurrence): Occurrence {
  const occurrence: Partial<Record<Key, unknown>> = {};
  for (const key of columnKeys) occurrence[key] = row[table[key].name];
  return occurrence as Occurrence;
}
