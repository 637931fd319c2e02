import type { Db } from "../../src/db/connect.ts";
import { entityId, eventIds } from "../../src/entities/identity.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { EventModel, eventKey, type ModelOccurrence } from "../events/model.ts";

/** A model as a client sends it. */
export interface SentModel {
  timestampMs: bigint;
  dimensions: Record<string, string>;
  metadata: Record<string, string | boolean>;
}

/** One request's worth. `shared` ones tell of events that several clients report at once. */
export type Batch = { shared: boolean } & (
  | { kind: "events"; items: EventItem[] }
  | { kind: "models"; items: SentModel[] }
);

/** What clients have sent, what was acknowledged to them, and what must have become of it. */
export interface Ledger {
  /** Before a batch is sent for the first time. */
  sent(batch: Batch): void;
  /** After its first good answer. Of one entity, a client sends the next batch only then. */
  acknowledged(batch: Batch): void;
  readonly counts: { sent: number; acknowledged: number };
  /** Compares with what is stored; returns what is wrong, a line each. Nothing may be on its way. */
  compare(db: Db, tenantId: string): Promise<string[]>;
}

const linesMax = 20;
const instanceKey = (event: string, { timeMs, severity, status }: EventItem) =>
  `${event} ${timeMs} ${severity} ${status}`;

export function ledger(): Ledger {
  const events = new EventModel();
  const models = new Map<string, SentModel>();
  const batches: { batch: Batch; acknowledged: boolean }[] = [];
  const open = new Map<Batch, { batch: Batch; acknowledged: boolean }>();
  const counts = { sent: 0, acknowledged: 0 };

  function acknowledged(batch: Batch) {
    const entry = open.get(batch);
    if (entry === undefined) throw new Error("acknowledged, and never sent");
    open.delete(batch);
    entry.acknowledged = true;
    counts.acknowledged += batch.items.length;
    if (batch.kind === "events") {
      if (!batch.shared) for (const item of batch.items) events.put(item);
      return;
    }
    for (const item of batch.items) {
      const key = JSON.stringify(Object.entries(item.dimensions).sort());
      const before = models.get(key);
      if (before === undefined || before.timestampMs <= item.timestampMs) models.set(key, item);
    }
  }

  return {
    counts,
    sent(batch) {
      const entry = { batch, acknowledged: false };
      batches.push(entry);
      open.set(batch, entry);
      counts.sent += batch.items.length;
    },
    acknowledged,
    async compare(db, tenantId) {
      const instances = await compareInstances(db, tenantId, batches);
      const occurrences = await compareOccurrences(db, tenantId, events, open.size === 0);
      const entities = await compareEntities(db, tenantId, models, open.size === 0);
      return [...instances, ...occurrences, ...entities].slice(0, linesMax);
    },
  };
}

/** Acknowledged ⊆ stored ⊆ sent. */
async function compareInstances(db: Db, tenantId: string, batches: { batch: Batch; acknowledged: boolean }[]) {
  const rows = await db<{ event: string; timeMs: bigint; severity: number; status: number }[]>`
    select encode(event_id, 'hex') as event, time_ms as "timeMs", severity, status from instances
    where tenant_id = ${tenantId}`;
  const stored = new Set(rows.map(({ event, ...row }) => instanceKey(event, row as EventItem)));
  const sent = new Set<string>();
  const wrong: string[] = [];
  for (const { batch, acknowledged } of batches) {
    if (batch.kind !== "events") continue;
    for (const item of batch.items) {
      const key = instanceKey(
        eventIds(tenantId, item.dimensions, item.name, item.dedupKey).eventId.toString("hex"),
        item,
      );
      sent.add(key);
      if (acknowledged && !stored.has(key)) wrong.push(`acknowledged and not stored: instance ${key}`);
    }
  }
  for (const key of stored) if (!sent.has(key)) wrong.push(`stored and never sent: instance ${key}`);
  return wrong;
}

type Row = ModelOccurrence & {
  id: string;
  name: string;
  dimensions: Record<string, string>;
  dedupKey: string | null;
  counted: number;
};

/** Each instance counts once, numbers have no gaps, and what one client alone has reported is as the model says. */
async function compareOccurrences(db: Db, tenantId: string, model: EventModel, all: boolean) {
  const rows = await db<Row[]>`
    select encode(e.id, 'hex') as id, e.name, n.dimensions, o.number, o.status, o.severity, o.acknowledged, o.summary,
      o.start_ms::float8 as start, o.last_seen_ms::float8 as "lastSeen", o.end_ms::float8 as end,
      o.instance_count::float8 as instances, o.expires_ms::float8 as expires, e.dedup_key as "dedupKey",
      coalesce(i.counted, 0)::float8 as counted
    from events e
      join entities n on n.tenant_id = ${tenantId} and n.id = e.entity_id
      join occurrences o on o.tenant_id = ${tenantId} and o.event_id = e.id
      left join (
        select event_id, number, count(*) as counted from instances where tenant_id = ${tenantId} group by event_id, number
      ) as i on i.event_id = o.event_id and i.number = o.number
    where e.tenant_id = ${tenantId} order by e.id, o.number`;
  const wrong: string[] = [];
  const stored = new Map<string, ModelOccurrence[]>();
  for (const { id, name, dimensions, dedupKey, counted, ...occurrence } of rows) {
    const key = eventKey(name, dimensions, dedupKey ?? "");
    const occurrences = stored.get(key) ?? [];
    stored.set(key, occurrences);
    occurrences.push(occurrence);
    const what = `occurrence ${occurrence.number} of ${key} (${id})`;
    if (occurrence.number !== occurrences.length) wrong.push(`${what}: a gap before it`);
    if (counted !== occurrence.instances) wrong.push(`${what} counts ${occurrence.instances} of ${counted} instances`);
  }
  if (!all) return wrong;
  for (const [key, expected] of model.events) {
    const found = JSON.stringify(stored.get(key)?.map(inOrder));
    const wanted = JSON.stringify(expected.map(inOrder));
    if (found !== wanted) wrong.push(`${key}\n  is        ${found}\n  should be ${wanted}`);
  }
  return wrong;
}

const inOrder = (o: ModelOccurrence) => [
  o.number,
  o.status,
  o.severity,
  o.acknowledged,
  o.summary,
  o.start,
  o.lastSeen,
  o.end,
  o.instances,
  o.expires,
];

/** Each entity is as its newest model describes it. */
async function compareEntities(db: Db, tenantId: string, models: Map<string, SentModel>, all: boolean) {
  const rows = await db<{ id: string; name: string; metadata: object; deleted: boolean }[]>`
    select encode(id, 'hex') as id, name, metadata, deleted_ms is not null as deleted
    from entities where tenant_id = ${tenantId}`;
  const stored = new Map(rows.map((row) => [row.id, row]));
  const wrong: string[] = [];
  for (const [key, { dimensions, metadata, timestampMs }] of models) {
    const row = stored.get(entityId(tenantId, dimensions).toString("hex"));
    const deleted = metadata._svc_deleted_entity === true;
    if (row === undefined) wrong.push(`acknowledged and not stored: entity ${key}`);
    else if (!all) continue;
    else if (row.deleted !== deleted) wrong.push(`entity ${key}: deleted is ${row.deleted}, model of ${timestampMs}`);
    else if (!deleted && (row.name !== metadata.name || (row.metadata as { n?: string }).n !== metadata.n)) {
      wrong.push(`entity ${key}: ${JSON.stringify(row.metadata)}, the newest model says ${JSON.stringify(metadata)}`);
    }
  }
  return wrong;
}
