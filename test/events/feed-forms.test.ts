import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityCache } from "../../src/entities/entity-cache.ts";
import { type Change, type ChangeHooks, storingChanges } from "../../src/events/changes.ts";
import type { Consumer } from "../../src/events/consumers/consumer.ts";
import { feedConsumer } from "../../src/events/consumers/feed-consumer.ts";
import { decodeFacts, encodeFacts, type Fact, factsOf } from "../../src/events/facts.ts";
import { decodeChanges, encodeChanges, encodeEarlier, entriesOf, type FeedRow, merged } from "../../src/events/feed.ts";
import type { EventItem } from "../../src/events/ingest.ts";
import type { Occurrence } from "../../src/events/lifecycle.ts";
import { claim } from "../../src/jobs/queue.ts";
import { ingestEvents } from "../entities/stored.ts";
import { cases, seed } from "../support/cases.ts";
import { transport } from "../support/clients.ts";
import { testDatabase } from "../support/database.ts";
import { testServer } from "../support/server.ts";
import { bareTenant, testTenant } from "../support/tenant.ts";

const CLOSED = 3;
const pace = () => undefined;
const root = "018bcfe5-6800-7000-8000-00000000000a";
const startMs = 1_700_000_000_000n;
const ids = (byte: number) => ({ id: Buffer.alloc(20, byte), entityId: Buffer.alloc(20, 64 + byte) });
const disk = { ...ids(1), name: "disk full" };
const alertLabels = { job: "node", __name__: "up" };
const alert = { ...ids(2), name: "Ausfall “Süd” 🔥", dedupKey: "eth/0", alertLabels };
const opened: Occurrence = {
  number: 1,
  severity: 4,
  status: 1,
  acknowledged: false,
  type: "",
  summary: "85 %",
  body: "line\nline",
  metadata: { mount: "/var", free: 3 },
  startMs,
  lastSeenMs: startMs,
  endMs: null,
  instanceCount: 1n,
  expiresMs: null,
  keptOpenMs: null,
  closedBy: null,
};

function change(event: Change["event"], before: Occurrence | undefined, after: Occurrence, more: object = {}): Change {
  const instance = { timeMs: after.lastSeenMs, severity: 4, status: 1, chain: [], root, ...more };
  return { event, before, after, instance: instance as unknown as Change["instance"] };
}

/** What one transaction changes, and the next one. */
function reported(): Change[][] {
  const metadata = { mount: "/var", load: [1, { a: null }] };
  const minute = (n: number) => ({ lastSeenMs: startMs + BigInt(n) * 60_000n });
  const seen = { ...opened, ...minute(1), severity: 5, metadata, instanceCount: 2n, expiresMs: startMs + 600_000n };
  const again = { ...seen, ...minute(2), summary: "91 %", instanceCount: 3n, keptOpenMs: startMs + 180_000n };
  const ended = { status: CLOSED, acknowledged: true, endMs: startMs + 240_000n, instanceCount: 2n ** 40n };
  const closed = { ...again, ...minute(4), ...ended };
  const late = { ...closed, startMs: startMs - 5n, instanceCount: closed.instanceCount + 1n };
  const second = { ...opened, ...minute(5), number: 2, startMs: startMs + 300_000n };
  const fires = { ...opened, number: 7, metadata: JSON.parse('{"__proto__":1}') };
  const acknowledged = { ...fires, acknowledged: true };
  const worse = { ...acknowledged, severity: 6, metadata: {}, lastSeenMs: startMs + 1n, instanceCount: 2n };
  return [
    [
      change(disk, undefined, opened),
      change(alert, undefined, fires, { chain: ["a rule", "another"] }),
      change(disk, opened, seen),
      change(disk, seen, again),
      change(disk, again, closed),
      change(disk, closed, late, { timeMs: startMs - 5n }),
      change(disk, undefined, second),
      change(alert, fires, acknowledged),
    ],
    [change(alert, acknowledged, worse)],
  ];
}

/** A row with facts, as it is stored. */
async function stored(changes: readonly Change[], oldForm: boolean) {
  const [text] = await encodeFacts(factsOf(changes), pace, oldForm);
  const entries = entriesOf(changes);
  const kept = oldForm ? merged(entries) : entries;
  return { changes: encodeChanges(kept, oldForm), earlier: encodeEarlier(kept), facts: text?.text ?? "" };
}

