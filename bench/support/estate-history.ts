import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { bigintArray, byteaArray, int4Array, jsonArray, textArray } from "../../src/db/batch.ts";
import type { Db, Sql } from "../../src/db/connect.ts";
import { entityId, eventIds } from "../../src/entities/identity.ts";
import { estate, type Report } from "../load/estate.ts";
import { insertEntities } from "./entity-table.ts";

const chunk = 20_000;
const dayMs = 86_400_000;

interface Occurrence {
  eventId: Buffer;
  number: number;
  first: Report;
  last: Report;
  count: number;
}

interface NewEvent {
  eventId: Buffer;
  entityId: Buffer;
  name: string;
}

interface Instance {
  eventId: Buffer;
  timeMs: number;
  severity: number;
  status: number;
  number: number;
}

/** What was filled in. */
export interface History {
  occurrences: number;
  instances: number;
  /** Time of the last report, ms since the epoch. */
  endMs: number;
}

/**
 * Writes what an estate has reported within `days` until now: `count` occurrences and their instances, as the way in would
 * have stored them, by statements of a chunk each.
 */
export async function fillEvents(db: Sql, tenantId: string, count: number, days: number): Promise<History> {
  const { entities, reports } = estate();
  const ids = entities.map(({ dimensions }) => entityId(tenantId, dimensions));
  await insertEntities(db, tenantId, entities, ids);
  // An occurrence has ten reports on average.
  const perSec = (count * 10) / ((days * dayMs) / 1000);
  const startMs = Date.now() - days * dayMs;
  const events = new Map<string, { id: Buffer; number: number }>();
  const open = new Map<string, Occurrence>();
  let closed: Occurrence[] = [];
  let instances: Instance[] = [];
  let newEvents: NewEvent[] = [];
  let made = 0;
  let stored = 0;
  let endMs = 0;

  async function flush() {
    await insertEvents(db, tenantId, newEvents);
    newEvents = [];
    await insertInstances(db, tenantId, instances);
    stored += instances.length;
    instances = [];
    await insertOccurrences(db, tenantId, closed, startMs);
    closed = [];
  }

  for (const report of reports(perSec)) {
    const { entity, name, atMs, severity, status } = report;
    const key = `${entity} ${name}`;
    let occurrence = open.get(key);
    if (occurrence === undefined) {
      if (made === count) break;
      let event = events.get(key);
      if (event === undefined) {
        const { eventId } = eventIds(tenantId, entities[entity]?.dimensions ?? {}, name);
        event = { id: eventId, number: 0 };
        events.set(key, event);
        newEvents.push({ eventId, entityId: ids[entity] as Buffer, name });
      }
      made += 1;
      event.number += 1;
      occurrence = { eventId: event.id, number: event.number, first: report, last: report, count: 0 };
      open.set(key, occurrence);
    }
    occurrence.last = report;
    occurrence.count += 1;
    endMs = startMs + atMs;
    instances.push({ eventId: occurrence.eventId, timeMs: endMs, severity, status, number: occurrence.number });
    if (status === Status.CLOSED) {
      open.delete(key);
      closed.push(occurrence);
    }
    if (instances.length === chunk) await flush();
  }
  closed.push(...open.values());
  await flush();
  await db.unsafe("vacuum analyze entities, events, occurrences, instances");
  return { occurrences: made, instances: stored, endMs };
}

async function insertEvents(db: Db, tenantId: string, events: readonly NewEvent[]): Promise<void> {
  await db`
    insert into events (tenant_id, id, entity_id, name)
    select ${tenantId}::uuid, made.*
    from unnest(
      ${byteaArray(events.map(({ eventId }) => eventId))}::bytea[],
      ${byteaArray(events.map(({ entityId }) => entityId))}::bytea[],
      ${textArray(events.map(({ name }) => name))}::text[]
    ) as made`;
}

async function insertInstances(db: Db, tenantId: string, instances: readonly Instance[]): Promise<void> {
  await db`
    insert into instances (tenant_id, event_id, time_ms, severity, status, number)
    select ${tenantId}::uuid, made.*
    from unnest(
      ${byteaArray(instances.map(({ eventId }) => eventId))}::bytea[],
      ${bigintArray(instances.map(({ timeMs }) => BigInt(timeMs)))}::bigint[],
      ${int4Array(instances.map(({ severity }) => severity))}::int4[],
      ${int4Array(instances.map(({ status }) => status))}::int4[],
      ${int4Array(instances.map(({ number }) => number))}::int4[]
    ) as made
    on conflict do nothing`;
}

async function insertOccurrences(db: Db, tenantId: string, all: readonly Occurrence[], startMs: number): Promise<void> {
  const column = <T>(of: (occurrence: Occurrence) => T) => all.map(of);
  await db`
    insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
      start_ms, last_seen_ms, end_ms, instance_count)
    select ${tenantId}::uuid, id, number, severity, status, false, type, summary, '', metadata, first_ms, last_ms,
      case when status = ${Status.CLOSED}::int4 then last_ms end, count
    from unnest(
      ${byteaArray(column(({ eventId }) => eventId))}::bytea[],
      ${int4Array(column(({ number }) => number))}::int4[],
      ${int4Array(column(({ last }) => last.severity))}::int4[],
      ${int4Array(column(({ last }) => last.status))}::int4[],
      ${textArray(column(({ last }) => last.type))}::text[],
      ${textArray(column(({ last }) => last.summary))}::text[],
      ${jsonArray(column(({ last }) => last.metadata))}::jsonb[],
      ${bigintArray(column(({ first }) => BigInt(startMs + first.atMs)))}::bigint[],
      ${bigintArray(column(({ last }) => BigInt(startMs + last.atMs)))}::bigint[],
      ${bigintArray(column(({ count }) => BigInt(count)))}::bigint[]
    ) as made (id, number, severity, status, type, summary, metadata, first_ms, last_ms, count)`;
}
