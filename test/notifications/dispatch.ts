import { randomUUID } from "node:crypto";
import { afterAll, beforeAll } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { byteaArray, jsonArray, textArray, uuidArray } from "../../src/db/batch.ts";
import type { Pool } from "../../src/db/connect.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { eventIds } from "../../src/entities/identity.ts";
import { storingChanges } from "../../src/events/changes.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { announce } from "../../src/jobs/queue.ts";
import type { Recheck } from "../../src/notifications/deciding/recheck.ts";
import { openSendEnvironment, type SendEnvironment } from "../../src/notifications/kinds/send-environment.ts";
import { historyPartitions } from "../../src/notifications/queue/history.ts";
import type { Result } from "../../src/notifications/queue/result.ts";
import { record } from "../../src/notifications/queue/result-statements.ts";
import { sendSlots } from "../../src/notifications/queue/send-slots.ts";
import { endedResult, triedResults } from "../../src/notifications/sending/classify-response.ts";
import { nextBatch } from "../../src/notifications/sending/next-batch.ts";
import { attempt, type SenderOptions } from "../../src/notifications/sending/sender.ts";
import { raiseRulesVersion } from "../../src/notifications/silences/rules-version.ts";
import type { Occasion } from "../../src/notifications/subject/notification.ts";
import { ingestEvents } from "../entities/stored.ts";
import { type TestDatabase, testDatabase } from "../support/database.ts";
import { type HttpReceiver, httpReceiver } from "../support/receivers.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const quiet = { info() {}, warn: console.warn, error() {} };
const all: Recheck = async () => new Map();

export interface Dispatching {
  pool: Pool;
  world: SendEnvironment;
  recheck?: Recheck;
  send?: SenderOptions["send"];
  leaseMs?: number;
  slotsMax?: number;
  /** From 0 to 1, for the waits between tries. */
  random?: number;
}

/** Everything of one tenant that is due at this moment is tried once and recorded. Returns what came of it. */
export async function dispatchOnce(tenantId: string, nowMs: number, given: Dispatching): Promise<Result[]> {
  const { pool, world, recheck = all, send, leaseMs = 10_000, slotsMax = 256, random = 0.5 } = given;
  const keys = keyring(readConfig({ BELFRY_MASTER_KEYS: masterKeys }));
  const slots = sendSlots(slotsMax);
  const done: Result[] = [];
  for (;;) {
    const round = await nextBatch(
      pool.sending,
      tenantId,
      {
        keyring: keys,
        world,
        slots,
        leaseMs,
        waitMsMax: 3 * 86_400_000,
        lookMax: 16,
        recheck,
        heldRules: () => undefined,
      },
      nowMs,
    );
    const sender = { db: pool.sending, keyring: keys, world, log: quiet, ...(send && { send }) };
    const tried = round.ready.map(async (ready) => {
      const outcome = await attempt(ready, sender, new AbortController().signal);
      slots.free(tenantId, ready.row.destinationName, 1);
      return triedResults(ready, outcome, nowMs, random);
    });
    const results = [...round.ended.map(endedResult), ...(await Promise.all(tried)).flat()];
    if (results.length > 0) await record(pool.sending, tenantId, results, round.suspects, nowMs);
    done.push(...results);
    if (results.length === 0 && !round.more) return done;
  }
}

/** A delivery to be made. */
export interface Due {
  destination?: string;
  rule?: string;
  occasion?: Occasion;
  /** Numbers the event that it is about: the same one has one subject. */
  event?: number;
  dueMs?: number;
  createdMs?: number;
  told?: object;
}

/** What a tenant's destination is to be; a webhook at the path of its name when nothing is said. */
export type Destinations = Readonly<Record<string, { maxPerMinute?: number; kind?: string; type?: object }>>;

