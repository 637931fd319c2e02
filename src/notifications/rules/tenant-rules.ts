import type { JsonValue } from "@bufbuild/protobuf";
import type { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Pace } from "../../event-loop.ts";
import { loadedSilence, type Silences, silencesInForce } from "../silences/silences-in-force.ts";
import type { Notification } from "../subject/notification.ts";
import type { Reason } from "../subject/reason.ts";
import type { Grouping } from "./grouping.ts";
import { ownTrigger } from "./own-trigger.ts";
import type { Loaded, RuleRow } from "./read-rules.ts";
import type { TriggerFields } from "./rows.ts";
import type { ReadyTrigger, SourceName } from "./sources/source.ts";
import { dataOf, readyTrigger, storedTriggerType } from "./sources.ts";
import { type BuiltIndex, triggerIndex } from "./trigger-index.ts";

/** What of a rule decides when it notifies. */
export interface Manner {
  readonly repeat: boolean;
  readonly repeatIntervalMs: number;
  /** Whether repetitions follow the clock, while the occurrence is so; unspecified: they follow reports. */
  readonly repeatWhile: RepeatWhile;
  readonly delayMs: number;
  readonly sendUpdates: boolean;
  readonly muteDuringMaintenance: boolean;
}

/** A rule that notifies: enabled, with destinations. */
export interface LoadedRule extends Manner {
  readonly id: string;
  readonly name: string;
  /** Its own condition among them, the last. */
  readonly triggerNames: readonly string[];
  readonly destinationNames: readonly string[];
  /** Null: each match is notified by itself. */
  readonly grouping: Grouping | null;
  /** As notifications show it. */
  readonly shown: Notification["rule"];
}

/** A trigger, ready for its source. */
export interface LoadedTrigger extends ReadyTrigger {
  readonly name: string;
  readonly type: TriggerType;
}

/** The rules of a tenant that notify, as they are at a version. */
export interface TenantRules {
  readonly version: bigint;
  readonly tenantName: string;
  readonly rules: ReadonlyMap<string, LoadedRule>;
  readonly byId: ReadonlyMap<string, LoadedRule>;
  readonly triggers: ReadonlyMap<string, LoadedTrigger>;
  /** The rules that use a trigger. */
  readonly users: ReadonlyMap<string, readonly LoadedRule[]>;
  readonly silences: Silences;
  /** Over the triggers of events. */
  readonly events: BuiltIndex;
  /** How many texts of their triggers each event is compared with, beside what an index decides. */
  readonly comparisons: number;
  /** The triggers of a source by what of the data they look at (`TriggerSource.data`). */
  byData(source: SourceName): ReadonlyMap<string, readonly LoadedTrigger[]>;
  /** About how many characters of triggers and rules it holds. */
  readonly weight: number;
}

/** The rules of a row that match it, with those of their triggers that do, in the rule's order. */
export type Matches = Map<LoadedRule, string[]>;

/** A longer interval never ends; times stay within int64. */
const intervalSecMax = 100 * 365 * 86_400;

/** Returns a rule as decisions see it, whether or not it notifies. */
export function loadedRule({ repeatIntervalSec, delaySec, enabled, message, matchers, ...row }: RuleRow): LoadedRule {
  const { name, triggerNames, destinationNames } = row;
  return {
    ...row,
    triggerNames: matchers.length === 0 ? triggerNames : [...triggerNames, ownTrigger(name)],
    repeatIntervalMs: Math.min(Number(repeatIntervalSec), intervalSecMax) * 1000,
    delayMs: delaySec * 1000,
    shown: { name, message, enabled, repeatIntervalSec: BigInt(repeatIntervalSec), triggerNames, destinationNames },
  };
}

/** Says why a rule notifies nobody; undefined: it does. */
export function ruleReason({
  enabled,
  destinationNames,
}: Pick<RuleRow, "enabled"> & Pick<LoadedRule, "destinationNames">): Reason | undefined {
  if (!enabled) return "disabled";
  return destinationNames.length === 0 ? "noDestination" : undefined;
}

/** What is held of a tenant, with what makes its triggers ready. */
export interface HeldRules extends TenantRules {
  readonly fields: TriggerFields;
  readonly lengths: ReadonlyMap<string, number>;
}

