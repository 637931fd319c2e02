import { describe, expect, test } from "vitest";
import { makeRoom, put, testStore } from "../metrics/points.ts";
import { testDatabase } from "../support/database.ts";
import { equals, report, ruleTenant, type TestRule, untried } from "./rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const sec = 1000;
await makeRoom(sql, t0, t0 + 3600 * sec);

const above = (max: number, metricName = "load") => ({ metricThreshold: { metricName, max } });

async function withRule(rule: Partial<TestRule> = {}) {
  const tenant = ruleTenant(sql);
  await tenant.trigger("high", null, above(10) as never);
  await tenant.destination("d");
  const set = (more: Partial<TestRule> = {}) =>
    tenant.rule({ name: "r", triggers: ["high"], sendUpdates: true, ...rule, ...more });
  await set();
  const { onPoints } = tenant.engine;
  const server = testStore({ onPoints });
  const send = (second: number, value: number) =>
    put(sql, server, tenant.tenantId, [{ metric: "load", timeMs: t0 + second * sec, value }], t0 + second * sec);
  const look = (second: number) => tenant.lookAtStanding(t0 + second * sec);
  const told = async () =>
    (await tenant.deliveries()).map(
      ({ occasion, createdMs, told }) => `${occasion} ${(createdMs - t0) / sec}: ${told.value}`,
    );
  return { tenant, set, send, look, told };
}

describe("a rule that is enabled again", () => {
  test("ends what is over, with its clear, and sends what crosses from then on", async () => {
    const { set, send, look, told } = await withRule();
    await send(1, 20);
    await set({ enabled: false });
    await send(2, 5);
    await set();
    await look(3);
    expect(await told()).toEqual(["first 1: 20", "clear 3: 5"]);
    await send(4, 30);
    expect(await told()).toEqual(["first 1: 20", "clear 3: 5", "first 4: 30"]);
  });

  test("sends what opened meanwhile by its next report, and nothing again of what holds", async () => {
    const { set, send, look, told } = await withRule();
    await send(1, 20);
    await set({ enabled: false });
    await send(2, 21);
    await set();
    await look(3);
    await send(4, 22);
    expect(await told()).toEqual(["first 1: 20"]);
    await set({ enabled: false });
    await send(5, 5);
    await send(6, 23);
    await set();
    await look(7);
    expect(await told()).toEqual(["first 1: 20", "clear 7: 23"]);
    await send(8, 24);
    expect(await told()).toEqual(["first 1: 20", "clear 7: 23", "first 8: 24"]);
  });

  test("ends occurrences that were closed meanwhile", async () => {
    const { tenant, look } = await withRule();
    await tenant.trigger("disks", equals("name", "disk full"));
    const set = (enabled: boolean) => tenant.rule({ name: "e", triggers: ["disks"], sendUpdates: true, enabled });
    await set(true);
    await tenant.put(t0, report(t0));
    await set(false);
    await tenant.put(t0 + sec, report(t0 + sec, { status: 3 }));
    await set(true);
    await look(2);
    expect(await tenant.told()).toEqual([`first@${t0}`, `clear@${t0 + 2 * sec}`]);
  });

  test("does not wait any more for a delay that ended meanwhile", async () => {
    const { tenant, set, send, look, told } = await withRule({ delaySec: 10 });
    await send(1, 20);
    await set({ enabled: false });
    await sql`delete from due_deliveries where tenant_id = ${tenant.tenantId}`; // as it is cancelled
    await set();
    await look(20);
    await send(21, 20);
    expect(await told()).toEqual(["first 21: 20"]);
  });
});

test("a trigger that is changed to another metric, or other bounds, ends what it matches no more", async () => {
  const { tenant, send, look, told } = await withRule();
  await send(1, 20);
  await tenant.trigger("high", null, above(30) as never);
  await look(2);
  expect(await told()).toEqual(["first 1: 20", "clear 2: 20"]);
  await send(3, 40);
  await tenant.trigger("high", null, above(30, "other") as never);
  await look(4);
  expect(await told()).toEqual(["first 1: 20", "clear 2: 20", "first 3: 40", "clear 4: 40"]);
});

test("a trigger whose query is changed ends what it matches no more", async () => {
  const { tenant, look } = await withRule();
  await tenant.trigger("disks", equals("name", "disk full"));
  await tenant.rule({ name: "e", triggers: ["disks"], sendUpdates: true });
  await tenant.put(t0, report(t0));
  await tenant.trigger("disks", equals("name", "disk slow"));
  await look(1);
  expect(await tenant.told()).toEqual([`first@${t0}`, `clear@${t0 + sec}`]);
});

test("after a delay a series is sent with its newest value", async () => {
  const { tenant, send } = await withRule({ delaySec: 10 });
  await send(1, 20);
  await send(5, 99);
  const [row] = await sql`select * from due_deliveries where tenant_id = ${tenant.tenantId}`;
  const waiting = {
    id: row?.id,
    ruleId: row?.rule_id,
    occasion: "first" as const,
    destinationName: "d",
    ...untried,
    told: row?.told,
    createdMs: Number(row?.created_ms),
    dueMs: Number(row?.due_ms),
    subject: { key: row?.subject, entityId: row?.entity_id, metricName: row?.metric_name },
  };
  const verdicts = await tenant.engine.recheck(tenant.tenantId, [waiting], t0 + 12 * sec);
  expect(verdicts.get(row?.id)).toMatchObject({ send: true, told: { value: 99, timeMs: t0 + 5 * sec, threshold: 10 } });
});

describe("repeatWhile", () => {
  const minute = 60 * sec;

  test("repeats by the clock while the occurrence is open, rounds of an outage once", async () => {
    const { tenant } = await withRule();
    await tenant.trigger("disks", equals("name", "disk full"));
    await tenant.rule({ name: "e", triggers: ["disks"], repeat: true, repeatIntervalSec: 60, repeatWhile: 1 });
    await tenant.put(t0, report(t0));
    await tenant.repeat(t0 + minute - 1);
    await tenant.repeat(t0 + minute);
    await tenant.repeat(t0 + 5.5 * minute);
    await tenant.repeat(t0 + 6 * minute);
    await tenant.put(t0 + 6.5 * minute, report(t0 + 6.5 * minute, { status: 3 }));
    await tenant.repeat(t0 + 9 * minute);
    const at = (minutes: number) => t0 + minutes * minute;
    expect(await tenant.told()).toEqual([`first@${at(0)}`, `repeat@${at(1)}`, `repeat@${at(5.5)}`]);
  });

  test("repeats a series until it clears, and begins where it is set while a match stands", async () => {
    const { tenant, set, send, look, told } = await withRule({ repeat: true, repeatIntervalSec: 60 });
    await send(0, 20);
    await set({ repeatWhile: 2 });
    await look(10);
    await tenant.repeat(t0 + minute);
    await send(70, 5);
    await tenant.repeat(t0 + 2 * minute);
    expect(await told()).toEqual(["first 0: 20", "repeat 60: 20", "clear 70: 5"]);
  });
});
