import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { ageOccurrences } from "../../src/events/age.ts";
import { type StoreChanges, storingChanges } from "../../src/events/changes.ts";
import { deleteOld } from "../../src/events/retention.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { sql } = server.database;
const store = storingChanges({});
const hour = 3_600_000;
const day = 24 * hour;
const nowMs = Date.now();

const [DEFAULT, DEBUG, INFO, WARNING, ERROR] = [0, 1, 2, 3, 4] as const;
const [OPEN, CLOSED] = [1, 3] as const;

async function world() {
  const tenant = await testTenant(sql);
  const grpc = transport(server.target, "grpc", tenant.headers);
  const receiver = createClient(DataReceiverService, grpc);
  const queries = createClient(EventQueryService, grpc);
  return {
    id: tenant.id,
    management: createClient(EventManagementService, grpc),
    queries,
    put: (
      name: string,
      ageMs: number,
      severity: number,
      status: number,
      more: { type?: string; dedupKey?: string } = {},
    ) =>
      receiver.putEvents({
        events: [
          {
            name,
            dimensions: { source: "a" },
            timestamp: BigInt(nowMs - ageMs),
            severity: severity as never,
            status: status as never,
            metadataFields: { mount: "/var" },
            ...more,
          },
        ],
      }),
    async occurrences() {
      const { results } = await queries.searchEvents({ query: { sortBy: [{ byField: { field: "name" } }] } });
      return results.flatMap(({ name, occurrences }) =>
        occurrences.map(({ id, status, endTime, metadataFields }) => ({ id, name, status, endTime, metadataFields })),
      );
    },
  };
}

describe("ageing", () => {
  const ageing = new Map<number, number>([
    [DEFAULT, day],
    [DEBUG, day],
    [INFO, day],
    [WARNING, 3 * day],
  ]);

  test("closes what was not reported for the time of its severity, with the reason, and says it like any change", async () => {
    const { id, put, occurrences } = await world();
    await put("a old info", day + hour, INFO, OPEN);
    await put("b new info", hour, INFO, OPEN);
    await put("c old error", 80 * day, ERROR, OPEN);
    await put("d two days of warning", 2 * day, WARNING, OPEN);
    await put("e closed", 2 * day, INFO, CLOSED);
    const told: unknown[] = [];
    const telling: StoreChanges = (tx, locked, changes, ...more) => {
      told.push(...changes.map(({ event, before, after }) => [event.name, before?.status, after.status]));
      return store(tx, locked, changes, ...more);
    };
    const more = await transaction(sql, (tx) => ageOccurrences(tx, id, ageing, { nowMs, store: telling }));
    expect(more).toBe(false);
    expect(told).toEqual([["a old info", OPEN, CLOSED]]);
    const [aged, ...others] = await occurrences();
    expect(aged).toMatchObject({
      status: CLOSED,
      endTime: BigInt(nowMs),
      metadataFields: { mount: "/var", reason: "Aged" },
    });
    expect(others.map(({ status }) => status)).toEqual([OPEN, OPEN, OPEN, CLOSED]);
    const feed = await sql`select from feed where tenant_id = ${id}`;
    expect(feed.count).toBe(6);
  });

  test("leaves alerts alone, which have an end of their own, and not what is merely called so", async () => {
    const { id, put, occurrences } = await world();
    await put("alert", 4 * day, WARNING, OPEN, { type: "alert", dedupKey: "0".repeat(64) });
    await put("called so", 4 * day, WARNING, OPEN, { type: "alert", dedupKey: "/var" });
    await put("called so, too", 4 * day, WARNING, OPEN, { type: "alert" });
    await transaction(sql, (tx) => ageOccurrences(tx, id, ageing, { nowMs, store }));
    expect((await occurrences()).map(({ name, status }) => [name, status])).toEqual([
      ["alert", OPEN],
      ["called so", CLOSED],
      ["called so, too", CLOSED],
    ]);
  });

  test("leaves an occurrence alone that was reported after it was found", async () => {
    const { id, put, occurrences } = await world();
    await put("a", 2 * day, INFO, OPEN);
    await transaction(sql, async (tx) => {
      await put("a", hour, INFO, OPEN);
      await ageOccurrences(tx, id, ageing, { nowMs, store });
    });
    expect(await occurrences()).toMatchObject([{ status: OPEN }]);
  });
});

