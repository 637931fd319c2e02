import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import {
  ExplainNotificationRequestSchema,
  type ExplainNotificationResponse,
} from "#gen/belfry/notifications/v1/delivery_service_pb.ts";
import type { Principal } from "../../../src/auth/principal.ts";
import { transaction } from "../../../src/db/transaction.ts";
import { entityCache } from "../../../src/entities/entity-cache.ts";
import { eventIds } from "../../../src/entities/identity.ts";
import { storingChanges } from "../../../src/events/changes.ts";
import { type Consumer, feedKind } from "../../../src/events/consumers/consumer.ts";
import { behindSinceMs } from "../../../src/events/consumers/cursors.ts";
import { feedConsumer } from "../../../src/events/consumers/feed-consumer.ts";
import { asideOf } from "../../../src/events/consumers/set-aside.ts";
import { type Fact, factsOf } from "../../../src/events/facts.ts";
import { type FeedRow, feedMs, pruneFeed } from "../../../src/events/feed.ts";
import { backlogs } from "../../../src/jobs/due-lanes.ts";
import { claim, finishJobs, giveBackJobs } from "../../../src/jobs/queue.ts";
import type { JobKind } from "../../../src/jobs/worker.ts";
import type { Log } from "../../../src/log.ts";
import { explanations } from "../../../src/notifications/api/explain.ts";
import { rulesName } from "../../../src/notifications/deciding/deciding.ts";
import { ruleEngine } from "../../../src/notifications/deciding/engine.ts";
import { unseenSinceMs } from "../../../src/notifications/deciding/rules-consumer.ts";
import { admittedValues, openRecord } from "../../../src/rpc/context.ts";
import { ingestEvents } from "../../entities/stored.ts";
import { testDatabase } from "../../support/database.ts";
import { lockWaits } from "../../support/lock-waits.ts";
import { onOnePostgres } from "../../support/one-postgres.ts";
import { equals, occurrenceOf, report, ruleTenant, untried } from "../rule-tenant.ts";

const asked: string[] = [];
const { sql, pool } = await testDatabase({ debug: (_, statement) => void asked.push(statement) });
const t0 = 1_790_000_000_000;
type TestTenant = ReturnType<typeof ruleTenant>;

/** A tenant with one rule over events of one name. */
async function simple(more: object = {}, tenant: TestTenant = ruleTenant(sql)) {
  await tenant.trigger("disks", equals("name", "disk full"));
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["disks"], sendUpdates: true, ...more });
  return tenant;
}
/** Another server of the same tenant. */
const another = ({ tenantId }: TestTenant) => ruleTenant(sql, undefined, tenantId);
const isBehind = async ({ tenantId }: TestTenant) => (await behindSinceMs(sql, tenantId, rulesName)) < Infinity;
const occasions = async (tenant: TestTenant) => (await tenant.deliveries()).map(({ occasion }) => occasion);
const cursors = async ({ tenantId }: TestTenant) =>
  (await sql`select from feed_cursors where tenant_id = ${tenantId}`).count;
const web = (n: number | string) => ({ dimensions: { source: `web-${n}` } });

/** Runs the jobs of a kind that are due by then, once; those of a failed run are given back. */
async function runOnce({ tenantId }: TestTenant, kind: JobKind, nowMs: number): Promise<"none" | "done" | "failed"> {
  const lane = { tenantId, kind: kind.name };
  const jobs = await claim(sql, lane, { sizeMax: kind.sizeMax, leaseMs: 10_000, nowMs });
  if (jobs.length === 0) return "none";
  return await transaction(sql, async (tx) => {
    await finishJobs(tx, lane, jobs, await kind.run(tx, tenantId, jobs, nowMs));
    return "done" as const;
  }).catch(async () => {
    await giveBackJobs(sql, lane, jobs, nowMs, true);
    return "failed" as const;
  });
}
const kindOf = ({ consumer }: TestTenant, name: string) => consumer.kinds.find((kind) => kind.name === name) as JobKind;

