import { create, fromJsonString, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { computed } from "@preact/signals";
import { type Clause, ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { type Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { ActiveCriteria, type EventQuerySchema, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { address, listOf, listText, parameterOf, setParameters } from "../data/address.ts";
import { answerHere } from "../data/last-answers.ts";
import { sortHere } from "../ui/sort.ts";
import { timeRangeOf } from "../ui/time-range.tsx";
import type { Sort } from "./list-rows.ts";
import { clausesOfTerms, terms } from "./terms.ts";

/** A query as it is sent. */
export type QueryInit = Omit<MessageInitShape<typeof EventQuerySchema>, "clause" | "$typeName"> & { clause?: Clause };

/** Filters of the list, each a parameter of the address. Without any, the list has the open occurrences. */
export const filters = ["severity", "status", "acknowledged", "entityName", "name"] as const;
export type Filter = (typeof filters)[number];

/** Returns the chosen values of a filter. Where statuses are neither chosen nor left out: open, and no status. `any` chooses none. */
export function chosen(filter: Filter): string[] {
  const values = listOf(filter);
  if (filter === "status" && values.length + excluded(filter).length === 0)
    return [String(Status.OPEN), String(Status.DEFAULT)];
  return values.filter((value) => value !== "any");
}

/** The parameters of the values that are left out. */
const leavingOut: Readonly<Record<Filter, string>> = {
  severity: "notSeverity",
  status: "notStatus",
  acknowledged: "notAcknowledged",
  entityName: "notEntityName",
  name: "notName",
};

/** Returns the values of a filter that are left out. */
export const excluded = (filter: Filter): string[] => listOf(leavingOut[filter]);

/**
 * Chooses the values of a filter, and those of the others that are left out. Without a choice of statuses the open ones are listed: to
 * list all is a choice of its own, and to leave some out lists all others.
 */
export function choose(filter: Filter, values: readonly string[], without: readonly string[] = excluded(filter)): void {
  const left = without.filter((value) => !values.includes(value));
  const openOnes = filter === "status" && parameterOf(filter) === null;
  const wereLeft = excluded(filter).length > 0;
  const beginsToLeave = openOnes && !wereLeft && left.length > 0;
  const none = filter === "status" && !(openOnes && (wereLeft || beginsToLeave)) ? "any" : undefined;
  setParameters({
    [filter]: values.length === 0 || beginsToLeave ? none : listText(values),
    [leavingOut[filter]]: listText(left),
  });
}

/** Returns how many filters narrow the list. */
export const narrowingCount = () =>
  filters.filter((filter) => parameterOf(filter) !== null || excluded(filter).length > 0).length;

/** Parameters that say how events are shown, not which. */
export const displayed: ReadonlySet<string> = new Set(["columns", "facets", "group", "sort", "wide"]);

/** Names an answer about what the query of the address finds, however that is shown. */
export function answerToQuery(name: string): string {
  const asked = [...address.peek().parameters].filter(([parameter]) => !displayed.has(parameter));
  return answerHere(name, new URLSearchParams(asked));
}

/** The clause of the address; undefined without one, or when it cannot be read. */
export const ownClause = computed((): Clause | undefined => clauseOf(parameterOf("where")));

export function clauseOf(text: string | null): Clause | undefined {
  try {
    return readClause(text);
  } catch {
    return undefined;
  }
}

/** The same for a search. @throws code 3 when it cannot be read: a search without it would find what was not asked for */
export function readClause(text: string | null): Clause | undefined {
  if (text === null || text === "") return undefined;
  try {
    return fromJsonString(ClauseSchema, text);
  } catch {
    const message = "The conditions in this address cannot be read, so nothing was searched. Set conditions again.";
    throw new ConnectError(message, Code.InvalidArgument);
  }
}

export const clauseText = (clause: Clause) => toJsonString(ClauseSchema, clause);

/** Order of the list. Unless the address has another: unacknowledged first, then the worst, then the newest. */
export const sort = computed((): Sort => sortHere() ?? { key: "severity", descending: true, acknowledgedLast: true });

const equalsOneOf = (filter: Filter, values: readonly string[]) =>
  create(ClauseSchema, { oneOf: { field: filter, values: values.map((value) => valueOf(filter, value)) } });

/** Reads a filter's values, which an address written by hand may hold in words. @throws code 3 for one that is no number, as readClause */
function readNumbers(filter: Filter, values: readonly string[]): void {
  const wrong = values.find((value) => !/^\d{1,2}$/.test(value));
  if (wrong === undefined) return;
  const message = `"${wrong}" in this address is no number of a ${filter}, so nothing was searched. Choose from the filters.`;
  throw new ConnectError(message, Code.InvalidArgument);
}

/** Returns the value of a filter as clauses have it. */
function valueOf(filter: Filter, text: string): Value {
  if (filter === "acknowledged") return create(ValueSchema, { kind: { case: "boolValue", value: text === "true" } });
  if (filter === "entityName" || filter === "name")
    return create(ValueSchema, { kind: { case: "stringValue", value: text } });
  return create(ValueSchema, { kind: { case: "numberValue", value: Number(text) } });
}

/** The query of the address, without the choice of one filter or label where facets are counted. Reads signals. @throws as readClause */
export function queryOf(without?: Filter, withoutLabel?: string): QueryInit {
  const of = (filter: Filter) => (filter === without ? [] : chosen(filter));
  // Throws where `ownClause` has none because it cannot be read.
  readClause(parameterOf("where"));
  for (const filter of ["severity", "status"] as const) readNumbers(filter, [...chosen(filter), ...excluded(filter)]);
  const clauses = clausesHere(without, withoutLabel);
  const timeRange = timeRangeOf(parameterOf("range"));
  return {
    severities: of("severity").map((value) => Number(value) as Severity),
    statuses: of("status").map((value) => Number(value) as Status),
    ...(clauses.length > 0 && { clause: allOf(clauses) }),
    ...(timeRange && { timeRange, activeCriteria: ActiveCriteria.BY_OVERLAP }),
  };
}

/** Returns the clauses of that query, all of which hold. Reads signals. */
export function clausesHere(without?: Filter, withoutLabel?: string): Clause[] {
  const of = (filter: Filter) => (filter === without ? [] : chosen(filter));
  const clauses: Clause[] = ownClause.value ? [ownClause.value] : [];
  const acknowledged = of("acknowledged");
  if (acknowledged.length === 1) clauses.push(acknowledgedClause(acknowledged[0] === "true"));
  for (const filter of ["entityName", "name"] as const)
    if (of(filter).length > 0) clauses.push(equalsOneOf(filter, of(filter)));
  for (const filter of filters) {
    const out = filter === without ? [] : excluded(filter);
    if (out.length > 0) clauses.push(create(ClauseSchema, { noneOf: { clause: equalsOneOf(filter, out) } }));
  }
  clauses.push(...clausesOfTerms(terms(), withoutLabel));
  return clauses;
}

/** Returns a clause that matches acknowledged occurrences, or unacknowledged ones. */
export function acknowledgedClause(acknowledged: boolean): Clause {
  const value = create(ValueSchema, { kind: { case: "boolValue", value: acknowledged } });
  return create(ClauseSchema, { filter: { field: "acknowledged", operation: Operation.OP_EQUALS, value } });
}

/** Returns a clause that holds where all of these do. */
export function allOf(clauses: Clause[]): Clause {
  const [first] = clauses;
  return clauses.length === 1 && first !== undefined ? first : create(ClauseSchema, { allOf: { clauses } });
}

/** Returns the order of a search: the list's, then by time, then by id, which keeps pages apart. */
export function sortBy({ key, descending, acknowledgedLast }: Sort) {
  const by = (field: string, down: boolean) => ({ byField: { field, order: down ? SortOrder.DESC : SortOrder.ASC } });
  return [
    ...(acknowledgedLast ? [by("acknowledged", false)] : []),
    by(key, descending),
    ...(key === "lastSeen" ? [] : [by("lastSeen", true)]),
  ];
}
