import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Sql } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { ageOccurrences } from "../../src/events/age.ts";
import { type StoreChanges, storingChanges } from "../../src/events/changes.ts";
import { expireOccurrences } from "../../src/events/expiry.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { ingestEvents } from "../entities/stored.ts";
import { transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { sql } = server.database;
/** Without a server, whose own job would close what a test expires. */
const { sql: alone } = await testDatabase();
const heard: string[] = [];
const stored = storingChanges({
  onKeptOpen(_tenantId, events) {
    for (const { name } of events) heard.push(`kept ${name}`);
  },
});
const store: StoreChanges = (tx, locked, changes, ...more) => {
  for (const { after } of changes) heard.push(`${after.number}:${after.status}`);
  return stored(tx, locked, changes, ...more);
};
const [OPEN, SUPPRESSED, CLOSED] = [1, 2, 3] as const;

function item(time: number, more: Partial<EventItem> & { until?: number } = {}): EventItem {
  const { until, ...rest } = more;
  return {
    name: "job failed",
    dimensions: { source: "web-1" },
    timeMs: BigInt(time),
    severity: 4,
    status: OPEN,
    acknowledged: undefined,
    type: "",
    summary: "",
    body: "",
    metadata: {},
    ...(until !== undefined && { expiresAtMs: BigInt(until) }),
    ...rest,
  };
}

/** A tenant of its own: what is put and expires at a time, and what there is then. */
async function world(sql: Sql = alone) {
  const { id, headers } = await testTenant(sql);
  heard.length = 0;
  const stored = async () => {
    const rows = await sql<{ text: string }[]>`
      select concat_ws(' ', number, status, start_ms, end_ms, 'x' || instance_count, '<' || expires_ms) as text
      from occurrences where tenant_id = ${id} order by event_id, number`;
    return rows.map(({ text }) => text);
  };
  return {
    id,
    headers,
    stored,
    put: async (nowMs: number, ...items: EventItem[]) => {
      await ingestEvents(sql, id, items, { nowMs, store, known: entityCache() });
      return await stored();
    },
    expire: async (nowMs: number) => {
      const next = await transaction(sql, (tx) => expireOccurrences(tx, id, { nowMs, store }));
      return { next: next === undefined ? undefined : Number(next), stored: await stored() };
    },
    state: async () => {
      const [job] = await sql<{ due: number }[]>`
        select due_ms::float8 as due from jobs where tenant_id = ${id} and kind = 'events.expiry'`;
      return job?.due;
    },
  };
}

describe("when an occurrence expires", () => {
  test("a new instance sets it, a late or repeated one only moves it on, and none leaves it", async () => {
    const { put } = await world();
    expect(await put(10, item(10, { until: 100 }))).toEqual(["1 1 10 x1 <100"]);
    expect(await put(20, item(20, { until: 50 }))).toEqual(["1 1 10 x2 <50"]);
    expect(await put(21, item(20, { until: 40 }))).toEqual(["1 1 10 x2 <50"]);
    expect(await put(22, item(20, { until: 70 }))).toEqual(["1 1 10 x2 <70"]);
    expect(await put(23, item(15, { until: 60 }))).toEqual(["1 1 10 x3 <70"]);
    expect(await put(24, item(16, { until: 80 }))).toEqual(["1 1 10 x4 <80"]);
    expect(await put(25, item(30))).toEqual(["1 1 10 x5 <80"]);
    expect(await put(26, item(30), item(30, { until: 90 }), item(31, { until: 85 }))).toEqual(["1 1 10 x6 <85"]);
    expect(await put(27, item(40, { status: CLOSED, until: 99 }))).toEqual(["1 3 10 40 x7"]);
  });

  test("one that never expires does not begin to by what is no news", async () => {
    const { put } = await world();
    await put(10, item(10));
    expect(await put(11, item(10, { until: 100 }))).toEqual(["1 1 10 x1"]);
    expect(await put(12, item(12, { until: 100 }))).toEqual(["1 1 10 x2 <100"]);
  });

  test("it closes at that time with a note, suppressed ones too, once, and whoever hears of closings hears of it", async () => {
    const { put, expire, id } = await world();
    await put(
      10,
      item(10, { until: 100 }),
      item(11, { name: "b", status: SUPPRESSED, until: 120 }),
      item(12, { name: "c" }),
    );
    expect((await expire(99)).next).toBe(100);
    heard.length = 0;
    const { next, stored } = await expire(110);
    expect(next).toBe(120);
    expect(stored).toContain("1 3 10 100 x1 <100");
    expect(heard).toEqual(["1:3"]);
    expect((await expire(130)).next).toBeUndefined();
    expect((await expire(140)).stored.filter((text) => text.startsWith("1 3"))).toHaveLength(2);
    const notes = await alone`select text, created_by from annotations where tenant_id = ${id}`;
    expect(notes).toEqual(
      Array(2).fill({ text: "Closed by the service: no report came before expiresAt", created_by: "belfry" }),
    );
  });

  test("an instance that is stored already opens the next occurrence when it is received, once", async () => {
    const { put, expire } = await world();
    await put(10, item(10, { until: 100 }));
    await expire(100);
    expect(await put(150, item(10, { until: 120 }))).toEqual(["1 3 10 100 x1 <100"]);
    const both = ["1 3 10 100 x1 <100", "2 1 200 x1 <300"];
    expect(await put(200, item(10, { until: 300 }), item(10, { until: 290 }))).toEqual(both);
    expect(await put(210, item(10, { until: 400 }))).toEqual([both[0], "2 1 200 x1 <400"]);
  });

  test("after people or a report have closed it, what is stored already changes nothing", async () => {
    const { put, expire, id } = await world();
    await put(10, item(10, { until: 100 }), item(20, { status: CLOSED }));
    expect(await put(30, item(10, { until: 200 }))).toEqual(["1 3 10 20 x2"]);
    await put(40, item(40, { name: "b", until: 100 }));
    await expire(100);
    await put(110, item(110, { name: "b", status: CLOSED }));
    expect((await put(120, item(40, { name: "b", until: 300 }))).join()).not.toContain("2 1");
    expect(await alone`select from instances where tenant_id = ${id}`).toHaveLength(4);
  });

  test("does not age meanwhile", async () => {
    const { put, id, stored } = await world();
    await put(10, item(10, { until: 10_000_000 }), item(10, { name: "b" }));
    await transaction(alone, (tx) => ageOccurrences(tx, id, new Map([[4, 1000]]), { nowMs: 9_000_000, store }));
    expect((await stored()).filter((text) => text.includes(" 3 "))).toHaveLength(1);
  });

  test("only keeping it open is no instance, whatever its time, and moves it on in the rows that change alone", async () => {
    const { put, expire, id } = await world();
    const keeps = (time: number, until: number) => item(time, { until, onlyKeepsOpen: true });
    expect(await put(10, keeps(10, 100), keeps(5, 110))).toEqual(["1 1 10 x1 <110"]);
    heard.length = 0;
    expect(await put(50, keeps(40, 150), keeps(9, 140))).toEqual(["1 1 10 x1 <150"]);
    expect(await put(51, keeps(40, 150))).toEqual(["1 1 10 x1 <150"]);
    expect(heard).toEqual(["kept job failed"]);
    const [{ liveness }] = await alone<[{ liveness: bigint }]>`
      select liveness_ms as liveness from entities where tenant_id = ${id}`;
    expect(liveness).toBe(0n);
    await expire(200);
    expect(await put(250, keeps(10, 300))).toEqual(["1 3 10 150 x1 <150", "2 1 250 x1 <300"]);
    await put(260, item(260, { status: CLOSED }));
    expect((await put(270, keeps(255, 400))).at(-1)).toBe("2 3 250 260 x2");
    expect((await put(280, keeps(261, 400))).at(-1)).toBe("3 1 261 x1 <400");
  });
});

describe("the job of a tenant", () => {
  test("is there only while something may expire, and is due for the first of it", async () => {
    const { put, state } = await world();
    await put(10, item(10));
    expect(await state()).toBeUndefined();
    const far = Date.now() + 3_600_000;
    await put(20, item(20, { until: far }));
    expect(await state()).toBe(Math.ceil(far / 500) * 500);
    await put(30, item(30, { name: "b", until: far - 60_000 }), item(30, { name: "c", until: far + 60_000 }));
    expect(await state()).toBe(Math.ceil((far - 60_000) / 500) * 500);
  });

  test("closes through the API within 5 s, with keys that distinguish events", async () => {
    const { headers, state } = await world(sql);
    const grpc = transport(server.target, "grpc", headers);
    const queries = createClient(EventQueryService, grpc);
    const now = Date.now();
    const event = (dedupKey: string, expiresAt?: number) => ({
      name: "disk full",
      dimensions: { source: "web-1" },
      timestamp: BigInt(now),
      status: OPEN as never,
      dedupKey,
      ...(expiresAt !== undefined && { expiresAt: BigInt(expiresAt) }),
    });
    const { succeeded } = await createClient(DataReceiverService, grpc).putEvents({
      events: [event("/var", now + 1000), event("/home", now + 3_600_000), event("")],
    });
    expect(succeeded).toBe(3);
    const search = async () =>
      (await queries.searchEvents({ query: { sortBy: [{ byField: { field: "dedupKey" } }] } } as never)).results;
    const first = await search();
    expect(first.map(({ dedupKey }) => dedupKey).sort()).toEqual(["/home", "/var", undefined]);
    expect(new Set(first.map(({ id }) => id)).size).toBe(3);
    const ofVar = async () => {
      const found = (await search()).find(({ dedupKey }) => dedupKey === "/var");
      return (await queries.getEvent({ id: found?.id ?? "" })).result?.occurrences[0];
    };
    expect((await ofVar())?.expiresAt).toBe(BigInt(now + 1000));
    for (let i = 0; i < 60 && (await ofVar())?.status !== CLOSED; i++) await sleep(100);
    const closed = await ofVar();
    expect(closed).toMatchObject({ status: CLOSED, endTime: BigInt(now + 1000) });
    expect(closed?.annotations[0]?.createdBy).toBe("belfry");
    // What people open again stays open.
    const management = createClient(EventManagementService, grpc);
    const ids = { eventId: closed?.eventId ?? "", occurrenceId: closed?.id ?? "" };
    await management.setEventStatus({ statuses: [{ ...ids, statusWrapper: { status: OPEN } }] });
    expect((await ofVar())?.expiresAt).toBeUndefined();
    expect(await state()).toBe(Math.ceil((now + 3_600_000) / 500) * 500);
  });

  test("works beside the receiver without losing an expiry, however they meet", async () => {
    const { id, put, expire, stored } = await world();
    const many = Array.from({ length: 40 }, (_, i) => i);
    await Promise.all(
      many.flatMap((i) => [
        put(10, item(10, { name: randomUUID(), until: 1000 + (i % 7) })),
        transaction(alone, (tx) => expireOccurrences(tx, id, { nowMs: 1003, store })),
      ]),
    );
    expect((await expire(2000)).next).toBeUndefined();
    const all = await stored();
    expect(all).toHaveLength(40);
    expect(all.filter((text) => !text.startsWith("1 3"))).toEqual([]);
  });
});

test("a time that looks like seconds is refused, and so is a key that is too long", async () => {
  const { headers } = await world(sql);
  const grpc = transport(server.target, "grpc", headers);
  const event = { name: "a", dimensions: { source: "a" }, timestamp: BigInt(Date.now()) };
  const { failedEvents } = await createClient(DataReceiverService, grpc).putEvents({
    detailedResponse: true,
    events: [
      { ...event, expiresAt: 1_700_000_000n },
      { ...event, dedupKey: "x".repeat(256) },
    ],
  });
  expect(failedEvents.map(({ error }) => error)).toEqual([
    "events[0].expiresAt: must be in ms since the epoch; 1700000000 looks like seconds",
    "events[1].dedupKey: must be at most 255 characters",
  ]);
});
