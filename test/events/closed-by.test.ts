import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { ageOccurrences } from "../../src/events/age.ts";
import { storingChanges } from "../../src/events/changes.ts";
import { expireOccurrences } from "../../src/events/expiry.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { ingestEvents } from "../entities/stored.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const { sql } = server.database;
const store = storingChanges({});
const [OPEN, CLOSED] = [1, 3] as const;
/** Long ago, but not so long that the service's own work removes it. */
const start = Date.now() - 1_000_000;

/** A tenant with one event, of which a test reports; all times are ms after the first report. */
async function world() {
  const { id, headers } = await testTenant(sql);
  const grpc = transport(server.target, "grpc", headers);
  const queries = createClient(EventQueryService, grpc);
  const at = (ms: number) => start + ms;
  const shown = async () => {
    const { results } = await queries.searchEvents({ query: {} } as never);
    const { results: some } = await queries.searchEvents({ query: { fields: [{ field: "endTime" }] } } as never);
    const { groups } = await queries.groupEvents({ query: {}, labels: ["alertname"] } as never);
    const { result } = await queries.getEvent({ id: results[0]?.id ?? "" });
    const all = [results[0], some[0], groups[0]?.members[0], result].map((event) => event?.occurrences[0]?.closedBy);
    expect(new Set(all).size).toBe(1);
    return all[0];
  };
  return {
    id,
    shown,
    async report(ms: number, status: number, more: Partial<EventItem> = {}) {
      const texts = { type: "", summary: "", body: "", metadata: {}, acknowledged: undefined };
      const item = { name: "a", dimensions: { source: "x" }, timeMs: BigInt(at(ms)), severity: 4, status, ...texts };
      await ingestEvents(sql, id, [{ ...item, ...more }], { nowMs: at(ms), store, known: entityCache() });
    },
    expire: (ms: number) => transaction(sql, (tx) => expireOccurrences(tx, id, { nowMs: at(ms), store })),
    age: (ms: number) => transaction(sql, (tx) => ageOccurrences(tx, id, new Map([[4, 10]]), { nowMs: at(ms), store })),
    async set(status: number) {
      const { results } = await queries.searchEvents({ query: {} } as never);
      const [occurrence] = results[0]?.occurrences ?? [];
      const ids = { eventId: occurrence?.eventId ?? "", occurrenceId: occurrence?.id ?? "" };
      const statuses = [{ ...ids, statusWrapper: { status } }];
      const answer = await createClient(EventManagementService, grpc).setEventStatus({ statuses } as never);
      expect(answer.statusResponses).toMatchObject([{ success: true }]);
    },
    /** As a process of 0.3 leaves it. */
    forget: () => sql`update occurrences set closed_by = null where tenant_id = ${id}`,
  };
}

type World = Awaited<ReturnType<typeof world>>;

const expires = { expiresAtMs: BigInt(start + 100) };
const closings: [string, ClosedBy, (it: World) => Promise<unknown>][] = [
  ["a report", ClosedBy.EVENT, async ({ report }) => await report(10, CLOSED)],
  ["the end of an alert", ClosedBy.ALERT, async ({ report }) => await report(10, CLOSED, { closesOpen: true })],
  ["a call", ClosedBy.PERSON, async ({ set }) => await set(CLOSED)],
  ["its expiry", ClosedBy.EXPIRY, async ({ report, expire }) => [await report(10, OPEN, expires), await expire(110)]],
  ["its age", ClosedBy.AGEING, async ({ age }) => await age(1000)],
];

describe("who closed an occurrence", () => {
  test.each(closings)("is shown in every answer, and gone when it is opened again: %s", async (_what, by, close) => {
    const it = await world();
    await it.report(0, OPEN);
    expect(await it.shown()).toBeUndefined();
    await close(it);
    expect(await it.shown()).toBe(by);
    await it.set(OPEN);
    expect(await it.shown()).toBeUndefined();
    expect(await sql`select closed_by from occurrences where tenant_id = ${it.id}`).toEqual([{ closed_by: null }]);
  });

  test.each(closings)("is read without a value by what the occurrence says: %s", async (_what, by, close) => {
    const it = await world();
    await it.report(0, OPEN);
    await close(it);
    await it.forget();
    expect(await it.shown()).toBe(by === ClosedBy.EXPIRY || by === ClosedBy.AGEING ? by : ClosedBy.PERSON);
  });

  test("is the first to do so; but a report of its end after it has expired is the one", async () => {
    const it = await world();
    await it.report(0, OPEN, expires);
    await it.expire(110);
    await it.report(120, CLOSED, { closesOpen: true });
    expect(await it.shown()).toBe(ClosedBy.ALERT);
    await it.report(130, CLOSED);
    expect(await it.shown()).toBe(ClosedBy.ALERT);
  });

  test("is there for what begins with its end", async () => {
    const it = await world();
    await it.report(0, CLOSED);
    expect(await it.shown()).toBe(ClosedBy.EVENT);
  });
});
