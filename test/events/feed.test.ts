import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { eventIds } from "../../src/entities/identity.ts";
import { type ChangeHooks, storingChanges } from "../../src/events/changes.ts";
import {
  decodeChanges,
  encodeChanges,
  encodeEarlier,
  type FeedChange,
  type FeedRow,
  feedMs,
  pruneFeed,
} from "../../src/events/feed.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import { ingestEvents } from "../entities/stored.ts";
import { testDatabase } from "../support/database.ts";
import { bareTenant } from "../support/tenant.ts";

const { sql } = await testDatabase();
const CLOSED = 3;

function item(time: number, more: Partial<EventItem> = {}): EventItem {
  const texts = { type: "", summary: "", body: "", metadata: {} };
  const state = { severity: 4, status: 1, acknowledged: undefined };
  return { name: "disk full", dimensions: { source: "web-1" }, timeMs: BigInt(time), ...state, ...texts, ...more };
}

const put = (tenant: string, items: EventItem[], hooks: ChangeHooks = {}, nowMs = 1000) =>
  ingestEvents(sql, tenant, items, { nowMs, store: storingChanges(hooks), known: entityCache() });

async function feedOf(tenant: string) {
  const rows = await sql<{ position: bigint; created_ms: bigint; changes: Buffer; earlier: Buffer | null }[]>`
    select position, created_ms, changes, earlier from feed where tenant_id = ${tenant} order by position`;
  return rows.map(({ position, created_ms, changes, earlier }) => ({
    position,
    createdMs: created_ms,
    changes: decodeChanges(changes, earlier),
  }));
}

/** A consumer that wants the facts of every tenant. */
const wanting = { name: "test", wants: () => true };

test("the feed's row is told after its commit, with the facts of each report and change, none merged, for whom wants them", async () => {
  const tenant = await bareTenant(sql);
  const rows: FeedRow[] = [];
  const hooks: ChangeHooks = { consumers: [wanting], onStored: (_, more) => rows.push(...more) };
  const batch = [item(10), item(20, { severity: 5 }), item(30, { status: CLOSED, severity: 0 }), item(40), item(40)];
  await put(tenant, batch, hooks);
  const facts = rows[0]?.facts ?? [];
  expect(facts.map(({ before, after }) => [before?.severity, after.number, after.status, after.severity])).toEqual([
    [undefined, 1, 1, 4],
    [4, 1, 1, 5],
    [5, 1, CLOSED, 5],
    [undefined, 2, 1, 4],
  ]);
  expect(facts.map(({ reported, news }) => [reported, news])).toEqual(facts.map(() => [true, true]));
  const { eventId, entityId } = eventIds(tenant, { source: "web-1" }, "disk full");
  expect(facts[0]?.event).toMatchObject({ id: eventId, entityId, name: "disk full" });
  expect(await feedOf(tenant)).toMatchObject(rows.map(({ facts: _, ...row }) => row));
  expect(rows).toMatchObject([
    {
      position: 1n,
      changes: [
        {
          eventId,
          number: 1,
          kind: "created",
          before: undefined,
          after: { severity: 5 },
          lastSeenMs: 20n,
          instanceCount: 2n,
        },
        { number: 1, kind: "closed", before: { status: 1, severity: 5 }, after: { status: CLOSED }, lastSeenMs: 30n },
        { number: 2, kind: "created" },
      ],
    },
  ]);
  await put(tenant, batch, hooks);
  expect(await feedOf(tenant)).toHaveLength(1);
});