test("what a transaction stores is matched after it, whole and once, also with more text than a row of the feed holds", async () => {
  const tenant = await simple();
  const body = "x".repeat(60_000);
  const many = Array.from({ length: 500 }, (_, i) => report(1, { ...web(i), metadata: { i }, body: `${i}${body}` }));
  await tenant.store(t0, ...many, report(2, { name: "fan" }));
  const rows = await sql`select from feed where tenant_id = ${tenant.tenantId}`;
  expect(rows.count).toBeGreaterThan(5);
  expect([await tenant.deliveries(), await isBehind(tenant)]).toEqual([[], true]);
  await tenant.match(t0 + 1000);
  expect(await isBehind(tenant)).toBe(false);
  const told = await tenant.deliveries();
  expect([told.length, new Set(told.map(({ entity }) => entity)).size]).toEqual([500, 500]);
  await tenant.put(t0, ...many);
  expect(await tenant.deliveries()).toHaveLength(500);
});

test("each report is a fact: with repeatInterval 0 each of one batch notifies, and a severity that comes and goes is seen", async () => {
  const tenant = await simple({ repeat: true, repeatIntervalSec: 0 });
  await tenant.put(t0, report(1, { severity: 5 }), report(2, { severity: 2 }), report(3, { severity: 2 }));
  expect(await occasions(tenant)).toEqual(["first", "severity", "repeat"]);
});

test("a change is matched as it was, by the rules as they are when it is matched", async () => {
  const tenant = await simple();
  await tenant.trigger("severe", equals("severity", "SEVERITY_CRITICAL"));
  await tenant.rule({ name: "then", triggers: ["severe"] });
  await tenant.store(t0, report(1, { severity: 5 }));
  await tenant.store(t0 + 1, report(2, { severity: 2, status: Status.CLOSED }));
  await tenant.rule({ name: "r", triggers: ["disks"], enabled: false });
  await tenant.match(t0 + 10);
  expect((await tenant.deliveries()).map(({ rule, told }) => [rule, told.severity])).toEqual([["then", 5]]);
});

test("an occurrence is seen in its order, whichever servers store and match", async () => {
  const one = await simple();
  const two = another(one);
  await one.store(t0, report(1));
  await two.store(t0 + 1, report(2, { status: Status.CLOSED }));
  await one.store(t0 + 2, report(3));
  await two.match(t0 + 10);
  expect((await two.deliveries()).map(({ occasion, createdMs }) => [occasion, createdMs - t0])).toEqual([
    ["first", 10],
    ["first", 10],
    ["clear", 11],
  ]);
});

test("what a process has just stored it matches without reading it again, behind what others have stored before it", async () => {
  const tenant = await simple({}, ruleTenant(sql, undefined, undefined, true));
  for (let i = 0; i < 3; i++) {
    asked.length = 0;
    await tenant.store(t0 + i, report(i, web(i)));
    while (await isBehind(tenant)) await sleep(2);
    expect(asked.filter((statement) => statement.includes("octet_length(facts)"))).toEqual([]);
  }
  expect(await tenant.deliveries()).toHaveLength(3);
  await another(tenant).store(t0 + 3, report(3, web("before")));
  await tenant.store(t0 + 4, report(4, web("behind")));
  while (await isBehind(tenant)) await sleep(2);
  const entities = (await tenant.deliveries()).map(({ entity }) => entity);
  expect(entities).toEqual(expect.arrayContaining(["web-before", "web-behind"]));
});

