import type { Db } from "../../src/db/connect.ts";
import { eventKey, type ModelOccurrence } from "./model.ts";

/** Reads a tenant's occurrences by event, as the model keeps them. */
export async function storedEvents(sql: Db, tenant: string): Promise<Map<string, ModelOccurrence[]>> {
  const rows = await sql<
    { name: string; key: string; dimensions: Record<string, string>; occurrences: ModelOccurrence[] }[]
  >`
    select e.name, coalesce(e.dedup_key, '') as key, n.dimensions, jsonb_agg(jsonb_build_object('number', o.number, 'status', o.status,
      'severity', o.severity, 'acknowledged', o.acknowledged, 'type', o.type, 'summary', o.summary, 'body', o.body,
      'metadata', o.metadata, 'start', o.start_ms, 'lastSeen', o.last_seen_ms, 'end', o.end_ms, 'instances', o.instance_count,
      'expires', o.expires_ms, 'kept', coalesce(o.kept_open_ms, 0), 'by', o.closed_by) order by o.number) as occurrences
    from events e join entities n on n.tenant_id = e.tenant_id and n.id = e.entity_id
      join occurrences o on o.tenant_id = e.tenant_id and o.event_id = e.id
    where e.tenant_id = ${tenant} group by e.id, e.name, e.dedup_key, n.dimensions`;
  return new Map(rows.map((row) => [eventKey(row.name, row.dimensions, row.key), row.occurrences]));
}
