import type { JsonValue } from "@bufbuild/protobuf";
import type { StaleDataSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Db } from "../../db/connect.ts";
import { tenantNameOf } from "../../tenants/tenant.ts";
import type { Manner } from "../decide.ts";
import { type Fields, fieldsOf, type MatchRow } from "./rows.ts";
import {
  type EventTrigger,
  type LoadedTrigger,
  loadTrigger,
  type TriggerIndex,
  triggerIndex,
} from "./trigger-index.ts";

/** A rule that notifies: enabled, with destinations. */
export interface LoadedRule extends Manner {
  readonly id: string;
  readonly name: string;
  readonly triggerNames: readonly string[];
  readonly destinationNames: readonly string[];
}

/** The rules of a tenant that notify, as they are at a version. */
export interface TenantRules {
  readonly version: bigint;
  readonly rules: ReadonlyMap<string, LoadedRule>;
  readonly byId: ReadonlyMap<string, LoadedRule>;
  readonly triggers: ReadonlyMap<string, LoadedTrigger>;
  /** The rules that use a trigger. */
  readonly users: ReadonlyMap<string, readonly LoadedRule[]>;
  /** Over the triggers of events. */
  readonly events: TriggerIndex;
  /** The triggers of values, by the metric that they watch. */
  readonly thresholds: ReadonlyMap<string, readonly LoadedTrigger[]>;
  /** The triggers that wait for data, by what they wait for (`watchedNames`). */
  readonly watches: ReadonlyMap<string, readonly LoadedTrigger[]>;
  /** About how many characters of triggers and rules it holds. */
  readonly weight: number;
}

/** The rules of a row that match it, with those of their triggers that do, in the rule's order. */
export type Matches = Map<LoadedRule, string[]>;

interface RuleRow {
  id: string;
  name: string;
  enabled: boolean;
  repeat: boolean;
  repeatIntervalSec: number;
  delaySec: number;
  sendUpdates: boolean;
  muteDuringMaintenance: boolean;
  triggerNames: string[];
  destinationNames: string[];
}

interface Loaded {
  version: bigint;
  /** Whether these are all, not only what has changed. */
  whole: boolean;
  changes: { kind: string; name: string }[];
  rules: RuleRow[];
  triggers: { name: string; type: JsonValue; createdMs: number; length: number }[];
}

/**
 * Reads what of a tenant's rules has changed since a version, or all, in one statement: of one moment, that of the version
 * that it answers.
 */
async function read(db: Db, tenantId: string, sinceVersion: bigint): Promise<Loaded> {
  const [row] = await db<Loaded[]>`
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
    select s.rules_version as version, extent.whole,
      (select coalesce(json_agg(c), '[]') from (select distinct kind, name from changes) as c) as changes,
      (select coalesce(json_agg(json_build_object('id', r.id, 'name', r.name, 'enabled', r.enabled, 'repeat', r.repeat,
          'repeatIntervalSec', r.repeat_interval_sec, 'delaySec', r.delay_sec, 'sendUpdates', r.send_updates,
          'muteDuringMaintenance', r.mute_during_maintenance,
          'triggerNames', array(select t.trigger_name from rule_triggers t
            where t.tenant_id = ${tenantId} and t.rule_name = r.name order by t.place),
          'destinationNames', array(select d.destination_name from rule_destinations d
            where d.tenant_id = ${tenantId} and d.rule_name = r.name order by d.place))), '[]')
        from some_rules r) as rules,
      (select coalesce(json_agg(json_build_object('name', t.name, 'type', t.type, 'createdMs', t.created_ms,
          'length', length(t.type::text))), '[]')
        from triggers t
        where t.tenant_id = ${tenantId}
          and (t.name in (select name from changes where kind = 'trigger') or t.name in (
            select u.trigger_name from rule_triggers u
            where u.tenant_id = ${tenantId} and u.rule_name in (select name from some_rules)))) as triggers
    from state s, extent`.execute();
  return row ?? { version: 0n, whole: true, changes: [], rules: [], triggers: [] };
}

const toRule = ({ repeatIntervalSec, delaySec, enabled: _, ...row }: RuleRow): LoadedRule => ({
  ...row,
  repeatIntervalMs: repeatIntervalSec * 1000,
  delayMs: delaySec * 1000,
});

const notifies = ({ enabled, destinationNames }: RuleRow) => enabled && destinationNames.length > 0;

/** What is held of a tenant, with what makes its triggers ready. */
interface Held extends TenantRules {
  readonly fields: Fields;
  readonly lengths: ReadonlyMap<string, number>;
}

const ruleWeight = 500;

