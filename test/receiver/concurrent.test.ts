import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { connect } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { eventIds } from "../../src/entities/identity.ts";
import { type Change, type StoreChanges, storingChanges } from "../../src/events/changes.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { type IngestQueue, ingestQueue, type LaneKind } from "../../src/receiver/ingest-queue.ts";
import { ingestEvents } from "../entities/stored.ts";
import { EventModel, eventKey } from "../events/model.ts";
import { storedEvents } from "../events/stored-events.ts";
import { cases } from "../support/cases.ts";
import { poolOptions, testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";

const { sql, url } = await testDatabase();
const pools = [
  connect(url, poolOptions({ counts: { ingest: 3 } })),
  connect(url, poolOptions({ counts: { ingest: 3 } })),
];
afterAll(() => Promise.all(pools.map((pool) => pool.close())));

interface Told {
  position: bigint;
  changes: readonly Change[];
}

/** A server's lanes, and the events kind that keeps what each batch did with its place among the commits. */
function serverOf(pool: (typeof pools)[number], told: Told[]): { all: IngestQueue; kind: LaneKind<EventItem> } {
  const known = entityCache();
  const kind: LaneKind<EventItem> = {
    name: "events",
    store(tx, tenantId, items) {
      let changes: readonly Change[] = [];
      const stored = storingChanges({
        onStored: (_tenant, rows) => told.push(...rows.map(({ position }) => ({ position, changes }))),
      });
      const store: StoreChanges = (tx, locked, all, ...more) => {
        changes = all;
        return stored(tx, locked, all, ...more);
      };
      return ingestEvents(tx, tenantId, items, { nowMs: 100_000, store, known });
    },
  };
  return { all: ingestQueue(pool.ingest, { batchesMax: 3, waitMsMax: 600_000 }), kind };
}

const anyItem = fc
  .record({
    name: fc.constantFrom("a", "b", "c"),
    source: fc.constantFrom("x", "y"),
    time: fc.integer({ min: 1, max: 40 }),
    severity: fc.constantFrom(0, 3, 5),
    status: fc.constantFrom(0, 1, 2, 3),
    acknowledged: fc.constantFrom(undefined, true, false),
    summary: fc.constantFrom("", "s", "t"),
  })
  .map(
    ({ source, time, ...more }): EventItem => ({
      ...more,
      dimensions: { source },
      timeMs: BigInt(time),
      type: "",
      body: "",
      metadata: {},
    }),
  );

test("overlapping, late and repeated batches from six connections of two servers end as the model that takes them in the order of the commits", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          items: fc.array(anyItem, { minLength: 1, maxLength: 15 }),
          server: fc.nat(1),
          again: fc.boolean(),
        }),
        { minLength: 6, maxLength: 24 },
      ),
      async (parts) => {
        const tenant = await bareTenant(sql);
        const told: Told[] = [];
        const servers = pools.map((pool) => serverOf(pool, told));
        const send = (server: number, items: EventItem[]) => {
          const { all, kind } = servers[server] as (typeof servers)[number];
          return all.put(kind, tenant, { items, bytes: 1 }, true);
        };
        const answers = await Promise.all(
          parts.flatMap(({ items, server, again }) => [
            send(server, items),
            ...(again ? [send(1 - server, items)] : []),
          ]),
        );
        expect(answers.every(({ size }) => size === 0)).toBe(true);

        // Positions have no gap; in their order, what was stored is what the model makes of it.
        told.sort((a, b) => Number(a.position - b.position));
        expect(told.map(({ position }) => position)).toEqual(told.map((_, i) => BigInt(i + 1)));
        const model = new EventModel();
        for (const { event, instance } of told.flatMap(({ changes }) => changes)) {
          const dimensions = ["x", "y"]
            .map((source) => ({ source }))
            .find((each) => eventIds(tenant, each, event.name).eventId.equals(event.id));
          model.put({ ...(instance as EventItem), name: event.name, dimensions: dimensions as { source: string } });
        }
        const sent = parts.flatMap(({ items }) => items);
        const distinct = new Set(
          sent.map((each) => `${eventKey(each.name, each.dimensions)} ${each.timeMs} ${each.severity} ${each.status}`),
        );
        expect(model.instances).toEqual(distinct);
        expect(await storedEvents(sql, tenant)).toEqual(model.events);
      },
    ),
    { numRuns: cases(40) },
  );
}, 120_000);

test("a late or repeated instance of an event that has flapped 130,000 times reads 40 rows at most", async () => {
  const tenant = await bareTenant(sql);
  const item = (timeMs: number, status: number): EventItem => ({
    name: "flaps",
    dimensions: { source: "x" },
    severity: 4,
    acknowledged: undefined,
    type: "",
    summary: "",
    body: "",
    metadata: {},
    timeMs: BigInt(timeMs),
    status,
  });
  const options = { nowMs: 1, store: storingChanges({}), known: entityCache() };
  await ingestEvents(sql, tenant, [item(60_000, 3)], options);
  const portion = 10_000;
  for (let from = 2; from <= 130_000; from += portion) {
    await sql`
      insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count)
      select o.tenant_id, o.event_id, n, 4, 3, false, '', '', '', '{}', n * 60000::int8, n * 60000::int8 + 1,
        n * 60000::int8 + 1, 1
      from occurrences o, generate_series(${from}::int4, least(${from + portion - 1}::int4, 130000)) as n
      where o.tenant_id = ${tenant} and o.number = 1`;
  }
  await sql`analyze occurrences`;
  const late = [item(65_000_000, 1), item(60_000, 3), item(7_000_000_000, 1), item(30_000, 1), item(7_800_000_000, 1)];
  const read = await transaction((pools[0] as (typeof pools)[number]).ingest, async (tx) => {
    // With what the connection has read before and PostgreSQL has not gathered yet.
    const rowsRead = async () => {
      const [row] = await tx<[{ rows: bigint }]>`
        select seq_tup_read + idx_tup_fetch as rows from pg_stat_xact_user_tables where relname = 'occurrences'`;
      return Number(row.rows);
    };
    const before = await rowsRead();
    await ingestEvents(tx, tenant, late, options);
    return (await rowsRead()) - before;
  });
  expect(read).toBeLessThan(40);
  const counts = await sql<{ number: number; count: bigint }[]>`
    select number, instance_count as count from occurrences where tenant_id = ${tenant} and instance_count > 1 order by 1`;
  expect(counts.map(({ number }) => number)).toEqual([1, 1083, 116666, 130000]);
}, 60_000);
