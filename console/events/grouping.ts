import { create } from "@bufbuild/protobuf";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { EventGroup } from "#gen/belfry/events/v1/query_service_pb.ts";
import { address, linkTo, parameterOf, setParameters } from "../data/address.ts";
import { preference } from "../data/preferences.ts";
import { equalityText } from "../form/matcher-text.ts";
import { silenceLink } from "../silences/link.ts";
import { matchersOf } from "./clause-matchers.ts";
import { plainName } from "./entity-names.ts";
import { clausesHere } from "./query.ts";
import { labelClause } from "./terms.ts";

/** What the occurrences of a group have in common. */
export type Grouping = { readonly by: "label"; readonly label: string } | { readonly by: "entity" };

/** How events are grouped where the address says nothing at all, as its parameters say it; empty for a list. */
const usual = preference<string>("grouping", "group=alertname");

const isBare = () => address.value.parameters.size === 0;

/** The grouping of the address, or of one without parameters the usual; undefined for a list. Reads signals. */
export function groupingHere(): Grouping | undefined {
  const parameters = isBare() ? new URLSearchParams(usual.value) : undefined;
  const read = (name: string) => (parameters === undefined ? parameterOf(name) : parameters.get(name)) ?? "";
  if (read("by") === "entity") return { by: "entity" };
  const label = read("group");
  return label === "" ? undefined : { by: "label", label };
}

const parametersOf = (grouping: Grouping | undefined) => ({
  by: grouping?.by === "entity" ? "entity" : undefined,
  group: grouping?.by === "label" ? grouping.label : undefined,
});

/** Groups the list of the address, and from now on every list of events that is opened without parameters. */
export function chooseGrouping(grouping: Grouping | undefined): void {
  const parameters = parametersOf(grouping);
  usual.value = new URLSearchParams(
    Object.entries(parameters).filter((pair): pair is [string, string] => !!pair[1]),
  ).toString();
  setParameters(parameters);
}

/** Writes the usual grouping into an address that says nothing, so that filters which are added to it leave it as it is. */
export function writeUsualGrouping(): void {
  const grouping = isBare() ? groupingHere() : undefined;
  if (grouping !== undefined) setParameters(parametersOf(grouping), false);
}

/** Names a grouping, as in "Groups by …". */
export const groupingName = (grouping: Grouping) => (grouping.by === "entity" ? "entity" : grouping.label);

/** The value that the occurrences of a group have in common: of a label, undefined for those without it, or the entity's identifier. */
export const valueOf = (grouping: Grouping, group: EventGroup): string | undefined =>
  grouping.by === "entity"
    ? (group.entity ?? "")
    : Object.hasOwn(group.labels, grouping.label)
      ? group.labels[grouping.label]
      : undefined;

/** Names a group. */
export function groupName(grouping: Grouping, group: EventGroup): string {
  if (grouping.by === "entity") return plainName(group.entityName ?? "") || (group.entity ?? "");
  return valueOf(grouping, group) ?? `without ${grouping.label}`;
}

/** The clause that the occurrences of a group match. */
export function clauseOfGroup(grouping: Grouping, value: string | undefined): Clause {
  if (grouping.by === "entity") {
    const kind = { case: "stringValue", value: value ?? "" } as const;
    return create(ClauseSchema, { filter: { field: "entity", operation: Operation.OP_EQUALS, value: { kind } } });
  }
  if (value !== undefined) return labelClause(grouping.label, value);
  const exists = { field: `labels.${grouping.label}`, operation: Operation.OP_EXISTS };
  return create(ClauseSchema, { noneOf: { clause: create(ClauseSchema, { filter: exists }) } });
}

/** Returns the link to a silence of a group, with what the list is narrowed by as far as that is labels. Reads signals. */
export function silenceOfGroup(grouping: Grouping, value: string | undefined): string {
  const narrowed = clausesHere().flatMap(matchersOf);
  const own = grouping.by === "entity" ? [] : [equalityText(grouping.label, value ?? "")];
  const matchers = [...new Set([...own, ...narrowed])].join("\n");
  return silenceLink(grouping.by === "entity" ? { entity: value ?? "", matchers } : { matchers });
}

/** Returns the link to the entity that groups by entity are of; undefined for groups by a label. */
export const entityLink = (grouping: Grouping, value: string | undefined): string | undefined =>
  grouping.by === "entity" ? linkTo(["entities", value ?? ""]) : undefined;