const ruleWeight = 500;

/** What was held, with what was read since. Triggers that have not changed stay compiled. */
export async function renewed(
  before: HeldRules | undefined,
  loaded: Loaded,
  { tenantName, fields }: Pick<HeldRules, "tenantName" | "fields">,
  pace: Pace,
): Promise<HeldRules> {
  const kept = loaded.whole ? undefined : before;
  const rules = new Map(kept?.rules);
  const known = new Map(kept?.triggers);
  const lengths = new Map(kept?.lengths);
  const silences = new Map(kept?.silences.byId);
  for (const { kind, name } of loaded.changes) {
    if (kind === "rule") {
      rules.delete(name);
      known.delete(ownTrigger(name));
    }
    if (kind === "trigger") known.delete(name);
    if (kind === "silence") silences.delete(name);
  }
  for (const row of loaded.rules) {
    if (ruleReason(row) !== undefined) continue;
    rules.set(row.name, loadedRule(row));
    if (row.matchers.length === 0) continue;
    await pace();
    const name = ownTrigger(row.name);
    const trigger = readableTrigger(name, { event: { query: { matchers: row.matchers } } }, fields);
    lengths.set(
      name,
      row.matchers.reduce((sum, text) => sum + text.length, 0),
    );
    if (trigger !== undefined) known.set(name, trigger);
  }
  for (const row of loaded.silences) {
    await pace();
    silences.set(row.id, loadedSilence(row));
  }
  const changed = new Set(loaded.changes.flatMap(({ kind, name }) => (kind === "trigger" ? [name] : [])));
  for (const { name, type, length } of loaded.triggers) {
    await pace();
    lengths.set(name, length);
    if (known.has(name) && !changed.has(name)) continue;
    const trigger = readableTrigger(name, type, fields);
    if (trigger !== undefined) known.set(name, trigger);
  }
  const users = new Map<string, LoadedRule[]>();
  for (const rule of rules.values()) {
    await pace();
    for (const name of rule.triggerNames) {
      const there = users.get(name);
      if (there === undefined) users.set(name, [rule]);
      else there.push(rule);
    }
  }
  for (const name of known.keys()) if (!users.has(name)) known.delete(name);
  for (const name of lengths.keys()) if (!users.has(name)) lengths.delete(name);
  await pace();
  const triggers = [...known.values()].flatMap(({ name, event }) => (event === undefined ? [] : [{ ...event, name }]));
  const events = await triggerIndex(triggers, fields.events, { pace, before: kept?.events });
  const inForce = silencesInForce(silences);
  const messages = [...rules.values()].reduce((sum, { shown }) => sum + shown.message.length, 0);
  return {
    version: loaded.version,
    tenantName,
    rules,
    byId: new Map([...rules.values()].map((rule) => [rule.id, rule])),
    triggers: known,
    users,
    byData: byData(known.values()),
    silences: inForce,
    events,
    comparisons: triggers.reduce((sum, { comparisons }) => sum + comparisons, 0),
    weight: [...lengths.values()].reduce(
      (sum, length) => sum + length,
      rules.size * ruleWeight + messages + events.bytes + inForce.weight,
    ),
    fields,
    lengths,
  };
}

/** A trigger, unless what is stored of it cannot be read: then it matches nothing, and says so where it is shown. */
function readableTrigger(name: string, stored: JsonValue, fields: TriggerFields): LoadedTrigger | undefined {
  try {
    const type = storedTriggerType(stored);
    return { name, type, ...readyTrigger(type, fields) };
  } catch {
    return undefined;
  }
}

function byData(triggers: Iterable<LoadedTrigger>): TenantRules["byData"] {
  const found = new Map<SourceName | undefined, Map<string, LoadedTrigger[]>>();
  for (const trigger of triggers) {
    for (const name of dataOf(trigger.type)) {
      const { case: source } = trigger.type.source;
      const ofSource = found.get(source) ?? new Map<string, LoadedTrigger[]>();
      found.set(source, ofSource);
      const there = ofSource.get(name);
      if (there === undefined) ofSource.set(name, [trigger]);
      else there.push(trigger);
    }
  }
  const none: ReadonlyMap<string, readonly LoadedTrigger[]> = new Map();
  return (source) => found.get(source) ?? none;
}
