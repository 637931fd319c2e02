import type { JsonValue } from "@bufbuild/protobuf";
import type { TriggerType } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Values } from "../../clause/field.ts";
import { toPredicate } from "../../clause/to-predicate.ts";
import { type CompiledTrigger, compileTrigger, equalityKeys } from "../../clause/trigger.ts";
import type { EntityRow } from "../../entities/messages.ts";
import { storedTriggerType } from "../trigger-type.ts";
import { type Fields, type MatchRow, readsOf } from "./rows.ts";

/** A trigger of events, ready to be asked of rows. */
export interface EventTrigger extends CompiledTrigger<MatchRow> {
  readonly name: string;
  /** Whether it looks at the status: others match nothing that is closed. */
  readonly namesStatus: boolean;
  readonly readsEntity: boolean;
  readonly readsCount: boolean;
}

/** A trigger, ready for its source. */
export interface LoadedTrigger {
  readonly name: string;
  readonly createdMs: number;
  readonly type: TriggerType;
  /** Of a trigger of events. */
  readonly event: EventTrigger | undefined;
  /** Of another source that asks for some entities only: whether it means this one. */
  readonly means: ((entity: EntityRow) => boolean) | undefined;
}

/** Makes a trigger ready. @throws what `compileTrigger` does; what is stored has been checked */
export function loadTrigger(
  name: string,
  stored: JsonValue,
  createdMs: number,
  { events, entities }: Fields,
): LoadedTrigger {
  const type = storedTriggerType(stored);
  if (type.source.case !== "event") {
    const clause = type.source.value?.entityQuery?.clause;
    const means = clause && toPredicate(clause, "clause", entities);
    return { name, createdMs, type, event: undefined, means };
  }
  const compiled = compileTrigger(type.source.value.query?.clause, "clause", events);
  const reads = [...compiled.fields].map(readsOf);
  const event: EventTrigger = {
    ...compiled,
    name,
    namesStatus: compiled.fields.has("status"),
    readsEntity: reads.includes("entity"),
    readsCount: reads.includes("count"),
  };
  return { name, createdMs, type, event, means: undefined };
}

/** Finds the triggers of events that a row may match, by the equalities that they need. */
export interface TriggerIndex {
  /** Whether the fields that it looks at need the row's entity, or count. */
  readonly readsEntity: boolean;
  readonly readsCount: boolean;
  candidates(row: MatchRow): Set<EventTrigger>;
}

/** An index over triggers. Those that need no equality are candidates of every row. */
export function triggerIndex(triggers: Iterable<EventTrigger>, values: Values<MatchRow>): TriggerIndex {
  const always: EventTrigger[] = [];
  const byField = new Map<string, Map<string, EventTrigger[]>>();
  for (const trigger of triggers) {
    if (trigger.needs === undefined) always.push(trigger);
    for (const { field, key } of trigger.needs ?? []) {
      const byKey = byField.get(field) ?? new Map<string, EventTrigger[]>();
      byField.set(field, byKey);
      const there = byKey.get(key);
      if (there === undefined) byKey.set(key, [trigger]);
      else there.push(trigger);
    }
  }
  const fields = [...byField].flatMap(([name, byKey]) => {
    const field = values.field(name);
    return field === undefined ? [] : [{ field, byKey }];
  });
  const reads = [...byField.keys()].map(readsOf);
  return {
    readsEntity: reads.includes("entity"),
    readsCount: reads.includes("count"),
    candidates(row) {
      const found = new Set(always);
      for (const { field, byKey } of fields) {
        for (const key of equalityKeys(field.get(row))) for (const trigger of byKey.get(key) ?? []) found.add(trigger);
      }
      return found;
    },
  };
}