/** What was held, with what was read since. Triggers that have not changed stay compiled. */
function renewed(before: Held | undefined, loaded: Loaded, fields: Fields): Held {
  const kept = loaded.whole ? undefined : before;
  const rules = new Map(kept?.rules);
  const known = new Map(kept?.triggers);
  const lengths = new Map(kept?.lengths);
  for (const { kind, name } of loaded.changes) {
    if (kind === "rule") rules.delete(name);
    if (kind === "trigger") known.delete(name);
  }
  for (const row of loaded.rules) if (notifies(row)) rules.set(row.name, toRule(row));
  const changed = new Set(loaded.changes.flatMap(({ kind, name }) => (kind === "trigger" ? [name] : [])));
  for (const { name, type, createdMs, length } of loaded.triggers) {
    lengths.set(name, length);
    if (!known.has(name) || changed.has(name)) known.set(name, loadTrigger(name, type, createdMs, fields));
  }
  const users = new Map<string, LoadedRule[]>();
  for (const rule of rules.values()) {
    for (const name of rule.triggerNames) {
      const there = users.get(name);
      if (there === undefined) users.set(name, [rule]);
      else there.push(rule);
    }
  }
  for (const name of known.keys()) if (!users.has(name)) known.delete(name);
  for (const name of lengths.keys()) if (!users.has(name)) lengths.delete(name);
  const events = [...known.values()].flatMap(({ event }) => (event === undefined ? [] : [event]));
  return {
    version: loaded.version,
    rules,
    byId: new Map([...rules.values()].map((rule) => [rule.id, rule])),
    triggers: known,
    users,
    thresholds: Map.groupBy(
      [...known.values()].filter(({ type }) => type.source.case === "metricThreshold"),
      ({ type }) => (type.source.case === "metricThreshold" ? type.source.value.metricName : ""),
    ),
    watches: watchesOf(known.values()),
    events: triggerIndex(events, fields.events),
    weight: [...lengths.values()].reduce((sum, length) => sum + length, rules.size * ruleWeight),
    fields,
    lengths,
  };
}

/** What of the data a trigger waits for, as keys of `TenantRules.watches`. */
function watchedNames({ metricName, eventName }: StaleDataSource): string[] {
  return [...(metricName === "" ? [] : [`metric ${metricName}`]), ...(eventName === "" ? [] : [`event ${eventName}`])];
}

function watchesOf(triggers: Iterable<LoadedTrigger>): Map<string, LoadedTrigger[]> {
  const found = new Map<string, LoadedTrigger[]>();
  for (const trigger of triggers) {
    const { source } = trigger.type;
    if (source.case !== "staleData") continue;
    for (const name of watchedNames(source.value)) found.set(name, [...(found.get(name) ?? []), trigger]);
  }
  return found;
}

/** The rules of tenants, held in memory. */
export interface RulesMemory {
  /** The rules of a tenant at this version or a later one: read when an earlier one is held, and then only what has changed. */
  at(db: Db, tenantId: string, version: bigint): Promise<TenantRules>;
  /** The rules of a tenant as they are now. */
  now(db: Db, tenantId: string): Promise<TenantRules>;
}

/** Keeps the rules of tenants up to `weightMax` characters of triggers; those of tenants that are least in use go. */
export function rulesMemory({ weightMax = 64 << 20 } = {}): RulesMemory {
  const held = new Map<string, Held>();
  let weight = 0;

  function keep(tenantId: string, rules: Held) {
    const before = held.get(tenantId);
    if (before !== undefined && before.version > rules.version) return;
    weight += rules.weight - (before?.weight ?? 0);
    held.delete(tenantId);
    held.set(tenantId, rules);
    for (const [id, { weight: own }] of held) {
      if (weight <= weightMax || id === tenantId) break;
      held.delete(id);
      weight -= own;
    }
  }

  async function at(db: Db, tenantId: string, version: bigint): Promise<TenantRules> {
    const before = held.get(tenantId);
    if (before !== undefined && before.version >= version) {
      held.delete(tenantId);
      held.set(tenantId, before);
      return before;
    }
    const fields = before?.fields ?? fieldsOf(tenantId, await tenantNameOf(db, tenantId));
    const rules = renewed(before, await read(db, tenantId, before?.version ?? 0n), fields);
    keep(tenantId, rules);
    return rules;
  }

  return {
    at,
    async now(db, tenantId) {
      const [state] = await db<{ version: bigint }[]>`
        select rules_version as version from tenant_state where tenant_id = ${tenantId}`;
      return await at(db, tenantId, state?.version ?? 0n);
    },
  };
}

/** The rules whose triggers match a row. A closed occurrence matches only those triggers that look at the status. */
export function rulesThatMatch(
  { users }: TenantRules,
  row: MatchRow,
  closed: boolean,
  candidates: Iterable<EventTrigger>,
): Matches {
  const found: Matches = new Map();
  const matching = new Set<string>();
  for (const trigger of candidates) {
    if ((trigger.namesStatus || !closed) && trigger.matches(row)) matching.add(trigger.name);
  }
  for (const name of matching) {
    for (const rule of users.get(name) ?? []) {
      if (!found.has(rule)) {
        found.set(
          rule,
          rule.triggerNames.filter((each) => matching.has(each)),
        );
      }
    }
  }
  return found;
}
