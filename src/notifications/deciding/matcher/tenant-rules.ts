import type { StaleDataSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Pace } from "../../../event-loop.ts";
import type { Manner } from "../decide.ts";
import type { Loaded, RuleRow } from "./read-rules.ts";
import type { Fields } from "./rows.ts";
import { type BuiltIndex, type LoadedTrigger, loadTrigger, triggerIndex } from "./trigger-index.ts";

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
  readonly events: BuiltIndex;
  /** How many texts of their triggers each event is compared with, beside what an index decides. */
  readonly comparisons: number;
  /** The triggers of values, by the metric that they watch. */
  readonly thresholds: ReadonlyMap<string, readonly LoadedTrigger[]>;
  /** The triggers that wait for data, by what they wait for (`watchedNames`). */
  readonly watches: ReadonlyMap<string, readonly LoadedTrigger[]>;
  /** About how many characters of triggers and rules it holds. */
  readonly weight: number;
}

/** The rules of a row that match it, with those of their triggers that do, in the rule's order. */
export type Matches = Map<LoadedRule, string[]>;

/** A longer interval never ends; times stay within int64. */
const intervalSecMax = 100 * 365 * 86_400;

const toRule = ({ repeatIntervalSec, delaySec, enabled: _, ...row }: RuleRow): LoadedRule => ({
  ...row,
  repeatIntervalMs: Math.min(repeatIntervalSec, intervalSecMax) * 1000,
  delayMs: delaySec * 1000,
});

const notifies = ({ enabled, destinationNames }: RuleRow) => enabled && destinationNames.length > 0;

/** What is held of a tenant, with what makes its triggers ready. */
export interface HeldRules extends TenantRules {
  readonly fields: Fields;
  readonly lengths: ReadonlyMap<string, number>;
}

const ruleWeight = 500;

/** What was held, with what was read since. Triggers that have not changed stay compiled. */
export async function renewed(
  before: HeldRules | undefined,
  loaded: Loaded,
  fields: Fields,
  pace: Pace,
): Promise<HeldRules> {
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
    await pace();
    lengths.set(name, length);
    if (known.has(name) && !changed.has(name)) continue;
    const trigger = readableTrigger(name, type, createdMs, fields);
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
  const triggers = [...known.values()].flatMap(({ event }) => (event === undefined ? [] : [event]));
  const events = await triggerIndex(triggers, fields.events, { pace, before: kept?.events });
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
    events,
    comparisons: triggers.reduce((sum, { comparisons }) => sum + comparisons, 0),
    weight: [...lengths.values()].reduce((sum, length) => sum + length, rules.size * ruleWeight + events.bytes),
    fields,
    lengths,
  };
}

/** A trigger, unless what is stored of it cannot be read: then it matches nothing, and says so where it is shown. */
function readableTrigger(...stored: Parameters<typeof loadTrigger>): LoadedTrigger | undefined {
  try {
    return loadTrigger(...stored);
  } catch {
    return undefined;
  }
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
    for (const name of watchedNames(source.value)) {
      const there = found.get(name);
      if (there === undefined) found.set(name, [trigger]);
      else there.push(trigger);
    }
  }
  return found;
}
