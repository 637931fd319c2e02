import type { Fragment } from "postgres";
import { ActiveCriteria, type EventQuery } from "#gen/belfry/events/v1/query_service_pb.ts";
import { toSql } from "../clause/to-sql.ts";
import { int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { invalidField } from "../errors.ts";
import { checkEnd, checkOpenStart } from "../rpc/time-range.ts";
import { eventResolver } from "./resolver.ts";
import { eventAndEntity } from "./rows.ts";

/** Rows of a statement: `from` names them o, with their event e and their entity n; `where` holds for those that match. */
export interface Matching {
  from: Fragment;
  where: Fragment;
  /** When the row counts, ms since the epoch. */
  timeMs: Fragment;
}

/** The occurrences that a query asks for, at the time that they were last seen. `path` is the query's place in the request. */
export function matchingOccurrences(db: Db, tenantId: string, query: EventQuery, path: string): Matching {
  const { start, end } = checkedRange(query, path);
  const overlap = query.activeCriteria === ActiveCriteria.BY_OVERLAP;
  const conditions: Fragment[] = [];
  if (start !== undefined) {
    conditions.push(overlap ? db`(o.end_ms is null or o.end_ms >= ${start})` : seen(db, ">=", start));
  }
  if (end !== undefined) conditions.push(overlap ? db`o.start_ms < ${end}` : seen(db, "<", end));
  return {
    from: db`occurrences o ${eventAndEntity(db)}`,
    where: all(db, [...conditions, ...asked(db, tenantId, query, path)]),
    timeMs: db`o.last_seen_ms` as Fragment,
  };
}

/** Fields that an instance has without its occurrence. */
const ownFields: ReadonlySet<string> = new Set(["severity", "status", "id", "name", "entity", "entityName"]);

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
): Matching {
  const { start, end } = checkedRange(query, path);
  const conditions: Fragment[] = [];
  if (start !== undefined) conditions.push(db`o.time_ms >= ${start}`);
  if (end !== undefined) conditions.push(db`o.time_ms < ${end}`);
  const own = query.clause === undefined && fields.every((name) => ownFields.has(name));
  return {
    // Without the join, which names a column outside of the primary key, the key's index alone is read.
    from: own
      ? db`instances o ${eventAndEntity(db)}`
      : db`(
      select i.tenant_id, i.event_id, i.number, i.time_ms, i.severity, i.status, c.acknowledged, c.type, c.summary, c.body,
        c.metadata, c.start_ms, c.last_seen_ms, c.end_ms, c.instance_count, c.seen_slot
      from instances i
        left join occurrences c on c.tenant_id = ${tenantId} and c.event_id = i.event_id and c.number = i.number
      where i.tenant_id = ${tenantId}
    ) o ${eventAndEntity(db)}`,
    where: all(db, [...conditions, ...asked(db, tenantId, query, path)]),
    timeMs: db`o.time_ms` as Fragment,
  };
}

/** Last sight from a time on, or before it: by the five minutes, over which there is an index, and exactly. */
function seen(db: Db, direction: ">=" | "<", ms: bigint): Fragment {
  return direction === ">="
    ? db`(o.seen_slot >= ${ms}::int8 / 300000 and o.last_seen_ms >= ${ms})`
    : db`(o.seen_slot <= ${ms}::int8 / 300000 and o.last_seen_ms < ${ms})`;
}

/** The bounds of a query's time range. @throws code 3 for one that is empty, or in seconds */
export function checkedRange({ timeRange }: EventQuery, path: string): { start?: bigint; end?: bigint } {
  const { start, end } = timeRange ?? {};
  if (start !== undefined && end !== undefined && start >= end) {
    throw invalidField(`${path}.timeRange`, "start must be before end");
  }
  if (end !== undefined) checkEnd(end, `${path}.timeRange.end`);
  else if (start !== undefined) checkOpenStart(start, `${path}.timeRange.start`);
  return { ...(start !== undefined && { start }), ...(end !== undefined && { end }) };
}

function asked(db: Db, tenantId: string, query: EventQuery, path: string): Fragment[] {
  const conditions = [db`o.tenant_id = ${tenantId}` as Fragment];
  if (query.severities.length > 0) conditions.push(db`o.severity = any(${int4Array(query.severities)}::int4[])`);
  if (query.statuses.length > 0) conditions.push(db`o.status = any(${int4Array(query.statuses)}::int4[])`);
  if (query.clause !== undefined) conditions.push(toSql(db, query.clause, `${path}.clause`, eventResolver(tenantId)));
  return conditions;
}

function all(db: Db, conditions: Fragment[]): Fragment {
  return conditions.reduce((left, right) => db`${left} and ${right}`);
}
