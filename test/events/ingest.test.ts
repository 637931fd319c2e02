import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { eventIds, idText } from "../../src/entities/identity.ts";
import { storingChanges } from "../../src/events/changes.ts";
import { expireOccurrences } from "../../src/events/expiry.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { ingestEvents } from "../entities/stored.ts";
import { cases } from "../support/cases.ts";
import { onCitus } from "../support/citus.ts";
import { testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";
import { EventModel, type ModelOccurrence } from "./model.ts";
import { storedEvents } from "./stored-events.ts";

const { sql } = await testDatabase();
const store = storingChanges({});
const put = (tenant: string, items: EventItem[], nowMs: number) =>
  ingestEvents(sql, tenant, items, { nowMs, store, known: entityCache() });

function item(time: number, more: Partial<EventItem> = {}): EventItem {
  return {
    name: "disk full",
    dimensions: { source: "web-1" },
    timeMs: BigInt(time),
    severity: 4,
    status: 1,
    acknowledged: undefined,
    type: "",
    summary: "",
    body: "",
    metadata: {},
    ...more,
  };
}

const stored = (tenant: string) => storedEvents(sql, tenant);

/** The occurrences of events, in one order; when they were kept open shows in their ends alone. */
const sorted = (map: Map<string, ModelOccurrence[]>) =>
  [...map]
    .map(([key, all]): [string, object[]] => [key, all.map((each) => ({ ...each, kept: 0 }))])
    .sort(([a], [b]) => (a < b ? -1 : 1));

const anyItem = fc
  .record({
    name: fc.constantFrom("a", "b"),
    source: fc.constantFrom("x", "y"),
    time: fc.integer({ min: 1, max: 12 }),
    severity: fc.constantFrom(0, 3, 5),
    status: fc.constantFrom(0, 1, 2, 3),
    acknowledged: fc.constantFrom(undefined, true, false),
    type: fc.constantFrom("", "s", "t"),
    summary: fc.constantFrom("", "s", "t"),
    body: fc.constantFrom("", "s", "t"),
    metadata: fc.constantFrom({}, { a: 1 }, { b: 2 }),
    dedupKey: fc.constantFrom("", "k"),
    until: fc.constantFrom(undefined, 8, 14, 20),
    alert: fc.constantFrom(undefined, undefined, "fires", "ends"),
  })
  .map(({ name, source, time, until, alert, metadata, ...more }) =>
    item(time, {
      name,
      dimensions: { source },
      ...more,
      // An object of its own, as each request has.
      metadata: { ...metadata },
      ...(until !== undefined && { expiresAtMs: BigInt(until) }),
      ...(alert === "fires" && { status: 1, onlyKeepsOpen: true as const }),
      ...(alert === "ends" && { status: 3, closesOpen: true as const }),
    }),
  );

describe("a batch of events", () => {
  test("however it is cut into batches, and however often they are sent again, ends as its items one by one", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            batch: fc.array(anyItem, { minLength: 1, maxLength: 12 }),
            again: fc.boolean(),
            expire: fc.boolean(),
          }),
          {
            minLength: 1,
            maxLength: 6,
          },
        ),
        async (requests) => {
          const tenant = await bareTenant(sql);
          const model = new EventModel();
          for (const [i, { batch, again, expire }] of requests.entries()) {
            const nowMs = 5 + 4 * i;
            for (let times = again ? 2 : 1; times > 0; times--) {
              for (const each of batch) model.put(each, nowMs);
              await put(tenant, batch, nowMs);
            }
            if (!expire) continue;
            model.expire(nowMs);
            await transaction(sql, (tx) => expireOccurrences(tx, tenant, { nowMs, store }));
          }
          expect(sorted(await stored(tenant))).toEqual(sorted(model.events));
          const [{ count }] = await sql<[{ count: bigint }]>`
            select count(*) from instances where tenant_id = ${tenant}`;
          expect(Number(count)).toBe(model.instances.size);
        },
      ),
      { numRuns: cases(onCitus ? 160 : 150) },
    );
  }, 60_000);

  test("sent at once from many clients, overlapping, counts each instance once and numbers occurrences without gaps", async () => {
    const tenant = await bareTenant(sql);
    const batches = Array.from({ length: 20 }, (_, client) =>
      Array.from({ length: 30 }, (_, i) =>
        item(1000 + ((client * 7 + i) % 40), { name: `e${i % 3}`, status: i % 5 === 0 ? 3 : 1 }),
      ),
    );
    await Promise.all([...batches, ...batches].map((batch) => put(tenant, batch, 100_000)));
    const sent = new Set(batches.flat().map((each) => `${each.name} ${each.timeMs} ${each.severity} ${each.status}`));
    const [{ instances }] = await sql<[{ instances: bigint }]>`
      select count(*) as instances from instances where tenant_id = ${tenant}`;
    expect(Number(instances)).toBe(sent.size);
    for (const occurrences of (await stored(tenant)).values()) {
      expect(occurrences.map(({ number }) => number)).toEqual(occurrences.map((_, i) => i + 1));
    }
    const [{ counted }] = await sql<[{ counted: bigint }]>`
      select sum(instance_count)::int8 as counted from occurrences where tenant_id = ${tenant}`;
    expect(Number(counted)).toBe(sent.size);
  });

  test("makes the entity known, named after its dimensions, alive to the minute", async () => {
    const tenant = await bareTenant(sql);
    await put(tenant, [item(125_000, { dimensions: { zone: "b", host: "a" } })], 200_000);
    const [row] = await sql`select id, name, liveness_ms, model_ms from entities where tenant_id = ${tenant}`;
    const ids = eventIds(tenant, { host: "a", zone: "b" }, "disk full");
    expect(row).toMatchObject({ id: ids.entityId, name: "host=a,zone=b", liveness_ms: 120_000n, model_ms: null });
    const [event] = await sql`select id from events where tenant_id = ${tenant}`;
    expect(idText(event?.id)).toBe(idText(ids.eventId));
  });

  test("of one tenant touches nothing of another", async () => {
    const [one, two] = [await bareTenant(sql), await bareTenant(sql)];
    await put(one, [item(10)], 100);
    await put(two, [item(10), item(11, { status: 3 })], 100);
    expect([...(await stored(one)).values()]).toMatchObject([[{ status: 1, instances: 1 }]]);
    expect([...(await stored(two)).values()]).toMatchObject([[{ status: 3, instances: 2 }]]);
  });

  test("keeps every text as it was sent", async () => {
    const tenant = await bareTenant(sql);
    const text = `quote " back \\ slash {}, NULL ${"\u{1F600}"} \n end`;
    const dimensions = { [text]: text };
    await put(tenant, [item(10, { name: "n", dimensions, summary: text, metadata: { [text]: [text, 1, null] } })], 100);
    const [row] = await sql`
      select o.summary, o.metadata, n.dimensions from occurrences o join entities n on n.tenant_id = o.tenant_id
      where o.tenant_id = ${tenant}`;
    expect(row).toEqual({ summary: text, metadata: { [text]: [text, 1, null] }, dimensions });
  });
});
