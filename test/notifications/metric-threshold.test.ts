import { describe, expect, test } from "vitest";
import { ruleEngine } from "../../src/notifications/deciding/engine.ts";
import { forgetOldMatches } from "../../src/notifications/rules/match-store.ts";
import { makeRoom, put, testStore } from "../metrics/points.ts";
import { testDatabase } from "../support/database.ts";
import { ruleTenant, type TestRule, untried } from "./rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const sec = 1000;
await makeRoom(sql, t0, t0 + 3600 * sec);

const above = (max: number, more: object = {}) => ({ metricThreshold: { metricName: "load", max, ...more } });

/** A tenant with a rule over the metric load, and what sends it points: each [second, value], at the moment of the last. */
async function withRule(rule: Partial<TestRule> = {}, type: object = above(10)) {
  const tenant = ruleTenant(sql);
  await tenant.trigger("high", null, type as never);
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["high"], ...rule });
  // Another process knows nothing of what this one has in memory.
  const servers = [tenant.engine, ruleEngine(sql, () => undefined, Date.now)].map(({ onPoints }) =>
    testStore({ onPoints }),
  );
  async function send(
    points: readonly [second: number, value: number][],
    {
      nowSec = 0,
      server = 0,
      metric = "load",
      labels,
    }: { nowSec?: number; server?: number; metric?: string; labels?: Record<string, string> } = {},
  ) {
    const nowMs = t0 + Math.max(nowSec, ...points.map(([second]) => second)) * sec;
    const sent = points.map(([second, value]) => ({
      metric,
      timeMs: t0 + second * sec,
      value,
      ...(labels !== undefined && { labels }),
    }));
    await put(sql, servers[server] as (typeof servers)[0], tenant.tenantId, sent, nowMs);
  }
  const told = async () =>
    (await tenant.deliveries()).map(({ occasion, dueMs, told }) => `${occasion} ${(dueMs - t0) / sec}: ${told.value}`);
  return { tenant, send, told };
}