test("repeats wait for others, at most 100 ms; a change is shown at once, with those that wait", async () => {
  const tenant = await simple();
  const shown: number[] = [];
  const consumer = feedConsumer(
    sql,
    {
      ...tenant.engine.consumer,
      async batch(tx, tenantId, facts, moment) {
        shown.push(facts.length);
        return await tenant.engine.consumer.batch(tx, tenantId, facts, moment);
      },
    },
    { nowMs: () => t0 },
  );
  const store = storingChanges({ consumers: [tenant.consumer], onStored: consumer.stored });
  const put = (n: number, more: object = {}) =>
    ingestEvents(sql, tenant.tenantId, [report(n, more)], { nowMs: t0, store, known: entityCache() });
  await put(0);
  while (await isBehind(tenant)) await sleep(2);
  const fromMs = performance.now();
  for (let n = 1; n <= 30; n++) await put(n);
  await put(31, { severity: 2 });
  while (await isBehind(tenant)) await sleep(2);
  expect(shown.length - 1).toBeLessThanOrEqual(Math.ceil((performance.now() - fromMs) / 100) + 1);
  await put(32, { severity: 2 });
  await consumer.stop();
  expect(shown.reduce((sum, count) => sum + count)).toBe(33);
  expect(await occasions(tenant)).toEqual(["first", "severity"]);
});

test("a tenant has a cursor, and its feed facts, while it has a rule that notifies", async () => {
  const tenant = ruleTenant(sql);
  const facts = async () =>
    (
      await sql<{ has: boolean }[]>`
        select facts is not null as has from feed where tenant_id = ${tenant.tenantId} order by position`
    ).map(({ has }) => has);
  await tenant.put(t0, report(1));
  await simple({ enabled: false }, tenant);
  await tenant.engine.recheck(tenant.tenantId, [], t0); // reads the rules
  await tenant.put(t0, report(2));
  expect([await facts(), await cursors(tenant)]).toEqual([[false, false], 0]);
  await tenant.rule({ name: "r", triggers: ["disks"] });
  await tenant.put(t0, report(3));
  expect([await facts(), await cursors(tenant), await occasions(tenant)]).toEqual([[false, false, true], 1, ["first"]]);
  await tenant.rule({ name: "r", triggers: ["disks"], enabled: false });
  await tenant.put(t0, report(4));
  await tenant.put(t0, report(5));
  expect([(await facts()).at(-1), await cursors(tenant)]).toEqual([false, 0]);
});

test("what comes while no rule is enabled follows changes that wait: an alert that ends meanwhile is not left open", async () => {
  const tenant = await simple();
  await tenant.store(t0, report(1));
  await tenant.rule({ name: "r", triggers: ["disks"], enabled: false });
  await tenant.store(t0 + 1, report(2, { status: Status.CLOSED }));
  await tenant.rule({ name: "r", triggers: ["disks"], sendUpdates: true });
  await tenant.match(t0 + 10);
  expect(await occasions(tenant)).toEqual(["first", "clear"]);
});

test("no row behind a cursor is removed, however old it is", async () => {
  const tenant = await simple();
  await tenant.put(t0, report(1));
  for (let i = 2; i < 5; i++) await tenant.store(t0 + i, report(i, web(i)));
  await pruneFeed(sql, tenant.tenantId, t0 + 10 * Number(feedMs));
  const rows = () => sql`select from feed where tenant_id = ${tenant.tenantId}`;
  expect((await rows()).count).toBe(3);
  await tenant.match(t0 + 10);
  expect(await tenant.deliveries()).toHaveLength(4);
  await pruneFeed(sql, tenant.tenantId, t0 + 10 * Number(feedMs));
  expect((await rows()).count).toBe(1);
});

test("what a process that died has stored is matched by a job of any server, which goes when nothing is left", async () => {
  const tenant = await simple();
  await tenant.store(t0, report(1));
  const kind = kindOf(another(tenant), feedKind(rulesName));
  expect(await runOnce(tenant, kind, t0 + 999)).toBe("none");
  expect(await runOnce(tenant, kind, t0 + 1000)).toBe("done");
  expect(await occasions(tenant)).toEqual(["first"]);
  expect(await runOnce(tenant, kind, t0 + 60_000)).toBe("none");
});

