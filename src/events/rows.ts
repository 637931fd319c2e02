import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import { type EventColumns, eventColumns } from "./fields.ts";
import type { Occurrence } from "./lifecycle.ts";

/** A row of occurrences. */
export interface StoredOccurrence
  extends Pick<
    Occurrence,
    "number" | "severity" | "status" | "acknowledged" | "type" | "summary" | "body" | "metadata"
  > {
  event_id: Buffer;
  start_ms: bigint;
  last_seen_ms: bigint;
  end_ms: bigint | null;
  instance_count: bigint;
  expires_ms: bigint | null;
  kept_open_ms: bigint | null;
}

/** An occurrence with what its event and entity say of it. */
export interface OccurrenceRow extends StoredOccurrence, EventColumns {
  entity_name: string;
  entity_dimensions: Record<string, string>;
  entity_metadata: Record<string, unknown>;
}

/** The columns of a StoredOccurrence, from o. */
export function storedColumns(db: Db): Fragment {
  return db`o.event_id, o.number, o.severity, o.status, o.acknowledged, o.type, o.summary, o.body, o.metadata,
    o.start_ms, o.last_seen_ms, o.end_ms, o.instance_count, o.expires_ms, o.kept_open_ms`;
}

/** The columns of an OccurrenceRow, from o (occurrences), e (events) and n (entities). */
export function occurrenceColumns(db: Db): Fragment {
  return db`${storedColumns(db)}, ${ofEvent(db)}`;
}

/** What the event and the entity of an OccurrenceRow say, from e (events) and n (entities). */
export function ofEvent(db: Db): Fragment {
  return db`${eventColumns(db)}, n.name as entity_name, n.dimensions as entity_dimensions, n.metadata as entity_metadata`;
}

/** The event and the entity of occurrences o. Left joins: PostgreSQL drops those that nothing reads. */
export function eventAndEntity(db: Db, tenantId: string): Fragment {
  return db`left join events e on e.tenant_id = ${tenantId} and e.id = o.event_id
    left join entities n on n.tenant_id = ${tenantId} and n.id = e.entity_id`;
}

/** The same of few occurrences o, each looked up by its key whatever PostgreSQL expects (design/statements). */
export function lookedUp(db: Db, tenantId: string): Fragment {
  return db`left join lateral (
      select * from events where tenant_id = ${tenantId} and id = o.event_id limit 1
    ) as e on true
    left join lateral (
      select id, name, dimensions, metadata, core_properties from entities
      where tenant_id = ${tenantId} and id = e.entity_id limit 1
    ) as n on true`;
}

/** Returns the row of an occurrence of this event. */
export function toRow(eventId: Buffer, occurrence: Occurrence): StoredOccurrence {
  const { startMs, lastSeenMs, endMs, instanceCount, expiresMs, keptOpenMs, ...same } = occurrence;
  return {
    event_id: eventId,
    ...same,
    start_ms: startMs,
    last_seen_ms: lastSeenMs,
    end_ms: endMs,
    instance_count: instanceCount,
    expires_ms: expiresMs,
    kept_open_ms: keptOpenMs,
  };
}

/** A row of occurrences as the lifecycle knows it. */
export function toOccurrence(row: StoredOccurrence): Occurrence {
  return {
    number: row.number,
    severity: row.severity,
    status: row.status,
    acknowledged: row.acknowledged,
    type: row.type,
    summary: row.summary,
    body: row.body,
    metadata: row.metadata,
    startMs: row.start_ms,
    lastSeenMs: row.last_seen_ms,
    endMs: row.end_ms,
    instanceCount: row.instance_count,
    expiresMs: row.expires_ms,
    keptOpenMs: row.kept_open_ms,
  };
}