/** The facts of changes as they are read: of what was before the state alone. */
const factsRead = (changes: readonly Change[], more: Partial<Occurrence> = {}) =>
  factsOf(changes).map(({ before, after, ...fact }) => {
    const { severity, status, acknowledged } = before ?? {};
    return { ...fact, before: before && { severity, status, acknowledged }, after: { ...after, ...more } };
  });

/** Changes of one transaction, made step by step from numbers: which event, what is done to it, and with which text. */
const histories = fc.array(fc.tuple(fc.nat(3), fc.nat(5), fc.string({ unit: "binary", maxLength: 4 }), fc.nat()), {
  minLength: 1,
  maxLength: 40,
});
function history(steps: [number, number, string, number][]): Change[] {
  const latest = new Map<number, Occurrence>();
  return steps.map(([which, what, text, number]) => {
    const there = latest.get(which);
    const isOpening = there === undefined || (there.status === CLOSED && what < 4);
    const before = isOpening ? undefined : there;
    const lastSeenMs = startMs + BigInt(number);
    const metadata = what === 1 ? { [text]: number } : (before?.metadata ?? {});
    const base: Occurrence = before ?? { ...opened, number: (there?.number ?? 0) + 1, metadata };
    const closes = what === 0 && !isOpening ? { status: CLOSED, endMs: lastSeenMs, closedBy: ClosedBy.AGEING } : {};
    const texts = what === 2 ? { summary: text, body: text } : {};
    const after = { ...base, ...texts, ...closes, metadata, lastSeenMs, instanceCount: base.instanceCount + 1n };
    latest.set(which, after);
    const labels = which === 2 ? { alertLabels: { [text]: "x" } } : {};
    const event = { ...ids(which + 1), name: text, ...(which === 1 ? { dedupKey: `k${number}` } : {}), ...labels };
    return change(event, before, after, { chain: what === 3 ? [text] : [] });
  });
}

test("what is written in either form is read as it was, for consumers and watches", async () => {
  await fc.assert(
    fc.asyncProperty(histories, async (steps) => {
      const changes = history(steps);
      const told = merged(entriesOf(changes));
      const kinds = told.map(({ eventId, number, kind }) => `${eventId[0]} ${number} ${kind}`);
      expect(kinds.filter((line, i) => line.endsWith("updated") && kinds.indexOf(line) !== i)).toEqual([]);
      const [row, old] = [await stored(changes, false), await stored(changes, true)];
      expect(await decodeFacts(row.facts, row.changes, pace)).toEqual(factsRead(changes));
      expect(await decodeFacts(old.facts, old.changes, pace)).toEqual(factsRead(changes, { closedBy: null }));
      for (const each of [row, old]) expect(decodeChanges(each.changes, each.earlier)).toEqual(told);
    }),
    { numRuns: cases(200), seed },
  );
});

const later = await testServer();
const former = await testDatabase();
await former.sql`update migrations set oldest_server = '0.1.0', applied_at = now() where name = '0026_closed-by'`;
const beside = await testServer({ DATABASE_URL: former.url });

test.each([
  { name: "as 0.3 does while one of it was there within the day", server: beside, db: former.sql, version: 1 },
  { name: "in the new form afterwards", server: later, db: later.database.sql, version: 2 },
])("a server stores $name", async ({ server, db, version }) => {
  const { id, headers } = await testTenant(db);
  await createClient(DataReceiverService, transport(server.target, "grpc", headers)).putEvents({
    events: [{ name: "disk full", dimensions: { source: "web-1" }, timestamp: BigInt(Date.now()) }],
  });
  expect(await db`select get_byte(changes, 0) as version from feed where tenant_id = ${id}`).toEqual([{ version }]);
});

interface Recorded {
  changes: string;
  earlier: string | null;
  facts: string;
  fact_count: number;
}
/** What the encoders of 0.3.0 make of `reported()`. */
const recorded: Recorded[] = JSON.parse(readFileSync(new URL("feed-rows-of-0-3.json", import.meta.url), "utf8"));

test.each([0, 1])("rows of 0.3.0 are read, and the old form has the same bytes: transaction %i", async (i) => {
  const changes = reported()[i] as Change[];
  const { facts, fact_count, ...rest } = recorded[i] as Recorded;
  const bytes = Buffer.from(rest.changes, "base64");
  const earlier = rest.earlier === null ? null : Buffer.from(rest.earlier, "base64");
  expect(fact_count).toBe(changes.length);
  for (const beside of [bytes, undefined]) expect(await decodeFacts(facts, beside, pace)).toEqual(factsRead(changes));
  expect(decodeChanges(bytes, earlier)).toEqual(merged(entriesOf(changes)));
  expect(await stored(changes, true)).toEqual({ changes: bytes, earlier, facts });
});