test("a row that cannot be read keeps nothing from being matched that follows it", async () => {
  const causes: object[] = [];
  const tenant = await simple();
  const log = { error: (fields: object) => void causes.push(fields) };
  const consumer = feedConsumer(sql, tenant.engine.consumer, { nowMs: () => t0, log });
  const breaks: ((facts: string) => string)[] = [
    () => "{",
    () => "[]",
    (facts) => facts.replace(/"texts":\[.*?\]/, '"texts":[]'),
    (facts) => facts.replace('"disk full"', "7"),
  ];
  for (const [i, broken] of breaks.entries()) {
    await tenant.store(t0, report(1, web(`broken-${i}`)));
    const [{ facts, position }] = await sql<[{ facts: string; position: bigint }]>`
      select facts, position from feed where tenant_id = ${tenant.tenantId} order by position desc limit 1`;
    await sql`update feed set facts = ${broken(facts)} where tenant_id = ${tenant.tenantId} and position = ${position}`;
    await tenant.store(t0, report(1, web(`whole-${i}`)));
    expect(await consumer.consume(tenant.tenantId)).toBe("end");
    expect(causes).toHaveLength(i + 1);
  }
  expect(causes[0]).toMatchObject({ tenant: tenant.tenantId, cause: expect.stringContaining("JSON") });
  const entities = (await tenant.deliveries()).map(({ entity }) => entity).sort();
  expect(entities).toEqual(breaks.map((_, i) => `web-whole-${i}`));
});

/** A server on which matching these facts fails. */
function failing({ engine }: TestTenant, fails: (fact: Fact) => boolean, error: Error, log?: Pick<Log, "error">) {
  async function batch(...[tx, tenantId, facts, times]: Parameters<Consumer["batch"]>) {
    if (facts.some(fails)) throw error;
    return await engine.consumer.batch(tx, tenantId, facts, times);
  }
  return feedConsumer(sql, { ...engine.consumer, batch }, { nowMs: () => t0, ...(log && { log }) });
}
const aside = `${rulesName}.aside`;

test("a fact that always fails is set aside, what stands beside it is matched; it counts as failing, and runs again until it succeeds", async () => {
  const tenant = await simple();
  const items = Array.from({ length: 20 }, (_, i) => report(1, web(i)));
  await tenant.store(t0, ...items);
  const { eventId } = eventIds(tenant.tenantId, web(7).dimensions, "disk full");
  const consumer = failing(tenant, ({ event }) => event.id.equals(eventId), new Error("broken"));
  expect(await consumer.consume(tenant.tenantId)).toBe("end");
  expect(await tenant.deliveries()).toHaveLength(19);
  expect(consumer.stats().setAside).toBe(1);

  const broken = consumer.kinds.find(({ name }) => name === aside) as JobKind;
  expect(await runOnce(tenant, broken, t0)).toBe("failed");
  expect((await backlogs(pool, t0)).find(({ kind }) => kind === aside)).toMatchObject({ failing: 1 });
  expect(await runOnce(tenant, kindOf(tenant, aside), t0 + 120_000)).toBe("done");
  expect(await tenant.deliveries()).toHaveLength(20);
  expect(await runOnce(tenant, kindOf(tenant, aside), t0 + 240_000)).toBe("none");
});

test("why a fact is set aside is told in the product's own words alone; the log has those of PostgreSQL", async () => {
  for (const [error, cause] of [
    [Object.assign(new Error("secret of PostgreSQL"), { code: "22003" }), "internal error; the log has its cause"],
    [new ConnectError("the pattern is too complex", Code.ResourceExhausted), "the pattern is too complex"],
  ] as const) {
    const logged: object[] = [];
    const log = { error: (fields: object) => void logged.push(fields) };
    const tenant = await simple();
    await tenant.store(t0, report(1));
    await failing(tenant, () => true, error, log).consume(tenant.tenantId);
    const key = { ...eventIds(tenant.tenantId, report(1).dimensions, "disk full"), number: 1 };
    expect(await asideOf(sql, tenant.tenantId, rulesName, key)).toMatchObject({ cause });
    expect(logged).toMatchObject([{ cause: error.message }]);
  }
});

