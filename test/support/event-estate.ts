import type { Db } from "../../src/db/connect.ts";

/** What an estate holds beside the events of one host, which are the same in all. */
export interface Estate {
  /** Hosts, each with an open event; one in twenty is in the zone `z1`, as far as 200. */
  hosts: number;
  /** Closed occurrences of the last month, of events of their own. */
  closed: number;
}

/** The time that an estate is of. */
export const estateMs = 1_790_000_000_000;
const slotMs = 300_000;
const monthMs = 30 * 86_400_000;

/** Ids of 20 bytes of a kind of thing, by its number. */
const idsOf = (db: Db, tenantId: string, kind: string, i = db`i`) =>
  db`substr(sha256(convert_to(${tenantId}::text || ${kind}::text || ${i}, 'UTF8')), 1, 20)`;

/**
 * Fills a tenant: host `i` has the event `event i` of the type `type i`, open, with the metadata `ticket: T-i`, seen last in the five
 * minutes `i / 20` before `estateMs`. So what one host, name or ticket asks for is the same however large the estate is.
 */
export async function fillEstate(db: Db, tenantId: string, { hosts, closed }: Estate): Promise<void> {
  const host = idsOf(db, tenantId, "host");
  const event = idsOf(db, tenantId, "event");
  const old = idsOf(db, tenantId, "old");
  await db`
    insert into entities (tenant_id, id, name, dimensions, metadata, core_properties, created_ms, updated_ms, liveness_ms)
    select ${tenantId}::uuid, ${host}, 'Machine ' || i,
      jsonb_build_object('source', 'host-' || i, 'zone', case when i % 20 = 1 and i < 4000 then 'z1' else 'z2' end),
      jsonb_build_object('rack', 'r-' || i), jsonb_build_object('device', jsonb_build_array('device-' || i)), 0, 0, ${estateMs}::int8
    from generate_series(1, ${hosts}::int4) as i`;
  await db`
    insert into events (tenant_id, id, entity_id, name, dedup_key, alert_labels)
    select ${tenantId}::uuid, ${event}, ${host}, 'event ' || i, 'key ' || i || '.',
      case when i % 100 = 7 then json_build_object('pod', 'pod-' || i) end
    from generate_series(1, ${hosts}::int4) as i`;
  await db`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
      last_seen_ms, instance_count)
    select ${tenantId}::uuid, ${event}, 1, i % 3 + 3, 1, false, 'type ' || i, 'summary', '',
      jsonb_build_object('ticket', 'T-' || i, 'tags', jsonb_build_array('tag-' || i)),
      ${estateMs}::int8 - i / 20 * ${slotMs}::int8 - 1000, ${estateMs}::int8 - i / 20 * ${slotMs}::int8, 1
    from generate_series(1, ${hosts}::int4) as i`;
  await db`
    insert into events (tenant_id, id, entity_id, name)
    select ${tenantId}::uuid, ${old}, ${idsOf(db, tenantId, "host", db`(i % ${hosts - 100}::int4 + 101)`)}, 'old ' || i % 100
    from generate_series(1, ${Math.ceil(closed / 20)}::int4) as i`;
  await db`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
      last_seen_ms, end_ms, instance_count)
    select ${tenantId}::uuid, ${old}, n, 4, 3, false, 'old', '', '', '{"ticket": "old"}', time_ms - 1000, time_ms, time_ms, 1
    from generate_series(1, ${Math.ceil(closed / 20)}::int4) as i, generate_series(1, 20) as n,
      lateral (select ${estateMs}::int8 - (i * 20 + n) * ${Math.floor(monthMs / Math.max(closed, 1))}::int8) as at (time_ms)`;
}
