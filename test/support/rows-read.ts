import type { Db } from "../../src/db/connect.ts";
import type { RanStatement } from "./statement-log.ts";
import { rowId } from "./tenant-rows.ts";

/** What a statement read and compared: rows of tables and entries of indexes, pages, and pairs that a join looked at. */
export interface Reading {
  rows: number;
  pages: number;
  pairs: number;
  error?: string;
  plan?: unknown;
}

/** A statement under a name on a connection, with its parameters for a tenant. */
export interface Prepared {
  statement: RanStatement;
  name: string;
}

const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

/**
 * The parameters of a statement's run as they would be for a tenant that `fillTenant` has filled: ids of 20 bytes become those of
 * its rows, a uuid its own; terms of the index over entities begin with its last characters.
 */
export function parametersFor({ parameters = [] }: RanStatement, tenantId: string): (string | null)[] {
  const ids = new Map<string, string>();
  const owners = new Set(parameters.flatMap((value) => value?.match(uuid)?.map((each) => each.slice(-8)) ?? []));
  return parameters.map((value) => {
    if (value === null) return null;
    let text = value.replaceAll(/\\x[0-9a-f]{40}\b/g, (id) => {
      if (!ids.has(id)) ids.set(id, `\\x${rowId(tenantId, ids.size + 1).toString("hex")}`);
      return ids.get(id) as string;
    });
    for (const owner of owners) text = text.replaceAll(`'${owner}`, `'${tenantId.slice(-8)}`);
    return text.replaceAll(uuid, tenantId);
  });
}

const quoted = (text: string | null) => (text === null ? "null" : `'${text.replaceAll("'", "''")}'`);
const call = ({ name, statement }: Prepared, tenantId: string) => {
  const values = parametersFor(statement, tenantId).map(quoted);
  return values.length === 0 ? `execute ${name}` : `execute ${name}(${values.join(", ")})`;
};

/** How a statement would run for a tenant, or why it would not. */
export async function explained(db: Db, statement: RanStatement, tenantId: string): Promise<string> {
  const prepared = await prepare(db, statement, "explained", tenantId);
  const rows =
    typeof prepared === "string"
      ? [{ "QUERY PLAN": prepared }]
      : await db.unsafe(`explain (costs off) ${call(prepared, tenantId)}`);
  await db.unsafe("deallocate all");
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

/** Prepares a statement, and plans it now where the connection plans once. Undefined: PostgreSQL does not take it. */
export async function prepare(
  db: Db,
  statement: RanStatement,
  name: string,
  tenantId: string,
): Promise<Prepared | string> {
  const types = (statement.types ?? []).map((oid) => (oid === 0 ? "unknown" : `${oid}`));
  const named = types.length === 0 ? "" : `(${types.map(typeName).join(", ")})`;
  const prepared = { statement, name };
  try {
    await db.unsafe(`prepare ${name}${named} as ${statement.text}`);
    await db.unsafe(`explain (costs off) ${call(prepared, tenantId)}`);
    return prepared;
  } catch (error) {
    return (error as Error).message;
  }
}

const typeNames: Readonly<Record<string, string>> = {
  16: "bool",
  17: "bytea",
  20: "int8",
  25: "text",
  1009: "text[]",
  1184: "timestamptz",
  3802: "jsonb",
  3807: "jsonb[]",
};
const typeName = (type: string) => typeNames[type] ?? "unknown";

const counters = `select sum(pg_stat_get_xact_tuples_returned(oid))::int8 as rows from pg_class
  where relnamespace = 'public'::regnamespace and relkind in ('r', 'i', 'm')`;

interface PlanNode {
  "Actual Loops": number;
  "Rows Removed by Join Filter"?: number;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  Plans?: PlanNode[];
}

const pairsOf = (node: PlanNode): number =>
  (node["Rows Removed by Join Filter"] ?? 0) * node["Actual Loops"] +
  (node.Plans ?? []).reduce((sum, each) => sum + pairsOf(each), 0);

/** Rows that statements read, run for a tenant one after the other in a transaction that is undone. @throws what PostgreSQL answers */
export async function rowsRead(db: Db, prepared: readonly Prepared[], tenantId: string): Promise<number> {
  const calls = prepared.map((each) => `explain (analyze, costs off) ${call(each, tenantId)};`).join("\n");
  try {
    const results = (await db.unsafe(`begin; ${counters}; ${calls} ${counters}; rollback`).simple()) as unknown as {
      rows: unknown;
    }[][];
    const [before, after] = [results[1], results[prepared.length + 2]].map((rows) => Number(rows?.[0]?.rows));
    return (after as number) - (before as number);
  } catch (error) {
    await db.unsafe("rollback").simple();
    throw error;
  }
}

/** Runs a statement for a tenant, and undoes it. */
export async function measure(db: Db, prepared: Prepared, tenantId: string): Promise<Reading> {
  try {
    const results = (await db
      .unsafe(
        `begin; ${counters}; explain (analyze, buffers, timing off, format json) ${call(prepared, tenantId)}; ${counters}; rollback`,
      )
      .simple()) as unknown as [
      unknown,
      [{ rows: bigint }],
      [{ "QUERY PLAN": [{ Plan: PlanNode }] }],
      [{ rows: bigint }],
    ];
    const [, [before], [{ "QUERY PLAN": explained }], [after]] = results;
    const plan = explained[0].Plan;
    return {
      rows: Number(after.rows - before.rows),
      pages: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
      pairs: pairsOf(plan),
      plan,
    };
  } catch (error) {
    await db.unsafe("rollback").simple();
    return { rows: 0, pages: 0, pairs: 0, error: (error as Error).message };
  }
}
