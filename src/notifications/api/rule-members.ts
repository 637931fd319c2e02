import { and, eq } from "drizzle-orm";
import type { Rule } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { Db } from "../../db/connect.ts";
import { holdNames } from "../../db/held-names.ts";
import { orm } from "../../db/orm.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { destinations, ruleDestinations, ruleTriggers, triggers } from "../rules/tables.ts";

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
  await holdNames(tx, tenantId, triggers, "trigger", names, "rule.triggerNames");
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
  await holdNames(tx, tenantId, destinations, "destination", names, "rule.destinationNames");
  const own = and(eq(ruleDestinations.tenantId, tenantId), eq(ruleDestinations.ruleName, ruleName));
  await orm(tx).delete(ruleDestinations).where(own);
  const wanted = [...new Set(names)];
  const rows = wanted.map((destinationName, place) => ({ tenantId, ruleName, destinationName, place }));
  if (rows.length > 0) await orm(tx).insert(ruleDestinations).values(rows);
  return wanted;
}