test("what is no row of the feed is refused with the reason", async () => {
  const { changes, facts } = await stored(reported()[0] as Change[], false);
  const withByte = (at: number, value: number) => Object.assign(Buffer.from(changes), { [at]: value });
  const broken: [Buffer, string][] = [
    [Buffer.alloc(0), "a row of the feed is of version undefined, which is unknown here"],
    [withByte(0, 9), "a row of the feed is of version 9, which is unknown here"],
    [changes.subarray(0, -1), "a row of the feed is cut off after 376 bytes"],
    [withByte(25, 4), "a row of the feed has a change of kind 4, which is unknown here"],
  ];
  for (const [bytes, reason] of broken) {
    expect(() => decodeChanges(bytes, null)).toThrow(reason);
    if (bytes.length > 0 && bytes[0] !== 1) await expect(decodeFacts(facts, bytes, pace)).rejects.toThrow(reason);
  }
  await expect(decodeFacts(facts, changes.subarray(0, -47), pace)).rejects.toThrow("a fact has no change");
  const more = Buffer.concat([changes, changes.subarray(-47)]);
  await expect(decodeFacts(facts, more, pace)).rejects.toThrow("9 changes have 8 facts");
  const lost = JSON.stringify({ ...JSON.parse(facts), texts: [] });
  await expect(decodeFacts(lost, changes, pace)).rejects.toThrow("a fact names a text 2 that is not there");
  // An entry whose first one is not there is told as it is.
  const [first] = decodeChanges(Buffer.concat([withByte(25, 3).subarray(0, 48)]), null);
  expect(first).toMatchObject({ number: 1, kind: "updated" });
});