/** A tenant with these destinations, a rule that names them all, and what puts deliveries of it. */
export async function sendingTenant(
  { sql, pool }: Pick<TestDatabase, "sql" | "pool">,
  receiverUrl: string,
  nowMs: number,
  destinations: Destinations = { ops: {} },
) {
  const { id, name, headers } = await testTenant(sql);
  const rule = randomUUID();
  const names = Object.keys(destinations);
  for (const destination of names) {
    const { maxPerMinute = 0, kind = "webhook", type } = destinations[destination] ?? {};
    const json = type ?? { webhook: { url: `${receiverUrl}/${destination}` } };
    await sql`
      insert into destinations (tenant_id, name, description, tags, kind, type, secrets, max_per_minute, disabled_reason, created_ms)
      values (${id}, ${destination}, '', '[]', ${kind}, ${sql.json(json as never)}, '{}', ${maxPerMinute}, '', 0)`;
  }
  await sql`
    insert into triggers (tenant_id, name, description, tags, source, type, created_ms)
    values (${id}, 'disks', '', '[]', 'event', ${sql.json({ event: { query: { clause: { contains: { field: "name", value: "disk" } } } } })}, 0)`;
  await sql`
    insert into rules (tenant_id, name, id, description, enabled, message, repeat, repeat_interval_sec, delay_sec,
      send_updates, mute_during_maintenance, tags, created_ms)
    values (${id}, 'page', ${rule}, '', true, '{{{event.name}}}', false, 3600, 0, true, false, '[]', 0)`;
  await sql`insert into rule_triggers (tenant_id, rule_name, trigger_name, place) values (${id}, 'page', 'disks', 0)`;
  await sql`
    insert into rule_destinations (tenant_id, rule_name, destination_name, place)
    select ${id}, 'page', name, place from unnest(${textArray(names)}::text[]) with ordinality as d (name, place)`;

  await transaction(sql, (tx) => raiseRulesVersion(tx, id, { kind: "rule", name: "page" }));

  /** Puts deliveries, about events that are made for them. Answers their ids. */
  async function put(due: readonly Due[]): Promise<string[]> {
    const events = [...new Set(due.map(({ event = 0 }) => event))];
    const items = events.map(
      (event): EventItem => ({
        name: `disk ${event}`,
        dimensions: { host: "web-1" },
        type: "",
        summary: "",
        body: "",
        timeMs: BigInt(nowMs + event),
        severity: 4,
        status: 1,
        acknowledged: undefined,
        metadata: {},
      }),
    );
    await ingestEvents(pool.ingest, id, items, { nowMs, store: storingChanges({}), known: entityCache() });
    return await insert(due);
  }

  async function insert(due: readonly Due[]): Promise<string[]> {
    const rows = due.map(
      ({ event = 0, destination = "ops", occasion = "first", createdMs = nowMs, dueMs, told = {} }) => {
        const { entityId, eventId } = eventIds(id, { host: "web-1" }, `disk ${event}`);
        const hex = createdMs.toString(16).padStart(12, "0");
        const own = `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`;
        const subject = Buffer.concat([eventId, Buffer.from([0, 0, 0, 1])]);
        return {
          id: own,
          destination,
          occasion,
          createdMs,
          dueMs: dueMs ?? createdMs,
          told,
          entityId,
          eventId,
          subject,
        };
      },
    );
    await sql`
      insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
        event_id, number, entity_id, metric_name, occasion, told, attempts, error, due_ms, lease_until_ms, fence, tries,
        slow_tries, retried_ms)
      select ${id}, d.id, d.created_ms::bigint, ${rule}, 'page', '{disks}', d.destination, d.subject, d.event_id, 1, d.entity_id,
        null, d.occasion, d.told, '[]', '', d.due_ms::bigint, 0, 0, 0, 0, null
      from unnest(
        ${uuidArray(rows.map((row) => row.id))}::uuid[], ${textArray(rows.map((row) => String(row.createdMs)))}::text[],
        ${textArray(rows.map((row) => row.destination))}::text[], ${byteaArray(rows.map((row) => row.subject))}::bytea[],
        ${byteaArray(rows.map((row) => row.eventId))}::bytea[], ${byteaArray(rows.map((row) => row.entityId))}::bytea[],
        ${textArray(rows.map((row) => row.occasion))}::text[], ${jsonArray(rows.map((row) => row.told))}::jsonb[],
        ${textArray(rows.map((row) => String(row.dueMs)))}::text[]
      ) as d (id, created_ms, destination, subject, event_id, entity_id, occasion, told, due_ms)`;
    await sql`
      insert into rule_matches (tenant_id, subject, rule_id, entity_id, event_id, number, trigger_names, standing, muted, chain,
        matched_ms, last_ms)
      select distinct on (m.subject) ${id}::uuid, m.subject, ${rule}::uuid, m.entity_id, m.event_id, 1, '{disks}'::text[], true, false,
        '{}'::text[], 0, 0
      from unnest(
        ${byteaArray(rows.map((row) => row.subject))}::bytea[], ${byteaArray(rows.map((row) => row.entityId))}::bytea[],
        ${byteaArray(rows.map((row) => row.eventId))}::bytea[]
      ) as m (subject, entity_id, event_id)
      on conflict do nothing`;
    await announce(sql, { tenantId: id, kind: "deliveries" }, BigInt(Math.min(...rows.map((row) => row.dueMs))));
    return rows.map((row) => row.id);
  }

  return {
    id,
    name,
    headers,
    rule,
    put,
    insert,
    /** What waits, the first due first. */
    waiting: () => sql<{ id: string; dueMs: number; error: string; tries: number }[]>`
      select id, due_ms::float8 as "dueMs", error, tries from due_deliveries where tenant_id = ${id} order by due_ms, id`,
    /** What is done, in the order of its decision. */
    done: () => sql<{ id: string; status: string; error: string; attempts: { reason: string; answer: string }[] }[]>`
      select id, status, error, attempts from delivery_history where tenant_id = ${id} order by created_ms, id`,
    state: async (destination: string) =>
      (await sql`select * from destination_states where tenant_id = ${id} and destination_name = ${destination}`)[0],
  };
}

/** A database with a receiver, and what puts deliveries into it. */
export async function dispatchSite() {
  const { sql, pool, url } = await testDatabase();
  const nowMs = Date.now();
  await keepPartitions(sql, historyPartitions(readConfig({})), nowMs);
  let receiver!: HttpReceiver;
  let world!: SendEnvironment;
  beforeAll(async () => {
    receiver = await httpReceiver();
    const config = readConfig({ BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8", BELFRY_OUTBOUND_TIMEOUT: "2000ms" });
    world = openSendEnvironment(config, {
      ownUrl: "https://belfry.test",
      nowMs: Date.now,
      createEvent: async () => undefined,
    });
  });
  afterAll(async () => {
    await world.outbound.close();
    await receiver[Symbol.asyncDispose]();
  });

  async function tenant(destinations?: Destinations) {
    const own = await sendingTenant({ sql, pool }, receiver.url, nowMs, destinations);
    const dispatch = (atMs: number, more: Partial<Dispatching> = {}) =>
      dispatchOnce(own.id, atMs, { pool, world, ...more });
    return { ...own, dispatch };
  }
  return { sql, pool, url, nowMs, tenant, receiver: () => receiver, world: () => world };
}
