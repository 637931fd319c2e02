import type { Db } from "../db/connect.ts";

/** What rules are made of: a change of any of them is a new version of the tenant's rules. */
export interface RulePart {
  kind: "rule" | "trigger" | "destination";
  name: string;
}

/** This many changes are kept for servers that know an earlier version; others read all rules again. */
const changesKept = 1000n;

/**
 * Records that a trigger, destination or rule of the tenant changes in the caller's transaction: events that are stored
 * after its commit are matched with the new one, on every server. The last statement before the commit, because all
 * transactions that store events of the tenant wait for it.
 */
export async function raiseRulesVersion(tx: Db, tenantId: string, { kind, name }: RulePart): Promise<void> {
  await tx`
    with raised as (
      insert into tenant_state (tenant_id, rules_version) values (${tenantId}, 1)
      on conflict (tenant_id) do update set rules_version = tenant_state.rules_version + 1
      returning rules_version
    ), pruned as (
      delete from rule_changes using raised
      where rule_changes.tenant_id = ${tenantId} and version <= raised.rules_version - ${changesKept}
    )
    insert into rule_changes (tenant_id, version, kind, name)
    select ${tenantId}::uuid, rules_version, ${kind}, ${name} from raised`;
}
