import type { JsonValue } from "@bufbuild/protobuf";
import type { Db } from "../../db/connect.ts";
import type { SilenceRow } from "../silences/silences-in-force.ts";
import type { StoredRule } from "./stored-rules.ts";

/** A rule as it is read for decisions. */
export interface RuleRow extends Omit<StoredRule, "repeatIntervalSec"> {
  /** As a text, since it may be longer than a number of JSON is exact. */
  repeatIntervalSec: string;
}

interface TriggerRow {
  name: string;
  type: JsonValue;
  createdMs: number;
  length: number;
}

/** What is read of a tenant's rules. */
export interface Loaded {
  version: bigint;
  /** Whether these are all, not only what has changed. */
  whole: boolean;
  changes: { kind: string; name: string }[];
  rules: RuleRow[];
  triggers: TriggerRow[];
  /** Those that have not ended. */
  silences: SilenceRow[];
}

/** One row of what is read; a row each, so that no single text is long to parse. */
type Part =
  | { part: "state"; data: { version: string; whole: boolean } }
  | { part: "change"; data: Loaded["changes"][number] }
  | { part: "rule"; data: RuleRow }
  | { part: "trigger"; data: TriggerRow }
  | { part: "silence"; data: SilenceRow };

/**
 * Reads what of a tenant's rules has changed since a version, or all, in one statement: of one moment, that of the version
 * that it answers.
 */
export async function readRules(db: Db, tenantId: string, sinceVersion: bigint): Promise<Loaded> {
  const parts = await db<Part[]>`
    with state as materialized (
      select rules_version from tenant_state where tenant_id = ${tenantId}
    ), changes as materialized (
      select kind, name from rule_changes where tenant_id = ${tenantId} and version > ${sinceVersion}
    ), extent as materialized (
      -- Not all that lies between is kept.
      select ${sinceVersion}::int8 = 0 or (select count(*) from changes) < rules_version - ${sinceVersion}::int8 as whole
      from state
    ), some_rules as materialized (
      select r.* from rules r, extent
      where r.tenant_id = ${tenantId} and (extent.whole or r.name in (select name from changes where kind = 'rule'))
    )
    select 'state' as part, json_build_object('version', s.rules_version::text, 'whole', extent.whole) as data
      from state s, extent
    union all
    select 'change', json_build_object('kind', kind, 'name', name) from (select distinct kind, name from changes) as c
    union all
    select 'rule', json_build_object('id', r.id, 'name', r.name, 'enabled', r.enabled, 'message', r.message, 'repeat', r.repeat,
        'repeatIntervalSec', r.repeat_interval_sec::text, 'repeatWhile', coalesce(r.repeat_while, 0), 'delaySec', r.delay_sec, 'sendUpdates', r.send_updates,
        'muteDuringMaintenance', r.mute_during_maintenance,
        'matchers', r.matchers, 'grouping', r.grouping, 'triggerNames', array(select t.trigger_name from rule_triggers t
          where t.tenant_id = ${tenantId} and t.rule_name = r.name order by t.place),
        'destinationNames', array(select d.destination_name from rule_destinations d
          where d.tenant_id = ${tenantId} and d.rule_name = r.name order by d.place))
      from some_rules r
    union all
    select 'trigger', json_build_object('name', t.name, 'type', t.type, 'createdMs', t.created_ms,
        'length', length(t.type::text))
      from triggers t
      where t.tenant_id = ${tenantId}
        and (t.name in (select name from changes where kind = 'trigger') or t.name in (
          select u.trigger_name from rule_triggers u
          where u.tenant_id = ${tenantId} and u.rule_name in (select name from some_rules)))
    union all
    select 'silence', json_build_object('id', s.id, 'matchers', s.parts, 'startsMs', s.starts_ms, 'endsMs', s.ends_ms,
        'ruleNames', s.rule_names, 'destinationNames', s.destination_names)
      from silences s, extent
      where s.tenant_id = ${tenantId}
        and (s.ends_ms is null or s.ends_ms > (extract(epoch from statement_timestamp()) * 1000)::int8)
        and (extent.whole or s.id in (select name::uuid from changes where kind = 'silence'))`.execute();
  const loaded: Loaded = { version: 0n, whole: true, changes: [], rules: [], triggers: [], silences: [] };
  for (const { part, data } of parts) {
    if (part === "state") Object.assign(loaded, { version: BigInt(data.version), whole: data.whole });
    else if (part === "change") loaded.changes.push(data);
    else if (part === "rule") loaded.rules.push(data);
    else if (part === "trigger") loaded.triggers.push(data);
    else loaded.silences.push(data);
  }
  return loaded;
}
