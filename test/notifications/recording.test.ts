import { expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { keyring } from "../../src/credentials/keyring.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import type { ClaimedDelivery } from "../../src/notifications/queue/delivery-queue.ts";
import { historyPartitions } from "../../src/notifications/queue/history.ts";
import type { Result } from "../../src/notifications/queue/result.ts";
import { resultBatcher } from "../../src/notifications/queue/result-batcher.ts";
import { dispatcher } from "../../src/notifications/sending/dispatcher.ts";
import { onOnePostgres } from "../support/one-postgres.ts";
import { masterKeys } from "../support/server.ts";
import { type Due, dispatchSite } from "./dispatch.ts";

const { sql, pool, nowMs, tenant, receiver, world } = await dispatchSite();
const dayMs = 86_400_000;
const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** A tenant with deliveries that are claimed, and a batcher with what it logs. */
async function claimed(due: readonly Due[], againMs = 200) {
  const place = await tenant();
  await place.put(due);
  const rows = await sql<ClaimedDelivery[]>`
    update due_deliveries set fence = fence + 1, lease_until_ms = ${BigInt(nowMs + 60_000)} where tenant_id = ${place.id}
    returning id, created_ms::float8 as "createdMs", fence, destination_name as "destinationName", attempts, tries,
      slow_tries as "slowTries"`;
  const logged: string[] = [];
  const log = { info() {}, warn() {}, error: (facts: object) => void logged.push((facts as { cause: string }).cause) };
  const { gate, sending: db } = pool;
  const records = resultBatcher({ db, gate, nowMs: () => nowMs, log: log as never, onRecorded() {}, againMs });
  const add = (some: readonly Partial<Result>[]) =>
    records.add(
      place.id,
      rows.map((row, i) => ({ row, status: "SENT", error: "", ...some[i] })),
      new Set(),
    );
  const statuses = async () => (await place.done()).map(({ status }) => status);
  return { place, records, logged, add, statuses };
}

/** Makes PostgreSQL refuse rows of the history with this SQLSTATE; returns what lets them in again. */
async function refuse(state: string, when = "true") {
  await sql.unsafe(`create or replace function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'refused' using errcode = '${state}'; end $$`);
  await sql.unsafe(`create trigger refused before insert on delivery_history
    for each row when (${when}) execute function refuse()`);
  return () => sql`drop trigger refused on delivery_history`;
}

onOnePostgres("triggers").for([
  ["a full disk", "53100"],
  ["an error of which nothing is known", "XX000"],
  ["a table that is missing while it is upgraded", "42P01"],
])("what was sent is recorded once PostgreSQL takes it again: %s", async ([, state]) => {
  const { records, logged, add, statuses, place } = await claimed([{}]);
  const admit = await refuse(state as string);
  add([]);
  await expect.poll(() => logged.length).toBeGreaterThan(1);
  expect(records.isLate(place.id)).toBe(true);
  expect(await place.waiting()).toHaveLength(1);
  await admit();
  await records.idle();
  expect(await statuses()).toEqual(["SENT"]);
  expect(records.isLate(place.id)).toBe(false);
});

onOnePostgres("triggers")(
  "a result that PostgreSQL refuses for what it holds is kept without the receiver's words",
  async () => {
    const { records, add, place } = await claimed([{}, { event: 1 }, { event: 2 }], 2);
    const admit = await refuse("22P05", `new.attempts::text like '%unheard%'`);
    const said = (reason: string, answer: string) => ({ attempt: { timeMs: nowMs, reason, answer } });
    add([
      { status: "SENT", ...said("sent", "an unheard of word") },
      { status: "SENT", ...said("sent", "thanks") },
      { status: "FAILED", error: "rejected: unheard", ...said("rejected", "unheard") },
    ]);
    await records.idle();
    await admit();
    const kept = (await place.done()).map(({ status, error, attempts: [attempt] }) => [status, error, attempt?.answer]);
    expect(kept.sort()).toEqual([
      ["FAILED", "rejected", ""],
      ["SENT", "", ""],
      ["SENT", "", "thanks"],
    ]);
  },
);

test("a delivery waits for the day of the history that is not made yet, and is dropped with one that was removed", async () => {
  const early = await claimed([{ createdMs: nowMs + 4 * dayMs }]);
  early.add([]);
  await expect.poll(() => early.logged.length).toBeGreaterThan(1);
  expect(await early.place.waiting()).toHaveLength(1);
  await keepPartitions(sql, historyPartitions(readConfig({})), nowMs + 3 * dayMs);
  await early.records.idle();
  expect(await early.statuses()).toEqual(["SENT"]);

  const old = await claimed([{ createdMs: nowMs - 90 * dayMs }]);
  old.add([]);
  await old.records.idle();
  expect([await old.place.waiting(), await old.statuses()]).toEqual([[], []]);
});

onOnePostgres("locks in sight")(
  "a destination that is deleted while a try at it is recorded leaves the record",
  async () => {
    const { records, add, statuses, place } = await claimed([{}]);
    const [locked, deleting] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const deleted = sql.begin(async (tx) => {
      await tx`delete from rule_destinations where tenant_id = ${place.id}`;
      await tx`delete from destinations where tenant_id = ${place.id}`;
      locked.resolve();
      await deleting.promise;
    });
    await locked.promise;
    add([{ status: "FAILED", error: "busy", sign: "temporary" }]);
    const waits = async () =>
      (await sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).count;
    await expect.poll(waits).toBeGreaterThan(0);
    deleting.resolve();
    await deleted;
    await records.idle();
    expect([await place.waiting(), await statuses()]).toEqual([[], ["FAILED"]]);
  },
);

onOnePostgres("triggers")("nothing more of a tenant is sent while what was sent cannot be recorded", async () => {
  const place = await tenant();
  const ids = await place.put(range(200).map((event) => ({ event })));
  const admit = await refuse("XX000");
  const logged: string[] = [];
  const running = dispatcher({
    pool,
    keyring: keyring(readConfig({ BELFRY_MASTER_KEYS: masterKeys })),
    world: world(),
    log: { info() {}, warn() {}, error: (facts) => void logged.push((facts as { cause: string }).cause) },
    nowMs: Date.now,
    waitMsMax: 3 * dayMs,
    recheck: async () => new Map(),
    heldRules: () => undefined,
  });
  running.look();
  await expect.poll(() => logged.length).toBeGreaterThan(2);
  expect(receiver().received.length).toBeLessThan(ids.length);
  await admit();
  await expect.poll(() => place.waiting()).toEqual([]);
  await running.stop();
  expect((await place.done()).map(({ status }) => status)).toEqual(ids.map(() => "SENT"));
  expect(
    receiver()
      .received.map(({ headers }) => headers["webhook-id"])
      .toSorted(),
  ).toEqual(ids.toSorted());
});

test("what ends because its destination is disabled is counted among the failures", async () => {
  const { records, add, place } = await claimed([{}]);
  await place.put([{ event: 1 }, { event: 2, dueMs: nowMs + 3_600_000 }]);
  add([{ status: "FAILED", error: "gone", disable: "HTTP 410" }]);
  await records.idle();
  expect((await place.done()).map(({ status }) => status)).toEqual(["FAILED", "FAILED", "FAILED"]);
  const [counted] = await sql<{ failed: number }[]>`
    select sum(count)::int4 as failed from delivery_counts
    where tenant_id = ${place.id} and about = 'failed' and name = 'ops'`;
  expect(counted?.failed).toBe(3);
});