test("positions have no gap and are never seen out of order, whatever is committed, aborted and written at once", async () => {
  const tenant = await bareTenant(sql);
  let seen = 0n;
  let going = true;
  async function watch() {
    while (going) {
      const rows = await sql<{ position: bigint }[]>`
        select position from feed where tenant_id = ${tenant} and position > ${seen} order by position`;
      for (const { position } of rows) {
        expect(position).toBe(seen + 1n);
        seen = position;
      }
      await sleep(1);
    }
  }
  const watching = watch();
  const store = storingChanges({});
  let stored = 0;
  await Promise.all(
    Array.from({ length: 6 }, async (_, client) => {
      for (let i = 0; i < 40; i++) {
        const batch = Array.from({ length: 3 }, (_, k) =>
          item(1000 + i, { name: `${client % 3}/${k}`, severity: 1 + (client % 5) }),
        );
        const aborted = (client + i) % 4 === 0;
        await transaction(sql, async (tx) => {
          await ingestEvents(tx, tenant, batch, { nowMs: 1000, store, known: entityCache() });
          if (aborted) throw new Error("aborted");
        }).then(
          () => stored++,
          (error) => expect(error.message).toBe("aborted"),
        );
      }
    }),
  );
  going = false;
  await watching;
  const rows = await feedOf(tenant);
  expect(rows.map(({ position }) => position)).toEqual(rows.map((_, i) => BigInt(i + 1)));
  expect(rows.length).toBeGreaterThan(100);
  expect(rows.length).toBeLessThanOrEqual(stored);
});

test("a change reads as it was written", () => {
  const eventId = Buffer.alloc(20, 7);
  const state = { severity: 5, status: 2, acknowledged: true };
  const all = [
    {
      eventId,
      number: 1,
      kind: "created" as const,
      before: undefined,
      after: state,
      lastSeenMs: 2n ** 50n,
      instanceCount: 1n,
    },
    {
      eventId,
      number: 2 ** 31,
      kind: "closed" as const,
      before: state,
      after: state,
      lastSeenMs: -1n,
      instanceCount: 9n,
    },
  ];
  expect(encodeEarlier(all)).toBeNull();
  expect(decodeChanges(encodeChanges(all), null)).toEqual(all);
  const replaced = { startMs: 5, endMs: null, summary: "a", metadata: JSON.parse('{"__proto__":1}'), added: ["k"] };
  const earlier = { lastSeenMs: 2n ** 50n, instanceCount: 8n };
  for (const each of [undefined, "unknown" as const, replaced]) {
    const [first, second] = all as [FeedChange, FeedChange];
    const changes = [first, { ...second, earlier: { ...earlier, replaced: each } }];
    expect(decodeChanges(encodeChanges(changes), encodeEarlier(changes))).toEqual(changes);
  }
});

test("a row keeps what its changes replaced, as far as it may grow", async () => {
  const tenant = await bareTenant(sql);
  const rows: FeedRow[] = [];
  const batch = (time: number, x: string) =>
    Array.from({ length: 12 }, (_, i) =>
      item(time, { name: `${i}`, summary: "s", metadata: { x, same: 1, ...(x === "b" && { y: 2 }) } }),
    );
  await put(tenant, batch(1, "a".repeat(60_000)));
  await put(tenant, batch(2, "b"), { onStored: (_, more) => rows.push(...more) });
  const earlier = rows[0]?.changes.map((change) => change.earlier) ?? [];
  expect(earlier[0]).toEqual({
    lastSeenMs: 1n,
    instanceCount: 1n,
    replaced: { metadata: { x: "a".repeat(60_000) }, added: ["y"] },
  });
  expect(earlier.map((each) => typeof each?.replaced)).toEqual([
    ...Array(8).fill("object"),
    ...Array(4).fill("string"),
  ]);
  expect(earlier.at(-1)).toEqual({ lastSeenMs: 1n, instanceCount: 1n, replaced: "unknown" });
});

test("old rows are removed, but never the newest", async () => {
  const tenant = await bareTenant(sql);
  for (let i = 1; i <= 3; i++) await put(tenant, [item(i)], {}, 1000 * i);
  await pruneFeed(sql, tenant, Number(feedMs) + 2500);
  expect((await feedOf(tenant)).map(({ position }) => position)).toEqual([3n]);
  await pruneFeed(sql, tenant, Number(feedMs) * 9);
  await put(tenant, [item(9)]);
  expect((await feedOf(tenant)).map(({ position }) => position)).toEqual([3n, 4n]);
});
