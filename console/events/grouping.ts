import { create } from "@bufbuild/protobuf";
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

/** Grouping of an address without parameters; empty for a list. */
const usual = preference<string>("grouping", "alertname");

/** Tells whether an address with these parameters shows events as one without parameters does. */
export const isUsual = (parameters: URLSearchParams) =>
  parameters.size === 0 || (parameters.size === 1 && parameters.get("group") === usual.value);

/** Returns the address's grouping, or the usual one if it has no parameters; undefined for a list. Reads signals. */
export const groupingHere = (): string | undefined =>
  (address.value.parameters.size === 0 ? usual.value : parameterOf("group")) || undefined;

/** Groups the list of the address, and from now on every list of events that is opened without parameters; undefined for none. */
export function chooseGrouping(grouping: string | undefined): void {
  usual.value = grouping ?? "";
  setParameters({ group: grouping });
}

/** Writes the usual grouping into an address without parameters, so that adding a filter keeps it. */
export function writeUsualGrouping(): void {
  if (address.value.parameters.size === 0 && usual.value !== "") setParameters({ group: usual.value }, false);
}

/** Names a grouping, as in "Groups by …". */
export const groupingName = (grouping: string) => (grouping === byEntity ? "entity" : grouping);

/** Returns a group's value: the label's (undefined for those without it), or the entity's id. */
export function groupValue(grouping: string, { labels, entity = "" }: EventGroup): string | undefined {
  if (grouping === byEntity) return entity;
  return Object.hasOwn(labels, grouping) ? labels[grouping] : undefined;
}

/** Names a group. */
export function groupName(grouping: string, group: EventGroup): string {
  const value = groupValue(grouping, group);
  if (grouping === byEntity) return plainName(group.entityName ?? "") || (value ?? "");
  return value ?? `without ${grouping}`;
}

/** Returns the clause that finds a group's occurrences. */
export function clauseOfGroup(grouping: string, value: string | undefined): Clause {
  if (grouping === byEntity) {
    const kind = { case: "stringValue", value: value ?? "" } as const;
    return create(ClauseSchema, { filter: { field: "entity", operation: Operation.OP_EQUALS, value: { kind } } });
  }
  if (value !== undefined) return labelClause(grouping, value);
  const exists = { field: `labels.${grouping}`, operation: Operation.OP_EXISTS };
  return create(ClauseSchema, { noneOf: { clause: create(ClauseSchema, { filter: exists }) } });
}

/** Returns the link to a new silence of a group, with those filters of the list that are labels. Reads signals. */
export function silenceOfGroup(grouping: string, value = ""): string {
  const ofList = clausesHere().flatMap(matchersOf);
  if (grouping === byEntity) return silenceLink({ entity: value, matchers: ofList.join("\n") });
  return silenceLink({ matchers: [...new Set([equalityText(grouping, value), ...ofList])].join("\n") });
}