describe("a metric's threshold", () => {
  test("notifies once when a value lies beyond it, and with updates when it is back", async () => {
    const { tenant, send, told } = await withRule({ sendUpdates: true });
    await send([[1, 10]]);
    await send([[2, 11]]);
    await send([[3, 12]], { server: 1 });
    await send([[4, 10]]);
    await send([[5, 99]], { metric: "other" });
    expect(await told()).toEqual(["first 2: 11", "clear 4: 10"]);
    expect(await tenant.deliveries()).toMatchObject([
      {
        triggers: ["high"],
        event: null,
        entity: "web-1",
        told: { timeMs: t0 + 2 * sec, threshold: 10, thresholdType: "max" },
      },
      { occasion: "clear" },
    ]);
    await send([[6, 30]]);
    expect(await told()).toEqual(["first 2: 11", "clear 4: 10", "first 6: 30"]);
  });

  test("matches each series by its labels, those that a clause means, and says which", async () => {
    const metricClause = { filter: { field: "labels.mode", operation: "OP_EQUALS", value: "user" } };
    const { tenant, send, told } = await withRule({ sendUpdates: true }, above(10, { metricClause }));
    const user = (cpu: string) => ({ labels: { mode: "user", cpu } });
    await send([[1, 20]], user("0"));
    await send([[2, 20]], { labels: { mode: "idle", cpu: "0" } });
    await send([[3, 20]]);
    await send([[4, 30]], { ...user("1"), server: 1 });
    await send([[5, 5]], { ...user("0"), server: 1 });
    expect(await told()).toEqual(["first 1: 20", "first 4: 30", "clear 5: 5"]);
    expect((await tenant.deliveries()).map((each) => (each.told as { labels?: object }).labels)).toEqual([
      { mode: "user", cpu: "0" },
      { mode: "user", cpu: "1" },
      { mode: "user", cpu: "0" },
    ]);
    const rows = await sql`
      select distinct metric_labels from rule_matches where tenant_id = ${tenant.tenantId} and standing`;
    expect(rows).toEqual([{ metric_labels: { mode: "user", cpu: "1" } }]);
  });

  test("neither fires nor clears by points that are late, whichever server has got the later ones", async () => {
    const { send, told } = await withRule({ sendUpdates: true });
    await send([[10, 5]]);
    await send([[9, 20]], { nowSec: 11, server: 1 });
    expect(await told()).toEqual([]);
    await send([[12, 20]]);
    await send([[11, 5]], { nowSec: 13, server: 1 });
    expect(await told()).toEqual(["first 12: 20"]);
  });

  test("sees the points of one batch in the order of their arrival", async () => {
    const { send, told } = await withRule({ sendUpdates: true });
    await send([
      [1, 20],
      [3, 5],
      [2, 20],
      [4, 21],
    ]);
    expect(await told()).toEqual(["first 4: 20", "clear 4: 5", "first 4: 21"]);
  });

  test("tells the bound also when a delay has ended", async () => {
    const { tenant, send } = await withRule({ delaySec: 60 });
    await send([[1, 20]]);
    const rows = await sql<{ id: string; ruleId: string; key: Buffer; entityId: Buffer; told: object }[]>`
      select id, rule_id as "ruleId", subject as key, entity_id as "entityId", told from due_deliveries
      where tenant_id = ${tenant.tenantId}`;
    const [createdMs, dueMs] = [t0 + sec, t0 + 61 * sec];
    const waiting = rows.map(({ id, ruleId, key, entityId, told }) => {
      const subject = { key, entityId, metricName: "load" };
      return {
        id,
        ruleId,
        destinationName: "ops",
        subject,
        occasion: "first" as const,
        createdMs,
        dueMs,
        ...untried,
        told,
      };
    });
    const verdicts = await tenant.engine.recheck(tenant.tenantId, waiting, dueMs);
    const told = { value: 20, threshold: 10, thresholdType: "max" };
    expect([...verdicts.values()]).toMatchObject([{ send: true, told }]);
    expect(await tenant.deliveries()).toMatchObject([{ told }]);
  });

  test("repeats by new points, when it is time", async () => {
    const { send, told } = await withRule({ repeat: true, repeatIntervalSec: 10 });
    for (const second of [1, 5, 11, 12, 21]) await send([[second, 20]]);
    expect(await told()).toEqual(["first 1: 20", "repeat 11: 20", "repeat 21: 20"]);
  });

  test("is told once of all triggers of a rule, and asks for entities by their query", async () => {
    const { tenant, send, told } = await withRule();
    const query = (value: string) => ({
      entityQuery: { clause: { filter: { field: "source", operation: "OP_EQUALS", value } } },
    });
    await tenant.trigger("low", null, { metricThreshold: { metricName: "load", min: 3, ...query("web-1") } });
    await tenant.trigger("elsewhere", null, above(1, query("web-2")) as never);
    await tenant.rule({ name: "r", triggers: ["elsewhere", "low", "high"] });
    await send([[1, 5]]);
    expect(await told()).toEqual([]);
    await send([[2, 2]]);
    await send([[3, 20]]);
    expect(await told()).toEqual(["first 2: 2"]);
    expect(await tenant.deliveries()).toMatchObject([
      { triggers: ["low"], told: { threshold: 3, thresholdType: "min" } },
    ]);
  });

  test("two servers that store points of one series at the same time notify once", async () => {
    const { send, told } = await withRule();
    await send([[1, 5]]);
    await Promise.all([2, 3, 4, 5, 6, 7].map((second, i) => send([[second, 20]], { server: i % 2 })));
    expect(await told()).toHaveLength(1);
  });
});

test("what is noted of a series goes a time after it matched last, not while it matches; it may match again", async () => {
  const { tenant, send, told } = await withRule();
  const rows = async () => (await sql`select from rule_matches where tenant_id = ${tenant.tenantId}`).count;
  const forget = (second: number) => forgetOldMatches(sql, tenant.tenantId, Buffer.alloc(0), t0 + second * sec);
  await send([[1, 11]]);
  expect(await forget(3000)).toBeUndefined();
  expect(await rows()).toBe(1);
  await send([[2, 10]]);
  await forget(1);
  expect(await rows()).toBe(1);
  await forget(3000);
  expect(await rows()).toBe(0);
  await send([[3, 12]]);
  expect((await told()).filter((text) => text.startsWith("first"))).toEqual(["first 1: 11", "first 3: 12"]);
});
