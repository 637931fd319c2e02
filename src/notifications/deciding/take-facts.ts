import type { Db } from "../../db/connect.ts";
import { afterCommit } from "../../db/transaction.ts";
import type { Moment } from "../../events/consumers/consumer.ts";
import type { Fact } from "../../events/facts.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import type { Deciding } from "./deciding.ts";
import { passFrom } from "./stages.ts";

/** Passes facts through all stages, as many as one transaction should take; returns how many these are. */
export async function takeFacts(
  { wake, onEvents }: Pick<Deciding, "wake" | "onEvents">,
  tx: Db,
  tenantId: string,
  rules: TenantRules,
  facts: readonly Fact[],
  { storedMs, nowMs }: Pick<Moment, "storedMs" | "nowMs">,
): Promise<number> {
  const { taken } = await passFrom("match", { tx, tenantId, nowMs, wake, changes: { rules, facts } });
  const reported = facts.slice(0, taken).flatMap(({ reported, event }) => (reported ? [event] : []));
  if (reported.length > 0) afterCommit(tx, () => onEvents(tenantId, rules, reported, storedMs));
  return taken;
}