describe("in one feed", async () => {
  const { sql } = await testDatabase();
  const wanting = { name: "test", wants: () => true };

  function item(time: number, source = `web-${time % 2}`): EventItem {
    const texts = { type: "", summary: `${time}`, body: "", metadata: { time } };
    const state = { severity: 1 + (time % 5), status: time % 7 === 0 ? CLOSED : 1, acknowledged: undefined };
    return { name: "disk full", dimensions: { source }, timeMs: BigInt(time), ...state, ...texts };
  }
  const items = (from: number, source?: string) => Array.from({ length: 5 }, (_, i) => item(10 * from + i, source));

  interface Reading {
    fails?: (fact: Fact) => boolean;
    oldForm?: () => boolean;
    logged?: object[];
  }

  /** A tenant, and servers that store in its feed and read it. */
  async function feedTenant() {
    const tenantId = await bareTenant(sql);
    const handed: FeedRow[] = [];
    const seen: Fact[] = [];
    return {
      tenantId,
      handed,
      seen,
      put: (reports: EventItem[], hooks: ChangeHooks = {}) =>
        ingestEvents(sql, tenantId, reports, {
          nowMs: 1000,
          known: entityCache(),
          store: storingChanges({ consumers: [wanting], onStored: (_, rows) => handed.push(...rows), ...hooks }),
        }),
      /** A server that has just started, and takes a few facts at a time. */
      server({ fails = () => false, oldForm = () => false, logged = [] }: Reading = {}) {
        const batch: Consumer["batch"] = async (_, __, facts) => {
          if (facts.some(fails)) throw new Error("broken");
          seen.push(...facts.slice(0, 3));
          return { taken: Math.min(3, facts.length) };
        };
        const log = { error: (fields: object) => void logged.push(fields) };
        return feedConsumer(sql, { ...wanting, batch }, { nowMs: () => 1000, oldForm, log });
      },
      rows: () => sql<{ position: bigint; changes: Buffer; earlier: Buffer | null }[]>`
        select position, changes, earlier from feed where tenant_id = ${tenantId} order by position`,
    };
  }
  type Feed = Awaited<ReturnType<typeof feedTenant>>;

  const inShort = ({ event, before, after, reported, news, root }: Fact) =>
    `${event.id.toString("hex")} ${before?.severity} ${after.number} ${after.severity} ${after.summary} ${reported} ${news} ${root}`;

  /** What was stored, as it was handed over, is what is read: facts with each report, changes, positions. */
  async function expectWhole({ handed, seen, rows }: Feed) {
    const inOrder = handed.toSorted((a, b) => Number(a.position - b.position));
    const read = await rows();
    expect(read.map(({ position }) => position)).toEqual(inOrder.map(({ position }) => position));
    expect(read.map(({ changes, earlier }) => decodeChanges(changes, earlier))).toEqual(
      inOrder.map((row) => row.changes),
    );
    expect(seen.map(inShort)).toEqual(inOrder.flatMap(({ facts = [] }) => facts.map(inShort)));
    expect(new Set(read.map(({ changes }) => changes[0]))).toEqual(new Set([1, 2]));
  }

  test("rows of both forms are read in their order, each fact once, by servers that start anew within a row", async () => {
    const feed = await feedTenant();
    for (let i = 1; i < 9; i++) {
      await feed.put(items(i), { oldForm: () => i % 3 === 1 || i === 6 });
      if (i % 2 === 0) await feed.server().consume(feed.tenantId);
    }
    await feed.server().consume(feed.tenantId);
    await expectWhole(feed);
    expect(feed.seen.length).toBeGreaterThan(30);
  });

  test("two servers of which one begins with the new form a moment earlier leave one feed", async () => {
    const feed = await feedTenant();
    let stored = 0;
    const beginsAt = (count: number) => () => stored < count;
    async function server(source: string, count: number) {
      const reader = feed.server({ oldForm: beginsAt(count) });
      for (let i = 1; i < 9; i++) {
        await feed.put(items(i, source), { oldForm: beginsAt(count) });
        stored += 1;
        await reader.consume(feed.tenantId);
      }
    }
    await Promise.all([server("web-0", 4), server("web-1", 9)]);
    await feed.server().consume(feed.tenantId);
    await expectWhole(feed);
  });

  test("what takes several rows is told and consumed whole in either form", async () => {
    const feed = await feedTenant();
    const large = (time: number) => ({ ...item(time), body: `${time}${"x".repeat(60_000)}` });
    for (const isOld of [true, false]) {
      await feed.put(
        Array.from({ length: 150 }, (_, i) => large(1 + i + (isOld ? 0 : 500))),
        { oldForm: () => isOld },
      );
      await feed.server().consume(feed.tenantId);
    }
    expect(feed.handed.length).toBeGreaterThan(4);
    await expectWhole(feed);
    const [old, ...others] = feed.handed.map(({ changes }) => changes.length);
    expect(old).toBeGreaterThan(0);
    expect(others).toEqual(others.toSorted((a, b) => Number(a > 0) - Number(b > 0)));
  });

  test("a row of which the changes are broken keeps neither what follows nor other tenants waiting", async () => {
    const [feed, other] = [await feedTenant(), await feedTenant()];
    for (const each of [feed, other]) for (let i = 1; i < 4; i++) await each.put([item(i)]);
    await sql`
      update feed set changes = ${Buffer.from([2, 1])} where tenant_id = ${feed.tenantId} and position = 2`;
    const logged: object[] = [];
    for (const each of [feed, other]) expect(await each.server({ logged }).consume(each.tenantId)).toBe("end");
    expect([feed, other].map(({ seen }) => seen.map(({ after }) => after.summary))).toEqual([
      ["1", "3"],
      ["1", "2", "3"],
    ]);
    expect(logged).toMatchObject([{ position: "2", cause: "a row of the feed is cut off after 2 bytes" }]);
  });

  test.each([true, false])("what is set aside is read again, in the old form also by 0.3: %s", async (isOld) => {
    const { tenantId, put, server, seen } = await feedTenant();
    await put([item(1), item(2)], { oldForm: () => isOld });
    let broken = true;
    const reader = server({ fails: ({ after }) => broken && after.summary === "1", oldForm: () => isOld });
    expect(await reader.consume(tenantId)).toBe("end");
    const kind = "test.aside";
    const jobs = await claim(sql, { tenantId, kind }, { sizeMax: 9, leaseMs: 10_000, nowMs: 120_000 });
    const [{ facts = "", changes }] = jobs.map(({ payload }) => payload) as [{ facts?: string; changes?: string }];
    // A server of 0.3 decodes the facts alone.
    const alone = await decodeFacts(facts, undefined, pace).catch(() => undefined);
    expect([alone?.map(({ after }) => after.summary), changes !== undefined]).toEqual(
      isOld ? [["1"], false] : [undefined, true],
    );
    [seen.length, broken] = [0, false];
    const job = reader.kinds.find(({ name }) => name === kind);
    expect(await transaction(sql, async (tx) => await job?.run(tx, tenantId, jobs, 120_000))).toEqual([]);
    expect(seen.map(({ event, after, news }) => [event.name, after.summary, news])).toEqual([
      ["disk full", "1", false],
    ]);
  });
});
