import type { Db } from "../../db/connect.ts";

/** What rules are made of, and what holds their notifications: a change of any of it is a new version of the tenant's rules. */
export interface RulePart {
  kind: "rule" | "trigger" | "destination" | "silence";
  /** Of a silence its identifier. */
  name: string;
}

/** This many changes are kept for servers that know an earlier version; others read all rules again. */
const changesKept = 1000n;

/**
 * Records that a trigger, destination or rule of the tenant changes in the caller's transaction: events that are stored
 * after its commit are matched with the new one, on every server. The last statements before the commit, because all
 * transactions that store events of the tenant wait for the lock on its row of tenant_state.
 */
export async function raiseRulesVersion(tx: Db, tenantId: string, { kind, name }: RulePart): Promise<void> {
  await Promise.all([
    tx`
      insert into tenant_state (tenant_id, rules_version) values (${tenantId}, 1)
      on conflict (tenant_id) do update set rules_version = tenant_state.rules_version + 1`,
    tx`
      insert into rule_changes (tenant_id, version, kind, name)
      select tenant_id, rules_version, ${kind}, ${name} from tenant_state where tenant_id = ${tenantId}`,
    tx`
      delete from rule_changes
      where tenant_id = ${tenantId}
        and version <= (select rules_version from tenant_state where tenant_id = ${tenantId}) - ${changesKept}`,
  ]);
}
