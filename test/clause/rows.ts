import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Field, FieldValue, Resolver } from "../../src/clause/field.ts";
import { toPredicate } from "../../src/clause/to-predicate.ts";
import { toSql } from "../../src/clause/to-sql.ts";
import type { Db } from "../../src/db/connect.ts";
import { unpaced } from "../../src/event-loop.ts";

/** A row with a field of every type that a resolver may name. */
export interface Row {
  id: string;
  name: string | null;
  size: number | null;
  ratio: number | null;
  live: boolean | null;
  level: number | null;
  dimensions: Record<string, string>;
  metadata: Record<string, FieldValue>;
}

export const row = (id: string, values: Partial<Row> = {}): Row => ({
  id,
  name: null,
  size: null,
  ratio: null,
  live: null,
  level: null,
  dimensions: {},
  metadata: {},
  ...values,
});

/** The rows as the table r of a statement. Nothing has the collation "C" there but what asks for it. */
export function from(db: Db, rows: readonly Row[]): Fragment {
  return db`jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r(id text, name text, size bigint, ratio float8,
    live boolean, level smallint, dimensions jsonb, metadata jsonb)`;
}

/** How clauses read these rows, with hints as an index would need them. */
export function resolver(): Resolver<Row> {
  const own = (map: Record<string, FieldValue>, key: string) => (Object.hasOwn(map, key) ? map[key] : undefined);
  const fields: Record<string, Field<Row>> = {
    name: {
      type: "text",
      sql: (db) => db`r.name`,
      get: (row) => row.name,
      index(db, [first]) {
        if (first?.operation === Operation.OP_EQUALS && typeof first.value === "string")
          return { sql: () => db`r.name = ${first.value}::text`, exact: true };
        if (first?.operation !== Operation.OP_STARTS_WITH) return undefined;
        return { sql: () => db`r.name collate "C" >= ${first.value}::text`, exact: false };
      },
    },
    size: { type: "bigint", sql: (db) => db`r.size`, get: (row) => row.size },
    ratio: { type: "float8", sql: (db) => db`r.ratio`, get: (row) => row.ratio },
    live: { type: "boolean", sql: (db) => db`r.live`, get: (row) => row.live },
    level: { type: "bigint", sql: (db) => db`r.level`, get: (row) => row.level, numbers: { LOW: 1, HIGH: 2 } },
  };
  return {
    field(key) {
      if (Object.hasOwn(fields, key)) return fields[key];
      const [, kind, inner = ""] = /^(dimensions|metadataFields)\.(.*)$/s.exec(key) ?? [];
      if (kind === "metadataFields") {
        return {
          type: "json",
          sql: (db) => db`(r.metadata -> ${inner}::text)`,
          get: (row) => own(row.metadata, inner),
        };
      }
      if (kind === undefined) return undefined;
      return {
        type: "text",
        sql: (db) => db`(r.dimensions ->> ${inner}::text)`,
        get: (row) => own(row.dimensions, inner),
        index(db, [only]) {
          if (only?.operation !== Operation.OP_EQUALS || typeof only.value !== "string") return undefined;
          return {
            sql: () => db`r.dimensions @> ${JSON.stringify({ [inner]: only.value })}::text::jsonb`,
            exact: true,
          };
        },
      };
    },
    withIds: (db, ids) => db`r.id = any(array(select jsonb_array_elements_text(${JSON.stringify(ids)}::text::jsonb)))`,
    idsOf: (row) => [row.id],
  };
}

export const clauseOf = (json: unknown): Clause => fromJson(ClauseSchema, json as JsonValue);

/** For each clause the ids of the rows that it matches, asked of PostgreSQL in one statement. */
export async function matchedBySql(db: Db, clauses: readonly Clause[], rows: readonly Row[]): Promise<string[][]> {
  const read = resolver();
  const conditions = clauses.map((clause, i) => {
    const condition = db`(${toSql(db, clause, "clause", read)}) is true`;
    return i === 0 ? condition : db`, ${condition}`;
  });
  const found = await db<{ id: string; matched: boolean[] }[]>`
    select r.id, array[${conditions}] as matched from ${from(db, rows)}`;
  return clauses.map((_, i) => found.filter(({ matched }) => matched[i]).map(({ id }) => id));
}

/** The same in memory. */
export function matchedInMemory(clauses: readonly Clause[], rows: readonly Row[]): string[][] {
  const read = resolver();
  return clauses.map((clause) => {
    const matches = toPredicate(clause, "clause", read);
    return rows.filter((row) => matches(row, unpaced)).map(({ id }) => id);
  });
}
