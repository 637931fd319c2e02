import { bigintArray, boolArray, byteaArray, int4Array, jsonArray, textArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { eventIds } from "../entities/identity.ts";
import { type Sighting, seeEntities } from "../entities/put.ts";
import { failpoint } from "../failpoint.ts";
import { applyInstance, type History, type Instance, type Occurrence } from "./lifecycle.ts";

/** One event record as the receiver has checked it. */
export interface EventItem extends Instance {
  name: string;
  dimensions: Record<string, string>;
}

/** An event of the batch, with what the batch sent of it, in order. */
interface Subject {
  key: string;
  id: Buffer;
  entityId: Buffer;
  name: string;
  instances: Instance[];
  history: History;
  lastSeenMs: bigint;
}

interface Counted {
  subject: Subject;
  instance: Instance;
  number: number;
}

const instanceKey = (timeMs: bigint, severity: number, status: number) => `${timeMs}/${severity}/${status}`;
const bytesKey = (id: Buffer) => id.toString("latin1");

function gather(tenantId: string, items: readonly EventItem[]) {
  const subjects = new Map<string, Subject>();
  const sightings = new Map<string, Sighting>();
  for (const item of items) {
    const ids = eventIds(tenantId, item.dimensions, item.name);
    const key = bytesKey(ids.eventId);
    const subject = subjects.get(key);
    if (subject !== undefined) {
      subject.instances.push(item);
    } else {
      const { name } = item;
      subjects.set(key, {
        key,
        id: ids.eventId,
        entityId: ids.entityId,
        name,
        instances: [item],
        history: [],
        lastSeenMs: 0n,
      });
    }
    const entityKey = bytesKey(ids.entityId);
    const sighting = sightings.get(entityKey);
    if (sighting === undefined) {
      sightings.set(entityKey, { id: ids.entityId, dimensions: item.dimensions, timestampMs: item.timeMs });
    } else if (sighting.timestampMs < item.timeMs) {
      sighting.timestampMs = item.timeMs;
    }
  }
  // One order for all batches, so that concurrent ones wait for each other instead of deadlocking.
  const sorted = [...subjects.values()].sort((a, b) => Buffer.compare(a.id, b.id));
  return { subjects: sorted, sightings: [...sightings.values()] };
}

/** Makes the events' rows, locks them, and reads what the lifecycle needs: occurrences, and the instances known already. */
async function lockAndRead(tx: Db, tenantId: string, subjects: Subject[]) {
  const ids = byteaArray(subjects.map(({ id }) => id));
  const earliest = bigintArray(
    subjects.map(({ instances }) =>
      instances.reduce((min, { timeMs }) => (timeMs < min ? timeMs : min), (instances[0] as Instance).timeMs),
    ),
  );
  const sent = subjects.flatMap(({ id, instances }) => instances.map((instance) => ({ id, instance })));
  // Sent at once and run in order on the one connection; each reads what was committed before it began, so the two
  // that follow the lock see all that earlier holders of it have written.
  const [, locked, past, known] = await Promise.all([
    tx`
      insert into events (tenant_id, id, entity_id, name, last_number, last_seen_ms)
      select ${tenantId}::uuid, id, entity_id, name, 0, 0
      from unnest(
        ${ids}::bytea[],
        ${byteaArray(subjects.map((subject) => subject.entityId))}::bytea[],
        ${textArray(subjects.map(({ name }) => name))}::text[]
      ) as event (id, entity_id, name)
      on conflict do nothing`,
    tx<{ id: Buffer; last_seen_ms: bigint }[]>`
      select id, last_seen_ms from events
      where tenant_id = ${tenantId} and id = any(${ids}::bytea[])
      order by id for no key update`,
    tx<OccurrenceRow[]>`
      select o.event_id, o.number, o.severity, o.status, o.acknowledged, o.type, o.summary, o.body, o.metadata,
        o.start_ms, o.last_seen_ms, o.end_ms, o.instance_count
      from unnest(${ids}::bytea[], ${earliest}::bigint[]) as sent (id, earliest_ms)
        join events e on e.tenant_id = ${tenantId} and e.id = sent.id
        join occurrences o on o.tenant_id = ${tenantId} and o.event_id = e.id
          and (o.number = e.last_number or sent.earliest_ms < e.last_seen_ms)
      order by o.event_id, o.number`,
    tx<{ event_id: Buffer; time_ms: bigint; severity: number; status: number }[]>`
      select i.event_id, i.time_ms, i.severity, i.status
      from unnest(
          ${byteaArray(sent.map(({ id }) => id))}::bytea[],
          ${bigintArray(sent.map(({ instance }) => instance.timeMs))}::bigint[],
          ${int4Array(sent.map(({ instance }) => instance.severity))}::int4[],
          ${int4Array(sent.map(({ instance }) => instance.status))}::int4[]
        ) as sent (event_id, time_ms, severity, status)
        join instances i on i.tenant_id = ${tenantId} and i.event_id = sent.event_id and i.time_ms = sent.time_ms
          and i.severity = sent.severity and i.status = sent.status`,
  ]);
  return { locked, past, known };
}

interface OccurrenceRow {
  event_id: Buffer;
  number: number;
  severity: number;
  status: number;
  acknowledged: boolean;
  type: string;
  summary: string;
  body: string;
  metadata: Record<string, unknown>;
  start_ms: bigint;
  last_seen_ms: bigint;
  end_ms: bigint | null;
  instance_count: bigint;
}

function toHistoryEntry(row: OccurrenceRow): Occurrence {
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
  };
}

