import { and, eq, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type BrokenRule, invalidFields } from "../errors.ts";
import { textArray } from "./batch.ts";
import type { Db } from "./connect.ts";
import { orm } from "./orm.ts";

/** Returns what is wrong with a list of names at `path`: those that are not known. */
export function unknownNames(
  kind: string,
  names: readonly string[],
  known: ReadonlySet<string>,
  path: string,
): BrokenRule[] {
  return names.flatMap((name, i) => {
    if (known.has(name)) return [];
    const rule = `there is no ${kind} named ${JSON.stringify(name)}`;
    return [{ path: `${path}[${i}]`, rule, id: FieldRule.UNKNOWN_NAME }];
  });
}

/**
 * Keeps named rows from being deleted until the transaction ends: a deletion at the same time waits, or has been first. Before any other
 * row of theirs is touched. @throws code 3 at `path` for each that there is none of
 */
export async function holdNames(
  tx: Db,
  tenantId: string,
  table: PgTable & { tenantId: PgColumn; name: PgColumn },
  kind: string,
  names: readonly string[],
  path: string,
): Promise<void> {
  if (names.length === 0) return;
  // In order: no two transactions wait for each other in a circle.
  const held = await orm(tx)
    .select({ name: table.name })
    .from(table)
    .where(and(eq(table.tenantId, tenantId), sql`${table.name} = any(${textArray(names)}::text[])`))
    .orderBy(table.name)
    .for("key share");
  const missing = unknownNames(kind, names, new Set(held.map(({ name }) => String(name))), path);
  if (missing.length > 0) throw invalidFields(missing);
}
