import type { HandlerContext } from "@connectrpc/connect";
import type { Db } from "../db/connect.ts";
import { principalOf } from "../rpc/context.ts";
import { foundBy } from "../rpc/names.ts";
import { audited } from "../tenants/audit.ts";
import { type RulePart, raiseRulesVersion } from "../tenants/rules-version.ts";

/** Ends a change of a trigger, destination or rule, in its transaction: its audit row, and the word to all servers. */
export async function changed(tx: Db, context: HandlerContext, kind: RulePart["kind"], name: string): Promise<void> {
  await audited(tx, context, name);
  await raiseRulesVersion(tx, principalOf(context).tenantId, { kind, name: foundBy(name) });
}