/** Runs the lifecycle over the batch; answers the new instances and the occurrences that they changed. */
function apply(subjects: Subject[], known: Set<string>) {
  const counted: Counted[] = [];
  const changed = new Map<Occurrence, Subject>();
  for (const subject of subjects) {
    for (const instance of subject.instances) {
      const key = subject.key + instanceKey(instance.timeMs, instance.severity, instance.status);
      if (known.has(key)) continue;
      known.add(key);
      const occurrence = applyInstance(subject.history, subject.lastSeenMs, instance);
      if (subject.lastSeenMs < instance.timeMs) subject.lastSeenMs = instance.timeMs;
      counted.push({ subject, instance, number: occurrence.number });
      changed.set(occurrence, subject);
    }
  }
  return { counted, changed: [...changed].map(([occurrence, subject]) => ({ occurrence, subject })) };
}

async function write(
  tx: Db,
  tenantId: string,
  counted: Counted[],
  changed: { subject: Subject; occurrence: Occurrence }[],
) {
  const subjects = [...new Set(counted.map(({ subject }) => subject))];
  await Promise.all([
    tx`
      insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count)
      select ${tenantId}::uuid, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count
      from unnest(
        ${byteaArray(changed.map(({ subject }) => subject.id))}::bytea[],
        ${int4Array(changed.map(({ occurrence }) => occurrence.number))}::int4[],
        ${int4Array(changed.map(({ occurrence }) => occurrence.severity))}::int4[],
        ${int4Array(changed.map(({ occurrence }) => occurrence.status))}::int4[],
        ${boolArray(changed.map(({ occurrence }) => occurrence.acknowledged))}::bool[],
        ${textArray(changed.map(({ occurrence }) => occurrence.type))}::text[],
        ${textArray(changed.map(({ occurrence }) => occurrence.summary))}::text[],
        ${textArray(changed.map(({ occurrence }) => occurrence.body))}::text[],
        ${jsonArray(changed.map(({ occurrence }) => occurrence.metadata))}::jsonb[],
        ${bigintArray(changed.map(({ occurrence }) => occurrence.startMs))}::bigint[],
        ${bigintArray(changed.map(({ occurrence }) => occurrence.lastSeenMs))}::bigint[],
        ${bigintArray(changed.map(({ occurrence }) => occurrence.endMs))}::bigint[],
        ${bigintArray(changed.map(({ occurrence }) => occurrence.instanceCount))}::bigint[]
      ) as changed (event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count)
      on conflict (tenant_id, event_id, number) do update set
        severity = excluded.severity, status = excluded.status, acknowledged = excluded.acknowledged,
        type = excluded.type, summary = excluded.summary, body = excluded.body, metadata = excluded.metadata,
        start_ms = excluded.start_ms, last_seen_ms = excluded.last_seen_ms, end_ms = excluded.end_ms,
        instance_count = excluded.instance_count`.then(() => failpoint("ingest:occurrences-written")),
    tx`
      insert into instances (tenant_id, event_id, time_ms, severity, status, number)
      select ${tenantId}::uuid, event_id, time_ms, severity, status, number
      from unnest(
        ${byteaArray(counted.map(({ subject }) => subject.id))}::bytea[],
        ${bigintArray(counted.map(({ instance }) => instance.timeMs))}::bigint[],
        ${int4Array(counted.map(({ instance }) => instance.severity))}::int4[],
        ${int4Array(counted.map(({ instance }) => instance.status))}::int4[],
        ${int4Array(counted.map(({ number }) => number))}::int4[]
      ) as counted (event_id, time_ms, severity, status, number)`,
    tx`
      update events set last_number = changed.last_number, last_seen_ms = changed.last_seen_ms
      from unnest(
        ${byteaArray(subjects.map(({ id }) => id))}::bytea[],
        ${int4Array(subjects.map(({ history }) => (history.at(-1) as Occurrence).number))}::int4[],
        ${bigintArray(subjects.map(({ lastSeenMs }) => lastSeenMs))}::bigint[]
      ) as changed (id, last_number, last_seen_ms)
      where events.tenant_id = ${tenantId} and events.id = changed.id`,
  ]);
}

/**
 * Stores a batch of event records in one transaction, in their order. May be repeated: an instance that is there
 * already (same event, time, severity and status) changes nothing.
 */
export async function ingestEvents(
  db: Db,
  tenantId: string,
  items: readonly EventItem[],
  nowMs: number,
): Promise<void> {
  if (items.length === 0) return;
  await transaction(db, async (tx) => {
    const { subjects, sightings } = gather(tenantId, items);
    const seen = seeEntities(tx, tenantId, sightings, nowMs);
    const [, { locked, past, known }] = await Promise.all([seen, lockAndRead(tx, tenantId, subjects)]);
    failpoint("ingest:read");
    const byId = new Map(subjects.map((subject) => [subject.key, subject]));
    for (const row of locked) (byId.get(bytesKey(row.id)) as Subject).lastSeenMs = row.last_seen_ms;
    for (const row of past) byId.get(bytesKey(row.event_id))?.history.push(toHistoryEntry(row));
    const knownKeys = known.map((row) => bytesKey(row.event_id) + instanceKey(row.time_ms, row.severity, row.status));
    const { counted, changed } = apply(subjects, new Set(knownKeys));
    if (counted.length > 0) await write(tx, tenantId, counted, changed);
  });
}
