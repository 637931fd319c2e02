import { create, equals } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import type { TimeRange } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { ActiveCriteria, type EventQuery, EventQuerySchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { PageInputSchema } from "#gen/belfry/paging/v1/paging_pb.ts";
import { checkClause } from "../clause/check.ts";
import { askedOf, type Checked } from "../clause/checked.ts";
import { clauseForms, toSql } from "../clause/to-sql.ts";
import { int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { invalidField, invalidFields } from "../errors.ts";
import { checkEndMs, checkOpenStart } from "../rpc/times.ts";
import { asksForOpen, candidatesOfMembers, candidatesOfQuery, candidatesOfTrigger } from "./candidate-sources.ts";
import { type Candidates, candidatesOfClause, choice, fewCandidates, someCandidates } from "./candidates.ts";
import { columnKeys, listed } from "./columns.ts";
import { eventFieldDoubt, isOfInstance } from "./fields.ts";
import type { OccurrenceKey } from "./occurrences.ts";
import { eventResolver } from "./resolver.ts";
import { eventAndEntity, lookedUp } from "./rows.ts";

/** Rows of a statement: `from` names them o, with their event e and their entity n; `where` holds for those that match. */
export interface MatchingOccurrences {
  from: Fragment;
  where: Fragment;
  /** When the row counts, ms since the epoch. */
  timeMs: Fragment;
}

/** A query whose rules have been checked. */
export interface ReadQuery {
  /** Reads all that there is, by what PostgreSQL takes for the best index. */
  all(): MatchingOccurrences;
  /** Reads these candidates alone, a query of `event_id` and `number`, each by its key. */
  among(keys: Fragment): MatchingOccurrences;
  /** Reads these rows of occurrences alone, a query. */
  ofRows(occurrences: Fragment): Omit<MatchingOccurrences, "timeMs">;
  /** Where what matches is, as far as the query says. */
  candidates(): Candidates | undefined;
  /** Which field of its clause was hardly meant; empty: none. */
  hint: string;
}

/** Reads a query for the occurrences at the time that they were last seen. `path` is its place in the request. @throws code 3 */
export function readQuery(db: Db, tenantId: string, query: EventQuery, path: string): ReadQuery {
  const { start, end } = checkedRange(query, path);
  const overlap = query.activeCriteria === ActiveCriteria.BY_OVERLAP;
  const conditions: Fragment[] = [];
  if (start !== undefined) {
    conditions.push(overlap ? db`(o.end_ms is null or o.end_ms >= ${start})` : seen(db, ">=", start));
  }
  if (end !== undefined) conditions.push(overlap ? db`o.start_ms < ${end}` : seen(db, "<", end));
  conditions.push(...askedOfRow(db, tenantId, query));
  const clause = query.clause && checkClause(query.clause, `${path}.clause`);
  const names = clause === undefined ? [] : askedOf(clause).map(({ field }) => field);
  const forms = clause && clauseForms(db, clause, eventResolver(tenantId));
  const timeMs = overlap ? withinRange(db, { start, end }) : (db`o.last_seen_ms` as Fragment);
  // By occurrences_open.
  const open = asksForOpen(query) ? [db`(o.end_ms is null and o.number >= 0)` as Fragment] : [];
  const where = (form: "general" | "indexed") =>
    sqlJoin(
      db,
      [...conditions, ...(form === "indexed" ? open : []), ...(forms === undefined ? [] : [forms[form]()])],
      "and",
    );
  return {
    hint: eventFieldDoubt(names),
    all: () => ({ from: db`occurrences o ${eventAndEntity(db, tenantId)}`, where: where("indexed"), timeMs }),
    // The order leaves the primary key alone: by `number = …` an unanalysed table took occurrences_start, and read all of the event's
    // entries for each of its 8,000 occurrences.
    among: (keys) => ({
      from: db`(${keys}) as candidate cross join lateral (
          select * from occurrences
          where tenant_id = ${tenantId} and event_id = candidate.event_id and number >= candidate.number
            and number <= candidate.number
          order by number limit 1
        ) as o ${lookedUp(db, tenantId)}`,
      where: where("general"),
      timeMs,
    }),
    ofRows: (occurrences) => ({
      from: forms === undefined ? db`(${occurrences}) as o` : db`(${occurrences}) as o ${lookedUp(db, tenantId)}`,
      where: where("general"),
    }),
    candidates: () =>
      choice([
        clause && candidatesOfClause(db, clause, candidatesOfQuery(db, tenantId)),
        candidatesOfMembers(db, query),
      ]),
  };
}

/** The occurrences that a query asks for: candidates by their keys, or all that there is. @throws as `readQuery` */
export async function matchingOccurrences(
  db: Db,
  tenantId: string,
  query: EventQuery,
  path: string,
  signal?: AbortSignal,
): Promise<MatchingOccurrences> {
  const read = readQuery(db, tenantId, query, path);
  const candidates = read.candidates();
  const some =
    (await fewCandidates(db, tenantId, candidates, signal)) ?? (await someCandidates(db, tenantId, candidates, signal));
  return some === undefined ? read.all() : read.among(some.keys);
}

/** Last sight, or the moment of a time range that is next to it: what is alive in the range may be seen last outside of it. */
function withinRange(db: Db, { start, end }: TimeBounds): Fragment {
  const from = start === undefined ? db`o.last_seen_ms` : db`greatest(o.last_seen_ms, ${start}::bigint)`;
  return (end === undefined ? from : db`least(${from}, ${end - 1n}::bigint)`) as Fragment;
}

/** What an instance has of its occurrence, c. */
const ofOccurrence = listed(
  columnKeys.filter((key) => !["number", "severity", "status"].includes(key)),
  "c.",
);

/**
 * The instances within a query's time range, each with the severity and status that it was sent with; the query's other
 * members ask about the occurrence that it counts in. `fields`: names of those that the statement reads.
 */
export function matchingInstances(
  db: Db,
  tenantId: string,
  query: EventQuery,
  path: string,
  fields: readonly string[],
): MatchingOccurrences {
  const { start, end } = checkedRange(query, path);
  const conditions: Fragment[] = [];
  if (start !== undefined) conditions.push(db`o.time_ms >= ${start}`);
  if (end !== undefined) conditions.push(db`o.time_ms < ${end}`);
  const asked = askedOfRow(db, tenantId, query);
  if (query.clause !== undefined) asked.push(toSql(db, query.clause, `${path}.clause`, eventResolver(tenantId)));
  const own = query.clause === undefined && fields.every(isOfInstance);
  return {
    // Without the join, which names a column outside of the primary key, the key's index alone is read.
    from: own
      ? db`instances o ${eventAndEntity(db, tenantId)}`
      : db`(
      select i.tenant_id, i.event_id, i.number, i.time_ms, i.severity, i.status, ${ofOccurrence(db)}, c.seen_slot
      from instances i
        left join occurrences c on c.tenant_id = ${tenantId} and c.event_id = i.event_id and c.number = i.number
      where i.tenant_id = ${tenantId}
    ) o ${eventAndEntity(db, tenantId)}`,
    where: sqlJoin(db, [...conditions, ...asked], "and"),
    timeMs: db`o.time_ms` as Fragment,
  };
}

/** Last sight from a time on, or before it: by the five minutes, over which there is an index, and exactly. */
function seen(db: Db, direction: ">=" | "<", ms: bigint): Fragment {
  return direction === ">="
    ? db`(o.seen_slot >= ${ms}::int8 / 300000 and o.last_seen_ms >= ${ms})`
    : db`(o.seen_slot <= ${ms}::int8 / 300000 and o.last_seen_ms < ${ms})`;
}

interface TimeBounds {
  start: bigint | undefined;
  end: bigint | undefined;
}

/** The bounds of a query's time range. @throws code 3 for one that is empty, or in seconds */
export function checkedRange({ timeRange }: EventQuery, path: string): TimeBounds {
  const { start, end } = timeRange ?? {};
  if (start !== undefined && end !== undefined && start >= end) {
    throw invalidField(`${path}.timeRange`, "start must be before end", FieldRule.START_BEFORE_END);
  }
  if (end !== undefined) checkEndMs(end, `${path}.timeRange.end`);
  else if (start !== undefined) checkOpenStart(start, `${path}.timeRange.start`);
  return { start, end };
}

/** Members of a query that some calls have no use for. */
const partial = {
  sortBy: ({ sortBy }: EventQuery) => sortBy.length > 0,
  pageInput: ({ pageInput }: EventQuery) =>
    pageInput !== undefined && !equals(PageInputSchema, pageInput, create(PageInputSchema)),
  fields: ({ fields }: EventQuery) => fields.length > 0,
};

/** Refuses members of a query that a call would ignore. @throws code 3 */
export function refuseUnused(query: EventQuery, path: string, members: readonly (keyof typeof partial)[]): void {
  const broken = members
    .filter((member) => partial[member](query))
    .map((member) => ({
      path: `${path}.${member}`,
      rule: "has no meaning here: leave it out",
      id: FieldRule.EXCLUDED,
    }));
  if (broken.length > 0) throw invalidFields(broken);
}

/** What a query asks of an occurrence or instance itself. */
function askedOfRow(db: Db, tenantId: string, query: EventQuery): Fragment[] {
  const conditions = [db`o.tenant_id = ${tenantId}` as Fragment];
  if (query.severities.length > 0) conditions.push(db`o.severity = any(${int4Array(query.severities)}::int4[])`);
  if (query.statuses.length > 0) conditions.push(db`o.status = any(${int4Array(query.statuses)}::int4[])`);
  return conditions;
}

/**
 * The occurrences that were last seen in a time range, the latest first, to the five minutes; at most `most`: of all, or of those
 * among which a clause says that its matches are. `path`: of the message that holds the range. @throws code 3 for a range that is
 * empty, or in seconds
 */
export async function seenOccurrences(
  db: Db,
  tenantId: string,
  timeRange: TimeRange,
  { clause, most }: { clause: Checked; most: number },
  signal: AbortSignal,
): Promise<OccurrenceKey[]> {
  const read = readQuery(db, tenantId, create(EventQuerySchema, { timeRange }), "");
  const candidates = candidatesOfClause(db, clause, candidatesOfTrigger(db, tenantId));
  const few = await fewCandidates(db, tenantId, choice([candidates, read.candidates()]), signal);
  // All of them by occurrences_seen, backwards.
  const from = few === undefined ? db`occurrences o` : read.among(few.keys).from;
  const rows = await cancelOn(
    db<{ event_id: Buffer; number: number }[]>`
      select o.event_id, o.number from ${from} where ${read.all().where} order by o.seen_slot desc limit ${most}`,
    signal,
  );
  return rows.map(({ event_id, number }) => ({ eventId: event_id, number }));
}
