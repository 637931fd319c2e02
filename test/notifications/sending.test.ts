import { expect, test } from "vitest";
import { keepPartitions } from "../../src/db/partitions.ts";
import { historyPartitions } from "../../src/notifications/queue/history.ts";
import type { Result } from "../../src/notifications/queue/result.ts";
import { record } from "../../src/notifications/queue/result-statements.ts";
import { answering } from "../support/receivers.ts";
import { dispatchSite } from "./dispatch.ts";

const { sql, pool, tenant, nowMs, receiver } = await dispatchSite();
const range = (count: number) => Array.from({ length: count }, (_, i) => i);
const idsAt = (path: string) =>
  receiver()
    .received.filter((each) => each.path === path)
    .map(({ headers }) => headers["webhook-id"]);

test("what is due is sent once, recorded with its attempt, and gone from what waits", async () => {
  const place = await tenant();
  const ids = await place.put(range(40).map((event) => ({ event })));
  await place.dispatch(nowMs);
  expect(idsAt("/ops").toSorted()).toEqual(ids.toSorted());
  expect(await place.waiting()).toEqual([]);
  const done = await place.done();
  expect(done.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(new Set(done.map(({ status }) => status))).toEqual(new Set(["SENT"]));
  expect(done[0]?.attempts).toMatchObject([{ reason: "sent" }]);
  await place.dispatch(nowMs + 1000);
  expect(idsAt("/ops")).toHaveLength(40);
});

test("what is due later waits for its moment", async () => {
  const place = await tenant();
  await place.put([{ dueMs: nowMs + 5000 }]);
  expect(await place.dispatch(nowMs + 4999)).toEqual([]);
  expect(await place.dispatch(nowMs + 5000)).toMatchObject([{ status: "SENT" }]);
});

test("of one destination and subject the oldest goes first, and a later one waits for it", async () => {
  const place = await tenant({ order: {} });
  const destination = "order";
  const [first, second] = await place.put([
    { destination, createdMs: nowMs },
    { destination, createdMs: nowMs + 1, occasion: "severity" },
  ]);
  receiver().answer(answering(503));
  await place.dispatch(nowMs + 1);
  expect(idsAt("/order")).toEqual([first]);
  receiver().answer(answering(200));
  expect(await place.dispatch(nowMs + 2)).toEqual([]);
  await place.dispatch(nowMs + 6000);
  expect(idsAt("/order")).toEqual([first, first, second]);
});

test("what waits for its delay holds up nothing; what was tried does", async () => {
  const place = await tenant({ delays: {} });
  const destination = "delays";
  const [delayed, now, later] = await place.put([
    { destination, createdMs: nowMs, dueMs: nowMs + 20_000 },
    { destination, createdMs: nowMs + 1 },
    { destination, createdMs: nowMs + 2, occasion: "severity" },
  ]);
  receiver().answer(answering(503));
  await place.dispatch(nowMs + 2);
  expect(idsAt("/delays")).toEqual([now]);
  receiver().answer(answering(200));
  expect(await place.dispatch(nowMs + 3)).toEqual([]);
  await place.dispatch(nowMs + 6000);
  expect(idsAt("/delays")).toEqual([now, now, later]);
  await place.dispatch(nowMs + 20_000);
  expect(idsAt("/delays")).toEqual([now, now, later, delayed]);
});

test("a try that fails is tried again by the table, at last it has failed; all its attempts are reported", async () => {
  const place = await tenant({ sick: {} });
  receiver().answer(answering(500));
  await place.put([{ destination: "sick" }]);
  let atMs = nowMs;
  const waits: number[] = [];
  for (let i = 0; i < 9; i++) {
    await place.dispatch(atMs);
    const [row] = await place.waiting();
    if (row === undefined) break;
    waits.push(Math.round((row.dueMs - atMs) / 1000));
    // The breaker is not what this is about.
    atMs = Math.max(row.dueMs, Number((await place.state("sick"))?.open_until_ms ?? 0));
  }
  receiver().answer(answering(200));
  expect(waits).toEqual([5, 30, 120, 600, 1800, 3600, 10_800, 21_600]);
  expect(await place.done()).toMatchObject([{ status: "FAILED", error: "busy: HTTP 500" }]);
  expect((await place.done())[0]?.attempts).toHaveLength(9);
});

test("a receiver's Retry-After counts, as far as it may", async () => {
  const place = await tenant({ busy: {} });
  receiver().answer(answering(429, "", { "retry-after": "40" }));
  await place.put([{ destination: "busy" }]);
  await place.dispatch(nowMs);
  receiver().answer(answering(200));
  const [row] = await place.waiting();
  expect((row?.dueMs ?? 0) - nowMs).toBeGreaterThanOrEqual(40_000);
  expect((row?.dueMs ?? 0) - nowMs).toBeLessThanOrEqual(48_000);
});

test("an open breaker costs no attempt, and what waited goes when a probe succeeds", async () => {
  const place = await tenant({ down: {} });
  receiver().answer(answering(503));
  await place.put(range(5).map((event) => ({ destination: "down", event })));
  await place.dispatch(nowMs);
  const tries = () => idsAt("/down").length;
  expect(tries()).toBe(5);
  expect(await place.dispatch(nowMs + 10_000)).toEqual([]);
  expect(tries()).toBe(5);
  receiver().answer(answering(200));
  await place.dispatch(nowMs + 30_000);
  await place.dispatch(nowMs + 30_001);
  expect((await place.done()).map(({ status }) => status)).toEqual(Array(5).fill("SENT"));
  expect(tries()).toBe(10);
});

test("what was due for three days at a destination that does not answer fails; what came later waits on", async () => {
  const place = await tenant({ away: {} });
  const dayMs = 86_400_000;
  receiver().answer(answering(503));
  await place.put(range(5).map((event) => ({ destination: "away", event })));
  await place.dispatch(nowMs);
  await place.put([5, 6].map((event) => ({ destination: "away", event })));
  // Of those that opened the breaker tries end after hours.
  await sql`delete from due_deliveries where tenant_id = ${place.id} and tries > 0`;
  const later = nowMs + 3 * dayMs;
  await place.put([{ destination: "away", event: 8, dueMs: later }]);
  await place.dispatch(later + 1);
  const done = await place.done();
  expect(done.map(({ status }) => status)).toEqual(["FAILED", "FAILED"]);
  expect(done[0]?.error).toBe("the destination has not answered for 259200 s");
  expect(await place.waiting()).toHaveLength(1);
});

test("an old delivery that was tried again, and ends after the time for which such are kept, ends like any other", async () => {
  const place = await tenant({ later: {} });
  const dayMs = 86_400_000;
  const table = historyPartitions({ deliveryRetentionSec: 7 * 86_400, deliveryWaitSecMax: 3 * 86_400 });
  const createdMs = nowMs - 7 * dayMs + 1000;
  await keepPartitions(sql, { ...table, keepMs: 90 * dayMs }, createdMs);
  await place.put([{ destination: "later", createdMs, dueMs: nowMs - 4 * dayMs }]);
  await sql`
    update destinations set disabled_reason = 'it is gone' where tenant_id = ${place.id} and name = 'later'`;
  // It has waited for three days, and was tried again by then.
  await keepPartitions(sql, table, nowMs + 4 * dayMs);
  await place.dispatch(nowMs + 4 * dayMs);
  expect(await place.done()).toMatchObject([{ status: "FAILED" }]);
});

test("410 disables the destination, and what waits for it has failed at once", async () => {
  const place = await tenant({ gone: {} });
  receiver().answer(answering(410, "no more"));
  await place.put([
    { destination: "gone" },
    { destination: "gone", event: 1, dueMs: nowMs + 3_600_000 },
    { destination: "gone", event: 2, dueMs: nowMs + 1 },
  ]);
  await place.dispatch(nowMs);
  await place.dispatch(nowMs + 1);
  receiver().answer(answering(200));
  expect(idsAt("/gone")).toHaveLength(1);
  expect((await place.done()).map(({ status }) => status)).toEqual(["FAILED", "FAILED", "FAILED"]);
  expect(await place.waiting()).toEqual([]);
  const [row] = await sql`select disabled_reason from destinations where tenant_id = ${place.id} and name = 'gone'`;
  expect(row?.disabled_reason).toBe("gone: HTTP 410: no more");
});

test("above maxPerMinute one summary a minute reports how many and names five; the rest is summed up", async () => {
  const place = await tenant({ storm: { maxPerMinute: 3 } });
  await place.put(range(12).map((event) => ({ destination: "storm", event })));
  await place.dispatch(nowMs);
  expect(idsAt("/storm")).toHaveLength(3);
  await place.dispatch(nowMs + 59_000);
  expect(idsAt("/storm")).toHaveLength(3);
  await place.dispatch(nowMs + 60_000);
  expect(idsAt("/storm")).toHaveLength(4);
  const { message, event } = JSON.parse(receiver().received.at(-1)?.body ?? "{}");
  expect(event.summary).toMatch(/^9 notifications: (disk \d+, ){5}…$/);
  expect(message).toContain("9 notifications");
  const statuses = Map.groupBy(await place.done(), ({ status }) => status);
  expect([statuses.get("SENT")?.length, statuses.get("SUMMARISED")?.length]).toEqual([4, 8]);
  expect(await place.waiting()).toEqual([]);
});

test("only what was looked for and is not there is cancelled as deleted, also among many", async () => {
  const place = await tenant({ storm: { maxPerMinute: 1 }, alone: {} });
  await place.put([
    ...range(301).map((event) => ({ destination: "storm", event, createdMs: nowMs + event })),
    ...range(3).map((event) => ({ destination: "alone", event, createdMs: nowMs + event })),
  ]);
  await sql`delete from occurrences where tenant_id = ${place.id} and event_id in (
    select event_id from due_deliveries where tenant_id = ${place.id} and created_ms between ${nowMs + 1}::int8 and ${nowMs + 120}::int8)`;
  await place.dispatch(nowMs + 1000);
  await place.dispatch(nowMs + 62_000);
  const done = Map.groupBy(await place.done(), ({ status, error }) => (error === "" ? status : error));
  expect(done.get("what it is about was deleted")).toHaveLength(120 + 2);
  expect([done.get("SENT")?.length, done.get("SUMMARISED")?.length]).toEqual([1 + 1 + 1, 179]);
  const { event } = JSON.parse(receiver().received.findLast(({ path }) => path === "/storm")?.body ?? "{}");
  expect(event.fields).toMatchObject({ count: 180 });
  expect(event.fields.names).toHaveLength(80);
  expect(await place.waiting()).toEqual([]);
});

test("a clear of what never went out is cancelled, as is what no one needs any more", async () => {
  const place = await tenant({ tidy: {} });
  await place.put([{ destination: "tidy", occasion: "clear" }]);
  expect(await place.dispatch(nowMs)).toMatchObject([
    { status: "CANCELLED", error: "nothing was sent that could be cleared" },
  ]);
  await place.put([{ destination: "tidy", event: 1 }]);
  const over = async (_tenant: string, rows: readonly { id: string }[]) =>
    new Map(rows.map(({ id }) => [id, { send: false, reason: "the condition is over" } as const]));
  expect(await place.dispatch(nowMs, { recheck: over })).toMatchObject([{ status: "CANCELLED" }]);
  await place.put([{ destination: "tidy", event: 2 }]);
  await sql`delete from rule_destinations where tenant_id = ${place.id}`;
  expect(await place.dispatch(nowMs)).toMatchObject([
    { status: "CANCELLED", error: "the rule does not name the destination any more" },
  ]);
  expect(idsAt("/tidy")).toEqual([]);
});

test("what is cancelled is neither the probe of a destination nor counted at it: what is after it goes at once", async () => {
  const token = { teamChat: { channel: "ops", token: "x" } };
  const place = await tenant({ probed: {}, paced: { kind: "teamChat", type: token }, few: { maxPerMinute: 2 } });
  receiver().answer(answering(503));
  await place.put(range(5).map((event) => ({ destination: "probed", event })));
  await place.dispatch(nowMs);
  await sql`delete from due_deliveries where tenant_id = ${place.id}`;
  receiver().answer(answering(200));
  const later = nowMs + 40_000;
  const names = ["probed", "paced", "few"];
  const ids = await place.put(
    names.flatMap((destination) => range(7).map((i) => ({ destination, event: 10 + i, dueMs: later - 10 + i }))),
  );
  const needed = new Set(ids.filter((_, i) => i % 7 === 6));
  const over = async (_tenant: string, rows: readonly { id: string }[]) =>
    new Map(
      rows.flatMap(({ id }) =>
        needed.has(id) ? [] : [[id, { send: false, reason: "the condition is over" }] as const],
      ),
    );
  const sent = { result: "sent", answer: "", state: {} } as const;
  const results = await place.dispatch(later, { recheck: over, send: async () => sent });
  expect(results.filter(({ status }) => status === "CANCELLED")).toHaveLength(18);
  expect(results.flatMap(({ row, status }) => (status === "SENT" ? [row.destinationName] : [])).sort()).toEqual(
    names.toSorted(),
  );
  expect(await place.waiting()).toEqual([]);
});

test("a clear follows what went out", async () => {
  const place = await tenant({ clears: {} });
  const destination = "clears";
  const ids = await place.put([
    { destination, createdMs: nowMs },
    { destination, createdMs: nowMs + 1, occasion: "clear" },
  ]);
  await place.dispatch(nowMs + 1);
  expect(idsAt("/clears")).toEqual(ids);
});

test("a clear follows what may have gone out: the end of its try was not recorded", async () => {
  const place = await tenant({ lost: {} });
  const destination = "lost";
  const [first, clear] = await place.put([
    { destination, createdMs: nowMs },
    { destination, createdMs: nowMs + 1, occasion: "clear" },
  ]);
  await sql`update due_deliveries set fence = 1, lease_until_ms = ${BigInt(nowMs + 10_000)}
    where tenant_id = ${place.id} and id = ${first as string}`;
  const over = async () => new Map([[first as string, { send: false, reason: "the condition is over" } as const]]);
  await place.dispatch(nowMs + 10_001, { recheck: over });
  expect(await place.done()).toMatchObject([
    { status: "CANCELLED", attempts: [{ reason: "lost", answer: expect.stringContaining("may have taken it") }] },
    { status: "SENT", attempts: [{ reason: "sent" }] },
  ]);
  expect(idsAt("/lost")).toEqual([clear]);
});

test("a clear follows what may have gone out, also where the look after it failed", async () => {
  const place = await tenant({ lost: {} });
  const destination = "lost";
  const [first, clear] = await place.put([
    { destination, createdMs: nowMs },
    { destination, createdMs: nowMs + 1, occasion: "clear" },
  ]);
  await sql`update due_deliveries set fence = 1, lease_until_ms = ${BigInt(nowMs + 10_000)}
    where tenant_id = ${place.id} and id = ${first as string}`;
  const fails = () => Promise.reject(new Error("the database went away"));
  await expect(place.dispatch(nowMs + 10_001, { recheck: fails })).rejects.toThrow("went away");
  receiver().received.length = 0;
  const over = async () => new Map([[first as string, { send: false, reason: "the condition is over" } as const]]);
  await place.dispatch(nowMs + 20_000, { recheck: over });
  expect((await place.done()).map(({ status }) => status)).toEqual(["CANCELLED", "SENT"]);
  expect(idsAt("/lost")).toEqual([clear]);
});

test("what a destination that was disabled may have taken is told in the history", async () => {
  const place = await tenant({ gone: {} });
  const [id] = await place.put([{ destination: "gone" }]);
  await sql`update due_deliveries set fence = 1, lease_until_ms = ${BigInt(nowMs + 10_000)}
    where tenant_id = ${place.id} and id = ${id as string}`;
  await sql`update destinations set disabled_reason = 'it answered 410' where tenant_id = ${place.id}`;
  await place.dispatch(nowMs + 10_001);
  expect(await place.done()).toMatchObject([{ status: "FAILED", attempts: [{ reason: "lost" }] }]);
});

test("what is recorded twice, because the first answer of the database was lost, counts once", async () => {
  const place = await tenant({ twice: {} });
  receiver().answer(answering(503));
  await place.put([{ destination: "twice" }]);
  const [result] = await place.dispatch(nowMs);
  receiver().answer(answering(200));
  await record(pool.sending, place.id, [result as Result], new Set(), nowMs);
  expect(await place.waiting()).toMatchObject([{ tries: 1 }]);
});

test("what a server that was paused records afterwards has no effect", async () => {
  const place = await tenant({ zombie: {} });
  const [id] = await place.put([{ destination: "zombie" }]);
  // The lease ends while the first try is under way, and a second server makes another.
  let second: Promise<unknown> | undefined;
  await place.dispatch(nowMs, {
    send: async () => {
      second ??= place.dispatch(nowMs + 10_001);
      await second;
      return { result: "failed", reason: "rejected", course: "fail", answer: "late", state: {} };
    },
  });
  expect(await place.done()).toMatchObject([{ id, status: "SENT", error: "" }]);
  expect(idsAt("/zombie")).toEqual([id]);
});

test("one tenant's deliveries are no one else's, though their destinations have one name", async () => {
  const [one, two] = [await tenant({ same: {} }), await tenant({ same: {} })];
  const [id] = await one.put([{ destination: "same" }]);
  expect(await two.dispatch(nowMs)).toEqual([]);
  await one.dispatch(nowMs);
  expect(idsAt("/same")).toEqual([id]);
});
