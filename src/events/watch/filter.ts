import { create } from "@bufbuild/protobuf";
import {
  ActiveCriteria,
  Change,
  type EventQuery,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { checkClause } from "../../clause/check.ts";
import { decided, type Later } from "../../clause/expression.ts";
import { pacedPredicateOf } from "../../clause/to-predicate.ts";
import type { Pace } from "../../event-loop.ts";
import type { FeedChange, Replaced } from "../feed.ts";
import type { EventRow } from "../fields.ts";
import { checkedRange } from "../matching.ts";
import { selection, toEvent } from "../messages.ts";
import { eventResolver } from "../resolver.ts";

const kinds = { created: Change.CREATED, updated: Change.UPDATED, closed: Change.CLOSED };

/** A change with the occurrence's row, as it is now. */
export interface ChangedRow {
  change: FeedChange;
  row: EventRow;
  /** About how much memory the row takes. */
  bytes: number;
  /** How many messages about it wait for clients. */
  waiting: number;
}

/** What the watches of a query are sent. */
export interface Filter {
  matches(changed: ChangedRow, pace: Pace): Later<boolean>;
  /** The message about a change that matches, without its cursor. */
  message(changed: ChangedRow): WatchEventsResponse;
}

/** The filter of a query: an occurrence that matched before a change or matches after it. @throws code 3 for a bad query. */
export function watchFilter(tenantId: string, query: EventQuery): Filter {
  const matches = predicate(tenantId, query);
  const shown = selection(query.fields.map(({ field }) => field));
  return {
    matches({ change, row }, pace) {
      const before = () => {
        const earlier = rowBefore(row, change);
        return earlier === "unknown" || (earlier !== undefined && matches(earlier, pace));
      };
      const after = matches(rowAfter(row, change), pace);
      return typeof after === "boolean" ? after || before() : after.then((found) => found || before());
    },
    message({ change, row }) {
      const after = rowAfter(row, change);
      const event = toEvent(after, [after], after.count, tenantId, shown);
      return create(WatchEventsResponseSchema, { change: kinds[change.kind], event });
    },
  };
}

/** The row with the state that the change gave it; its texts are those of now. */
function rowAfter(row: EventRow, { after, lastSeenMs, instanceCount }: FeedChange): EventRow {
  const { severity, status, acknowledged } = after;
  return { ...row, severity, status, acknowledged, last_seen_ms: lastSeenMs, instance_count: instanceCount };
}

/** The row as it was before the change: what the change did not replace is as it is now. Undefined when the change made it. */
function rowBefore(row: EventRow, change: FeedChange): EventRow | "unknown" | undefined {
  const { before, earlier } = change;
  if (before === undefined) return undefined;
  const { severity, status, acknowledged } = before;
  const { lastSeenMs, instanceCount, replaced = {} } = earlier ?? { ...change, replaced: undefined };
  if (replaced === "unknown") return "unknown";
  const { startMs, endMs, type = row.type, summary = row.summary, body = row.body } = replaced;
  return {
    ...row,
    severity,
    status,
    acknowledged,
    type,
    summary,
    body,
    metadata: metadataBefore(row.metadata, replaced),
    start_ms: startMs === undefined ? row.start_ms : BigInt(startMs),
    end_ms: endMs === undefined ? row.end_ms : endMs === null ? null : BigInt(endMs),
    last_seen_ms: lastSeenMs,
    instance_count: instanceCount,
  };
}

function metadataBefore(now: EventRow["metadata"], { metadata, added = [] }: Replaced): EventRow["metadata"] {
  if (metadata === undefined && added.length === 0) return now;
  const gone = new Set(added);
  // Not by assignment: a key may be called __proto__.
  return Object.fromEntries([
    ...Object.entries(now).filter(([key]) => !gone.has(key)),
    ...Object.entries(metadata ?? {}),
  ]);
}

function predicate(tenantId: string, query: EventQuery): (row: EventRow, pace: Pace) => Later<boolean> {
  const { start, end } = checkedRange(query, "query");
  const overlap = query.activeCriteria === ActiveCriteria.BY_OVERLAP;
  const severities = new Set<number>(query.severities);
  const statuses = new Set<number>(query.statuses);
  const place = "query.clause";
  const clause = query.clause && pacedPredicateOf(checkClause(query.clause, place), eventResolver(tenantId));
  return (row, pace) => {
    if (severities.size > 0 && !severities.has(row.severity)) return false;
    if (statuses.size > 0 && !statuses.has(row.status)) return false;
    const lastMs = overlap ? row.end_ms : row.last_seen_ms;
    if (start !== undefined && lastMs !== null && lastMs < start) return false;
    if (end !== undefined && (overlap ? row.start_ms : row.last_seen_ms) >= end) return false;
    if (clause === undefined) return true;
    const found = clause(row, pace);
    return found instanceof Promise ? found.then((answer) => decided(answer, place)) : decided(found, place);
  };
}