describe("what was set aside is matched as the occurrence is by then", () => {
  const [opens, closes] = [report(1), report(2, { status: Status.CLOSED })];
  const isOpening = ({ before }: Fact) => before === undefined;
  const isClosing = ({ after }: Fact) => after.status === Status.CLOSED;

  /** Stores items, one after the other, of which a server matches all but these; then a server looks again at what was set aside. */
  async function replayed(fails: (fact: Fact) => boolean, items: ReturnType<typeof report>[], rule: object = {}) {
    const tenant = await simple(rule);
    for (const item of items) {
      await tenant.store(t0, item);
      await failing(tenant, fails, new Error("broken")).consume(tenant.tenantId);
    }
    const told = await occasions(tenant);
    const kind = kindOf(tenant, aside);
    expect(await runOnce(tenant, kind, t0 + 60_000)).toBe("done");
    expect(await runOnce(tenant, kind, t0 + 120_000)).toBe("none");
    return [told, (await occasions(tenant)).slice(told.length)];
  }

  test("an opening begins nothing once the occurrence is closed", async () => {
    expect(await replayed(isOpening, [opens, closes])).toEqual([[], []]);
  });

  test("an opening is not notified again where a later report was", async () => {
    expect(await replayed(isOpening, [opens, report(2)])).toEqual([["first"], []]);
    const repeats = { repeat: true, repeatIntervalSec: 0 };
    expect(await replayed(isOpening, [opens, report(2)], repeats)).toEqual([["first"], []]);
  });

  test("an opening that nothing followed is notified", async () => {
    expect(await replayed(isOpening, [opens])).toEqual([[], ["first"]]);
  });

  test("an end is not lost, also where the next occurrence has begun", async () => {
    expect(await replayed(isClosing, [opens, closes])).toEqual([["first"], ["clear"]]);
    expect(await replayed(isClosing, [opens, closes, report(3)])).toEqual([["first", "first"], ["clear"]]);
  });

  test("a severity that came and went is not reported after the one that followed", async () => {
    const isWarning = ({ after }: Fact) => after.severity === 3;
    const items = [opens, report(2, { severity: 3 }), report(3, { severity: 5 })];
    expect(await replayed(isWarning, items)).toEqual([["first", "severity"], []]);
  });

  test("changes that wait in the feed come first, also with more text than a row of the feed holds", async () => {
    const tenant = await simple();
    const kind = kindOf(tenant, aside);
    const body = "x".repeat(60_000);
    const idOf = ({ dimensions, name }: typeof opens) => eventIds(tenant.tenantId, dimensions, name).eventId;
    const many = Array.from({ length: 101 }, (_, i) => report(1, { ...web(i), body: `${i}${body}` }));
    const [last = opens, ...others] = many.toSorted((a, b) => idOf(b).compare(idOf(a)));
    await tenant.store(t0, last);
    await failing(tenant, isOpening, new Error("broken")).consume(tenant.tenantId);
    await tenant.store(t0, ...others, { ...closes, dimensions: last.dimensions, body });
    const rows = await sql`select from feed where tenant_id = ${tenant.tenantId}`;
    expect(rows.count).toBeGreaterThan(2);
    const allButLast = feedConsumer(
      sql,
      {
        ...tenant.engine.consumer,
        async batch(tx, tenantId, facts, times) {
          const front = facts.filter((fact) => !isClosing(fact));
          return front.length > 0 ? await tenant.engine.consumer.batch(tx, tenantId, front, times) : { taken: 0 };
        },
      },
      { nowMs: () => t0 },
    );
    while ((await allButLast.consume(tenant.tenantId)) !== "busy");
    expect(await runOnce(tenant, kind, t0 + 60_000)).toBe("done");
    expect(await tenant.deliveries()).toHaveLength(100);
    await tenant.match(t0);
    expect(await runOnce(tenant, kind, t0 + 120_000)).toBe("done");
    expect(await runOnce(tenant, kind, t0 + 180_000)).toBe("none");
    expect(await tenant.deliveries()).toHaveLength(100);
  });

  test("what is deleted meanwhile is forgotten", async () => {
    const tenant = await simple();
    await tenant.store(t0, opens);
    await failing(tenant, isOpening, new Error("broken")).consume(tenant.tenantId);
    await sql`delete from occurrences where tenant_id = ${tenant.tenantId}`;
    expect(await runOnce(tenant, kindOf(tenant, aside), t0 + 60_000)).toBe("done");
    expect(await runOnce(tenant, kindOf(tenant, aside), t0 + 120_000)).toBe("none");
    expect(await tenant.deliveries()).toEqual([]);
  });
});

