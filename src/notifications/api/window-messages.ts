import { and, eq, sql } from "drizzle-orm";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { unknownNames } from "../../db/held-names.ts";
import { orm } from "../../db/orm.ts";
import type { Broken } from "../../rpc/constraint-rules.ts";
import { rules } from "../rules/tables.ts";
import { brokenTemplate } from "../templates/template.ts";

/**
 * What is wrong with the message of a window at `path`: its template, where it is not as it is stored, and rules that do not exist. Those
 * in `kept` were named before, and may have been deleted since.
 */
export async function brokenWindowMessage(
  tx: Db,
  tenantId: string,
  { message, rules: names }: { message: string; rules: readonly string[] },
  path: string,
  { kept, stored }: { kept: ReadonlySet<string>; stored: string | undefined },
): Promise<Broken[]> {
  const rule = brokenTemplate(message, stored);
  const found = await orm(tx)
    .select({ name: rules.name })
    .from(rules)
    .where(and(eq(rules.tenantId, tenantId), sql`${rules.name} = any(${textArray(names)}::text[])`));
  const known = new Set([...kept, ...found.map(({ name }) => name)]);
  const missing = unknownNames("rule", names, known, `${path}.rules`);
  return [...(rule === undefined ? [] : [{ path: `${path}.message`, rule }]), ...missing];
}

/** Returns the names of the first enabled rules that notify about entities in maintenance all the same. */
export async function unmutedRules(db: Db, tenantId: string, most: number): Promise<string[]> {
  const found = await orm(db)
    .select({ name: rules.name })
    .from(rules)
    .where(and(eq(rules.tenantId, tenantId), eq(rules.enabled, true), eq(rules.muteDuringMaintenance, false)))
    .orderBy(rules.name)
    .limit(most);
  return found.map(({ name }) => name);
}
