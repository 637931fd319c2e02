import type { HandlerContext } from "@connectrpc/connect";
import type { Db } from "../../db/connect.ts";
import { principalOf } from "../../rpc/context.ts";
import { normalizedName } from "../../rpc/name-rules.ts";
import { audited } from "../../tenants/audit.ts";
import { type RulePart, raiseRulesVersion } from "../silences/rules-version.ts";
import { reevaluateLater } from "./reevaluate-changed-rules.ts";
import { onRulesChange } from "./sources.ts";

/**
 * Ends a change of a trigger, destination or rule, in its transaction: its audit row, and the word to all servers.
 * @param look whether, and why, what is matched by now is looked at again
 */
export async function afterRuleChange(
  tx: Db,
  context: HandlerContext,
  kind: RulePart["kind"],
  name: string,
  look?: "changed" | "enabled",
): Promise<void> {
  await audited(tx, context, name);
  await announceRuleChange(tx, principalOf(context).tenantId, { kind, name: normalizedName(name) }, look);
}

/** Has all servers take up a change of a trigger, destination or rule; the last statements of its transaction. */
export async function announceRuleChange(
  tx: Db,
  tenantId: string,
  part: RulePart,
  look?: "changed" | "enabled",
): Promise<void> {
  if (part.kind !== "destination") await onRulesChange(tx, tenantId, part);
  if (look !== undefined) await reevaluateLater(tx, tenantId, part, look);
  await raiseRulesVersion(tx, tenantId, part);
}