describe("retention", () => {
  const beforeMs = BigInt(nowMs - 60 * day);
  const drop = async (id: string) => {
    while (await transaction(sql, (tx) => deleteOld(tx, id, beforeMs)));
  };

  test("deletes what was closed before, with its notes; an event without occurrences goes, too", async () => {
    const { id, put, occurrences, management } = await world();
    await put("a all old", 70 * day, INFO, CLOSED);
    await put("b old and new", 70 * day, INFO, CLOSED);
    await put("b old and new", 10 * day, INFO, OPEN);
    await put("b old and new", 9 * day, INFO, CLOSED);
    await put("c closed, but reported since", 70 * day, INFO, CLOSED);
    await put("c closed, but reported since", 9 * day, INFO, CLOSED);
    await put("d open", 70 * day, INFO, OPEN);
    const [first] = await occurrences();
    await management.annotateEvents({
      annotations: [{ eventId: first?.id.split(":")[0] ?? "", occurrenceId: first?.id ?? "", annotation: "note" }],
    });
    await drop(id);
    expect((await occurrences()).map(({ name, id }) => [name, id.split(":")[1]])).toEqual([
      ["b old and new", "2"],
      ["c closed, but reported since", "1"],
      ["d open", "1"],
    ]);
    expect((await sql`select from events where tenant_id = ${id}`).count).toBe(3);
    expect((await sql`select from annotations where tenant_id = ${id}`).count).toBe(0);
  });

  test("deletes instances from before then: an occurrence that never closes goes on counting them", async () => {
    const { id, put, queries } = await world();
    for (const ageMs of [80 * day, 70 * day, hour]) await put("a", ageMs, INFO, OPEN);
    await drop(id);
    expect((await sql`select from instances where tenant_id = ${id}`).count).toBe(1);
    const { results } = await queries.searchEvents({ query: {} });
    expect(results[0]?.occurrences).toMatchObject([{ instanceCount: 3n }]);
  });

  test("goes on in portions, however many instances have one time, and occurrences one event", async () => {
    const { id, put } = await world();
    await put("a", 80 * day, INFO, CLOSED);
    await sql`
      insert into instances (tenant_id, event_id, time_ms, severity, status, number)
      select tenant_id, int4send(i) || substr(event_id, 5), time_ms, severity, status, number
      from instances, generate_series(1, 11000) i where tenant_id = ${id}`;
    await sql`
      insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count)
      select tenant_id, event_id, number + i, severity, status, acknowledged, type, summary, body, metadata,
        start_ms, last_seen_ms, end_ms, instance_count
      from occurrences, generate_series(1, 11000) i where tenant_id = ${id}`;
    const left = async () => [
      (await sql`select from instances where tenant_id = ${id}`).count,
      (await sql`select from occurrences where tenant_id = ${id}`).count,
    ];
    expect(await left()).toEqual([11_001, 11_001]);
    await transaction(sql, (tx) => deleteOld(tx, id, beforeMs));
    const [instances = 0, occurrences = 0] = await left();
    expect(instances).toBe(6001);
    // Of one time any 5,000 are the portion, and all up to the newest of them go.
    expect(occurrences).toBeGreaterThan(0);
    expect(occurrences).toBeLessThanOrEqual(6001);
    await drop(id);
    expect(await left()).toEqual([0, 0]);
    expect((await sql`select from events where tenant_id = ${id}`).count).toBe(0);
  });

  test("keeps the newest occurrence while an older one stays, so that no number is given twice", async () => {
    const { id, put, occurrences, management } = await world();
    await put("a", 80 * day, INFO, CLOSED);
    await put("a", 79 * day, INFO, CLOSED);
    // Each CLOSED report after the first only counts: an occurrence is opened, then closed.
    await put("a", 78 * day, INFO, OPEN);
    await put("a", 77 * day, INFO, CLOSED);
    await put("a", 76 * day, INFO, OPEN);
    await put("a", 75 * day, INFO, CLOSED);
    const eventId = (await occurrences())[0]?.id.split(":")[0] ?? "";
    await management.setEventStatus({
      statuses: [{ eventId, occurrenceId: `${eventId}:1`, statusWrapper: { status: OPEN } }],
    });
    await drop(id);
    const numbers = async () => (await occurrences()).map(({ id }) => Number(id.split(":")[1])).sort();
    expect(await numbers()).toEqual([1, 3]);
    await put("a", hour, INFO, OPEN);
    expect(await numbers()).toEqual([1, 3, 4]);
  });
});

test("a server ages and deletes by itself", async () => {
  const busy = await testServer({ BELFRY_EVENT_AGEING: "INFO=1h" }, { housekeepingMs: 50 });
  const tenant = await testTenant(busy.database.sql);
  const grpc = transport(busy.target, "grpc", tenant.headers);
  await createClient(DataReceiverService, grpc).putEvents({
    events: [
      {
        name: "a",
        dimensions: { source: "a" },
        timestamp: BigInt(Date.now() - 2 * hour),
        severity: INFO,
        status: OPEN,
      },
    ],
  });
  const status = async () => {
    const { results } = await createClient(EventQueryService, grpc).searchEvents({ query: {} });
    return results[0]?.occurrences[0]?.status;
  };
  await expect.poll(status).toBe(CLOSED);
});