onOnePostgres("triggers")("nothing is set aside for what no fact is to blame for, such as a full disk", async () => {
  const tenant = await simple();
  await tenant.store(t0, report(1));
  await sql.unsafe(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'No space left on device' using errcode = '53100'; end $$`);
  await sql`create trigger refused before insert on due_deliveries for each row execute function refuse()`;
  for (let i = 0; i < 10; i++) await expect(tenant.match(t0)).rejects.toThrow("No space left");
  await sql`drop trigger refused on due_deliveries`;
  await tenant.match(t0);
  expect([await occasions(tenant), tenant.consumer.stats().setAside]).toEqual([["first"], 0]);
});

test("of two servers one matches at a time, and a transaction that fails leaves all as it was", async () => {
  const items = Array.from({ length: 30 }, (_, i) => report(i, { ...web(i % 7), status: 1 + 2 * (i % 2) }));
  const tenant = await simple();
  for (const each of items) await tenant.store(t0, each);
  let fails = 3;
  async function server() {
    const { consumer } = ruleEngine(
      sql,
      () => undefined,
      () => t0,
    );
    const killed: typeof consumer = {
      ...consumer,
      async batch(tx, tenantId, facts, times) {
        const consumed = await consumer.batch(tx, tenantId, facts.slice(0, 4), times);
        if (fails-- > 0) throw Object.assign(new Error("the server is killed"), { code: "57P01" });
        return consumed;
      },
    };
    const running = feedConsumer(sql, killed, { nowMs: () => t0 });
    while (await isBehind(tenant)) await running.consume(tenant.tenantId).catch(() => undefined);
  }
  await Promise.all([server(), server()]);
  const expected = await simple();
  for (const each of items) await expected.put(t0, each);
  const byEntity = async (of: TestTenant) =>
    [...Map.groupBy(await of.deliveries(), ({ entity }) => entity)]
      .map(([entity, all]) => [entity, all.map(({ occasion }) => occasion).sort()])
      .sort();
  expect(await byEntity(tenant)).toEqual(await byEntity(expected));
  expect(await byEntity(tenant)).toHaveLength(7);
});

/** A rule's first notification that waits for the end of its delay, at t0 + 5 s. */
async function delayed(tenant: TestTenant) {
  await tenant.put(t0, report(1));
  const [first] = await sql<{ id: string; ruleId: string; subject: Buffer; eventId: Buffer; entityId: Buffer }[]>`
    select id, rule_id as "ruleId", subject, event_id as "eventId", entity_id as "entityId" from due_deliveries
    where tenant_id = ${tenant.tenantId}`;
  if (first === undefined) throw new Error("nothing was decided");
  const subject = { key: first.subject, eventId: first.eventId, number: 1, entityId: first.entityId };
  const times = { ...untried, createdMs: t0, dueMs: t0 + 5000 };
  const delivery = { ...first, destinationName: "d", subject, occasion: "first" as const, told: {}, ...times };
  return async () => (await tenant.engine.recheck(tenant.tenantId, [delivery], t0 + 6000)).get(first.id);
}

test("a look at the end of a delay waits for changes from before it, not for later ones, of which there may always be some", async () => {
  const [before, after] = [await simple({ delaySec: 5 }), await simple({ delaySec: 5 })];
  const verdict = await delayed(before);
  await before.store(t0 + 1, report(2, { status: Status.CLOSED }));
  expect(await verdict()).toEqual({ send: "later" });
  await before.match(t0 + 6000);
  expect(await verdict()).toEqual({ send: false, reason: "the condition is over" });

  const verdictAfter = await delayed(after);
  await after.store(t0 + 5001, report(2, web("another")));
  expect(await verdictAfter()).toMatchObject({ send: true });
  expect(await isBehind(after)).toBe(true);
});

test("while too much of a tenant waits no more is taken of it, of others it is", async () => {
  const [tenant, other] = [await simple(), await simple()];
  const consumer = feedConsumer(
    sql,
    { ...tenant.engine.consumer, batch: async () => ({ taken: 0 }) },
    { nowMs: () => t0 },
  );
  const store = storingChanges({ consumers: [consumer], onStored: consumer.stored });
  const put = (n: number) =>
    ingestEvents(sql, tenant.tenantId, [report(n, web(n))], { nowMs: t0, store, known: entityCache() });
  const refused = async (expected: boolean) => {
    for (let i = 0; i < 100; i++) {
      try {
        consumer.check(tenant.tenantId);
        if (!expected) return;
      } catch (error) {
        if (expected) {
          expect(error).toMatchObject({ code: 8, rawMessage: expect.stringContaining("changes of events wait") });
          return;
        }
      }
      await sleep(50);
    }
    throw new Error("nothing has changed");
  };
  await put(1);
  await refused(false);
  await sql`update feed set fact_count = 50001 where tenant_id = ${tenant.tenantId}`;
  await put(2);
  await refused(true);
  consumer.check(other.tenantId);
  await tenant.match(t0);
  await refused(false);
  await consumer.stop();
});

test("rows in memory that came twice, out of order or with a gap are none of them passed over", async () => {
  for (const order of [
    [0, 0, 2],
    [0, 3, 2],
    [2, 1, 0],
    [3, 0, 2],
  ]) {
    const tenant = await simple();
    const rows: FeedRow[] = [];
    const store = storingChanges({
      consumers: [tenant.consumer],
      onStored: (_tenantId, stored) => void rows.push(...stored),
    });
    for (const n of [1, 2, 3, 4])
      await ingestEvents(sql, tenant.tenantId, [report(n, web(n))], { nowMs: t0, store, known: entityCache() });
    const facts: number[] = [];
    const consumer = feedConsumer(
      sql,
      {
        ...tenant.engine.consumer,
        // Of a row in memory one fact at a time is taken, as where matching has no more time.
        batch: async (_tx, _tenantId, [fact]) => {
          facts.push(Number(fact?.after.lastSeenMs));
          return { taken: 1 };
        },
      },
      { nowMs: () => t0 },
    );
    consumer.stored(
      tenant.tenantId,
      order.map((n) => rows[n] as FeedRow),
    );
    while (await isBehind(tenant)) await consumer.consume(tenant.tenantId);
    await consumer.stop();
    expect(facts).toEqual([1, 2, 3, 4].map((n) => report(n).timeMs).map(Number));
  }
});

onOnePostgres("locks in sight")(
  "a change that is matched while it is asked about is waiting or decided, never neither",
  async () => {
    const tenant = await simple({ delaySec: 600 });
    const { consumer, inForce } = tenant.engine;
    const { tenantId } = tenant;
    await tenant.store(t0, report(1));
    const record = openRecord({ headers: {} }, "");
    record.principal = { tenantId } as Principal;
    const context = { values: admittedValues(record), signal: AbortSignal.timeout(60_000) } as HandlerContext;
    const { explainNotification } = explanations(sql, { nowMs: () => t0, openWindows: async () => [], inForce });
    const about = { case: "occurrenceId" as const, value: occurrenceOf(tenantId, report(1)) };
    const request = create(ExplainNotificationRequestSchema, { name: "r", about });
    const ofTest = AsyncLocalStorage.snapshot(); // the matching server's share of the database is not for others
    let asked: unknown;
    const late: Consumer = {
      ...consumer,
      async batch(tx, ...more) {
        await tx`lock table feed_cursors in access exclusive mode`;
        asked = ofTest(() => explainNotification(request, context));
        while ((await ofTest(() => lockWaits(sql, "%feed_cursors%"))) === 0) await sleep(5);
        return await consumer.batch(tx, ...more);
      },
    };
    await feedConsumer(sql, late, { nowMs: () => t0 }).consume(tenantId);
    const { steps = [] } = (await asked) as ExplainNotificationResponse;
    expect(steps.map(({ step, result }) => `${step} ${result}`)).toContain("match passed");
  },
);

describe("rows of the feed without facts", () => {
  /** Stores without facts, as a writer does that does not see the cursor, and matches by itself. */
  async function older({ tenantId, engine }: TestTenant, nowMs: number, ...items: ReturnType<typeof report>[]) {
    const stored = storingChanges({});
    await ingestEvents(sql, tenantId, items, {
      nowMs,
      known: entityCache(),
      async store(tx, locked, changes, ...more) {
        await engine.consumer.batch(tx, tenantId, factsOf(changes), { storedMs: nowMs, nowMs });
        await stored(tx, locked, changes, ...more);
      },
    });
  }
  const closed = { status: Status.CLOSED };

  test("what its writer has matched by itself ends what was matched after it", async () => {
    const tenant = await simple();
    await tenant.store(t0 + 20, report(3));
    await older(tenant, t0 + 21, report(4, closed));
    await tenant.match(t0 + 30);
    expect(await occasions(tenant)).toEqual(["first", "clear"]);
  });

  test("what one has left in the feed is read as soon as something waits for it", async () => {
    const tenant = await simple();
    const reading = kindOf(tenant, feedKind(rulesName));
    await tenant.put(t0, report(1, web("before")));
    expect([await runOnce(tenant, reading, t0 + 2000), await runOnce(tenant, reading, t0 + 2000)]).toEqual([
      "done",
      "none",
    ]);
    await older(tenant, t0 + 3000, report(2));
    expect([await isBehind(tenant), await runOnce(tenant, reading, t0 + 9000)]).toEqual([true, "none"]);
    expect(await unseenSinceMs(sql, tenant.tenantId, t0 + 9000)).toBe(t0 + 3000);
    expect([await runOnce(tenant, reading, t0 + 9000), await isBehind(tenant)]).toEqual(["done", false]);
  });

  test("what one ends between two transactions is not begun again by what was read before", async () => {
    const tenant = await simple();
    const { consumer } = tenant.engine;
    await tenant.put(t0, report(1, web("begun")));
    const both = [web(1), web(2)];
    await older(tenant, t0 + 1, ...both.map((each) => report(1, each)));
    let calls = 0;
    const oneByOne: Consumer = {
      ...consumer,
      async batch(tx, tenantId, facts, times) {
        calls += 1;
        return calls === 2 ? { taken: 0 } : await consumer.batch(tx, tenantId, facts.slice(0, 1), times);
      },
    };
    const running = feedConsumer(sql, oneByOne, { nowMs: () => t0 + 10 });
    expect(await running.consume(tenant.tenantId)).toBe("busy");
    await older(tenant, t0 + 2, ...both.map((each) => report(2, { ...each, ...closed })));
    while ((await running.consume(tenant.tenantId)) !== "end") await sleep(2);
    expect((await occasions(tenant)).toSorted()).toEqual(["clear", "clear", "first", "first", "first"]);
  });

  test("what one is about to end is looked at before or after, and not begun again", async () => {
    const tenant = await simple();
    const { consumer } = tenant.engine;
    await tenant.put(t0, report(1, web("begun")));
    await older(tenant, t0 + 1, report(1));
    let ending: Promise<void> | undefined;
    const ofTest = AsyncLocalStorage.snapshot(); // the matching server's share of the database is not for others
    const late: Consumer = {
      ...consumer,
      async batch(...all) {
        if (ending === undefined) {
          let over = false;
          ending = ofTest(() => older(tenant, t0 + 2, report(2, closed))).finally(() => {
            over = true;
          });
          while (!over && (await ofTest(() => lockWaits(sql, "%from events e%"))) === 0) await sleep(5);
        }
        return await consumer.batch(...all);
      },
    };
    await feedConsumer(sql, late, { nowMs: () => t0 + 10 }).consume(tenant.tenantId);
    await ending;
    await tenant.match(t0 + 20);
    expect((await occasions(tenant)).toSorted()).toEqual(["clear", "first", "first"]);
  });
});
