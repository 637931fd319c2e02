import type { HandlerContext } from "@connectrpc/connect";
import type { Db } from "../db/connect.ts";
import { principalOf } from "../rpc/context.ts";
import { foundBy } from "../rpc/names.ts";
import { audited } from "../tenants/audit.ts";
import { type RulePart, raiseRulesVersion } from "../tenants/rules-version.ts";
import { watchStaleData } from "./sources/stale-data.ts";

/** Ends a change of a trigger, destination or rule, in its transaction: its audit row, and the word to all servers. */
export async function changed(tx: Db, context: HandlerContext, kind: RulePart["kind"], name: string): Promise<void> {
  await audited(tx, context, name);
  const { tenantId } = principalOf(context);
  if (kind !== "destination") await watchStaleData(tx, tenantId);
  await raiseRulesVersion(tx, tenantId, { kind, name: foundBy(name) });
}
