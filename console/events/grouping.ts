import { create } from "@bufbuild/protobuf";
import { computed, untracked } from "@preact/signals";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { EventGroup } from "#gen/belfry/events/v1/query_service_pb.ts";
import { address, parameterOf, setParameters } from "../data/address.ts";
import { preference } from "../data/preferences.ts";
import { equalityText } from "../form/matcher-text.ts";
import { silenceLink } from "../silences/link.ts";
import { matchersOf } from "./clause-matchers.ts";
import { plainName } from "./entity-names.ts";
import { clausesHere } from "./query.ts";
import { labelClause } from "./terms.ts";

/** Groups by entity; every other grouping is the name of a label. No label that the list can be filtered by holds `=`. */
export const byEntity = "=entity";
/** Stands in an address for a list, where an address without parameters would show groups. */
const asList = "=list";

/** Grouping of an address without parameters; empty for a list. */
const usual = preference<string>("grouping", "alertname");

/** Tells whether an address with these parameters shows events as one without parameters does. */
export const isUsual = (parameters: URLSearchParams) =>
  parameters.size === 0 || (parameters.size === 1 && parameters.get("group") === (usual.value || asList));

/** The address's grouping, or the usual one if it has no parameters; a choice in another tab does not change what is read here. */
const here = computed(() => {
  const grouping = address.value.parameters.size === 0 ? untracked(() => usual.value) : parameterOf("group");
  return grouping === asList ? "" : (grouping ?? "");
});

/** Returns the address's grouping; undefined for a list. Reads signals. */
export const groupingHere = (): string | undefined => here.value || undefined;

/** Groups the list of the address, and from now on every list of events that is opened without parameters; undefined for none. */
export function chooseGrouping(grouping: string | undefined): void {
  // What an address without parameters shows changes with this choice: going back must lead to what it showed.
  if (address.value.parameters.size === 0) setParameters({ group: here.value || asList }, false);
  usual.value = grouping ?? "";
  setParameters({ group: grouping });
}

/** Writes the usual grouping into an address without parameters, so that adding a filter keeps it. */
export function writeUsualGrouping(): void {
  if (address.value.parameters.size === 0 && here.value !== "") setParameters({ group: here.value }, false);
}

/** Names a grouping, as in "Groups by …". */
export const groupingName = (grouping: string) => (grouping === byEntity ? "entity" : grouping);

/** Returns a group's value: the label's (undefined for those without it), or the entity's id. */
export function groupValue(grouping: string, { labels, entity = "" }: EventGroup): string | undefined {
  if (grouping === byEntity) return entity;
  return Object.hasOwn(labels, grouping) ? labels[grouping] : undefined;
}

/** Names groups, no two alike: an entity whose short name is taken gets its full name, and the id too if that is taken as well. */
export function groupNames(grouping: string, groups: readonly EventGroup[]): string[] {
  if (grouping !== byEntity) return groups.map((group) => groupValue(grouping, group) ?? `without ${grouping}`);
  const whole = groups.map(({ entity = "", entityName = "" }) => entityName || entity);
  const plain = groups.map(({ entityDisplayName = "" }, at) => entityDisplayName || plainName(whole[at] ?? ""));
  const [plainShared, wholeShared] = [sharedIn(plain), sharedIn(whole)];
  return groups.map(({ entity = "" }, at) => {
    const [short = "", long = ""] = [plain[at], whole[at]];
    if (!plainShared.has(short)) return short;
    return wholeShared.has(long) ? `${long} (${entity})` : long;
  });
}

/** Returns the texts that occur more than once. */
const sharedIn = (texts: readonly string[]) => new Set(texts.filter((text, at) => texts.indexOf(text) !== at));

/** Returns the clause that finds a group's occurrences. */
export function clauseOfGroup(grouping: string, value: string | undefined): Clause {
  if (grouping === byEntity) {
    const kind = { case: "stringValue", value: value ?? "" } as const;
    return create(ClauseSchema, { filter: { field: "entity", operation: Operation.OP_EQUALS, value: { kind } } });
  }
  return labelClause(grouping, value ?? "");
}

/**
 * Returns the link to a new silence of a group, with those filters of the list that are labels; undefined where it would say of every
 * label only that it is absent, which no silence may. Reads signals.
 */
export function silenceOfGroup(grouping: string, value = ""): string | undefined {
  const ofList = clausesHere().flatMap(matchersOf);
  if (grouping === byEntity) return silenceLink({ entity: value, matchers: ofList.join("\n") });
  const matchers = [...new Set([equalityText(grouping, value), ...ofList])];
  return matchers.every(saysAbsent) ? undefined : silenceLink({ matchers: matchers.join("\n") });
}

/** Tells whether a matcher of this page says that a label is absent. */
const saysAbsent = (matcher: string) => /(?<![!])=""$/.test(matcher);
