import { and, eq, sql } from "drizzle-orm";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { invalidFields } from "../errors.ts";
import { normalizedName } from "../rpc/name-rules.ts";
import { destinations, ruleDestinations, ruleTriggers, triggers } from "./tables.ts";

type Names = Pick<Rule, "name" | "triggerNames" | "destinationNames">;

/**
 * Gives a rule exactly the triggers that it names, in the caller's transaction, and answers their names; one that stands
 * twice counts once. The rule's row is locked or new, so that no other transaction does this to it meanwhile.
 * @throws code 3 below rule.triggerNames for each that there is none of
 */
export async function setTriggers(
  tx: Db,
  tenantId: string,
  { name: ruleName, triggerNames }: Names,
): Promise<string[]> {
  const names = triggerNames.map(normalizedName);
  await holdAll(tx, tenantId, triggers, "trigger", names, "rule.triggerNames");
  const own = and(eq(ruleTriggers.tenantId, tenantId), eq(ruleTriggers.ruleName, ruleName));
  await orm(tx).delete(ruleTriggers).where(own);
  const wanted = [...new Set(names)];
  const rows = wanted.map((triggerName, place) => ({ tenantId, ruleName, triggerName, place }));
  if (rows.length > 0) await orm(tx).insert(ruleTriggers).values(rows);
  return wanted;
}

/** The same for the destinations that a rule names. @throws code 3 below rule.destinationNames */
export async function setDestinations(
  tx: Db,
  tenantId: string,
  { name: ruleName, destinationNames }: Names,
): Promise<string[]> {
  const names = destinationNames.map(normalizedName);
  await holdAll(tx, tenantId, destinations, "destination", names, "rule.destinationNames");
  const own = and(eq(ruleDestinations.tenantId, tenantId), eq(ruleDestinations.ruleName, ruleName));
  await orm(tx).delete(ruleDestinations).where(own);
  const wanted = [...new Set(names)];
  const rows = wanted.map((destinationName, place) => ({ tenantId, ruleName, destinationName, place }));
  if (rows.length > 0) await orm(tx).insert(ruleDestinations).values(rows);
  return wanted;
}

/** Keeps these from being deleted until the transaction ends. @throws code 3 at `path` for each that there is none of */
async function holdAll(
  tx: Db,
  tenantId: string,
  table: typeof triggers | typeof destinations,
  kind: string,
  names: readonly string[],
  path: string,
): Promise<void> {
  if (names.length === 0) return;
  // In order, and before any row of theirs is touched: no two transactions wait for each other in a circle.
  const held = await orm(tx)
    .select({ name: table.name })
    .from(table)
    .where(and(eq(table.tenantId, tenantId), sql`${table.name} = any(${textArray(names)}::text[])`))
    .orderBy(table.name)
    .for("key share");
  const found = new Set(held.map(({ name }) => name));
  const missing = names.flatMap((name, i) =>
    found.has(name)
      ? []
      : [
          {
            path: `${path}[${i}]`,
            rule: `there is no ${kind} named ${JSON.stringify(name)}`,
            id: FieldRule.UNKNOWN_NAME,
          },
        ],
  );
  if (missing.length > 0) throw invalidFields(missing);
}
