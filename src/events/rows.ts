import type { Fragment } from "postgres";
import type { Db } from "../db/connect.ts";
import { columnKeys, listed, marked, type StoredOccurrence } from "./columns.ts";
import { type EventColumns, eventColumns } from "./fields.ts";

/** An occurrence with what its event and entity say of it. */
export interface OccurrenceRow extends StoredOccurrence, EventColumns {
  entity_name: string;
  entity_dimensions: Record<string, string>;
  entity_metadata: Record<string, unknown>;
}

const ownColumns = listed(columnKeys, "o.");

/** The columns of a StoredOccurrence, from o. */
export const storedColumns = (db: Db): Fragment => db`o.event_id, ${ownColumns(db)}`;

/** The columns that lists of many occurrences show, beside the event's id: none that may be large. */
export const listColumns = listed(marked({ search: true }));

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
