import type { JsonValue } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import type { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import type { Grouping } from "./grouping.ts";

/** A rule as it is stored, with the names of its triggers and destinations in their order. */
export interface StoredRule {
  id: string;
  name: string;
  enabled: boolean;
  message: string;
  repeat: boolean;
  repeatIntervalSec: bigint;
  repeatWhile: RepeatWhile;
  delaySec: number;
  sendUpdates: boolean;
  muteDuringMaintenance: boolean;
  /** A condition of its own; empty: it has none. */
  matchers: string[];
  triggerNames: string[];
  destinationNames: string[];
  /** Null: each match is notified by itself. */
  grouping: Grouping | null;
}

/** A trigger of a rule, as it is stored. */
export interface StoredTrigger {
  name: string;
  type: JsonValue;
}

/** Returns a rule's own condition as a trigger without a name; empty where it has none. */
export const ownTriggers = (matchers: readonly string[]): StoredTrigger[] =>
  matchers.length === 0 ? [] : [{ name: "", type: { event: { query: { matchers: [...matchers] } } } }];

/** Reads rules by name. @param which the condition, in which their row is `r` */
export async function readStoredRules(db: Db, tenantId: string, which: Fragment): Promise<StoredRule[]> {
  return await db<StoredRule[]>`
    select r.id, r.name, r.enabled, r.message, r.repeat, r.repeat_interval_sec as "repeatIntervalSec",
      coalesce(r.repeat_while, 0) as "repeatWhile", r.delay_sec as "delaySec", r.send_updates as "sendUpdates",
      r.mute_during_maintenance as "muteDuringMaintenance", r.matchers, r.grouping,
      array(select t.trigger_name from rule_triggers t where t.tenant_id = ${tenantId} and t.rule_name = r.name
        order by t.place) as "triggerNames",
      array(select d.destination_name from rule_destinations d where d.tenant_id = ${tenantId} and d.rule_name = r.name
        order by d.place) as "destinationNames"
    from rules r where r.tenant_id = ${tenantId} and ${which} order by r.name`.execute();
}

/** Adds their triggers to rules, in each rule's order, its own condition last. */
export async function withTriggers<R extends Pick<StoredRule, "triggerNames" | "matchers">>(
  db: Db,
  tenantId: string,
  rules: readonly R[],
): Promise<(R & { triggers: StoredTrigger[] })[]> {
  const names = new Set(rules.flatMap(({ triggerNames }) => triggerNames));
  const triggers = await db<StoredTrigger[]>`
    select name, type from triggers where tenant_id = ${tenantId} and name = any(${textArray([...names])}::text[])`;
  const byName = new Map(triggers.map((trigger) => [trigger.name, trigger]));
  return rules.map((rule) => ({
    ...rule,
    triggers: [...rule.triggerNames.flatMap((name) => byName.get(name) ?? []), ...ownTriggers(rule.matchers)],
  }));
}
