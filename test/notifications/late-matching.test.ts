import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { claim, finishJobs, giveBackJobs } from "../../src/jobs/queue.ts";
import type { JobKind } from "../../src/jobs/worker.ts";
import { comparisonsMax } from "../../src/notifications/deciding/comparisons.ts";
import { ruleEngine } from "../../src/notifications/deciding/engine.ts";
import { countUnmatched, matchKind } from "../../src/notifications/deciding/unmatched/unmatched-changes.ts";
import { testDatabase } from "../support/database.ts";
import { onOnePostgres } from "../support/one-postgres.ts";
import { equals, report, ruleTenant } from "./rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const late = (log?: { error(fields: object): void }) =>
  ruleEngine(
    sql,
    () => undefined,
    () => t0,
    { storingMs: 0, ...(log && { log }) },
  );

/** A tenant with one rule over events of one name, all of whose matching waits. */
async function waiting(more: object = {}, engine = late()) {
  const tenant = ruleTenant(sql, engine);
  await tenant.trigger("disks", equals("name", "disk full"));
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["disks"], sendUpdates: true, ...more });
  return tenant;
}
const left = async (tenantId: string) => (await countUnmatched(sql, tenantId)).changes;

test("what is not matched as it is stored is matched later, whole and once", async () => {
  const tenant = await waiting();
  const body = "x".repeat(60_000);
  const many = Array.from({ length: 500 }, (_, i) =>
    report(1, { dimensions: { source: `web-${i}` }, metadata: { i }, body: i % 10 === 0 ? body : "" }),
  );
  await tenant.store(t0, ...many, report(2, { name: "fan" }));
  expect([await tenant.deliveries(), await left(tenant.tenantId)]).toEqual([[], 501]);
  await tenant.matchLate(t0 + 1000);
  expect(await left(tenant.tenantId)).toBe(0);
  const told = await tenant.deliveries();
  expect(new Set(told.map(({ entity }) => entity)).size).toBe(500);
  expect(told).toHaveLength(500);
  await tenant.store(t0, ...many);
  await tenant.matchLate(t0 + 2000);
  expect(await tenant.deliveries()).toHaveLength(500);
});

test("rules over the bound of comparisons, which were there before it, are matched later", async () => {
  const tenant = ruleTenant(sql);
  const clauses = Array.from({ length: 999 }, (_, i) => ({ contains: { field: "body", value: `needle ${i}` } }));
  const names = Array.from({ length: Math.ceil((comparisonsMax + 1) / 999) }, (_, i) => `t${i}`);
  for (const name of names) await tenant.trigger(name, { or: { clauses } });
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: names });
  await tenant.store(t0, report(1, { body: "a NEEDLE 77 b" }), report(1, { body: "none", name: "fan" }));
  expect(await tenant.deliveries()).toEqual([]);
  await tenant.matchLate(t0);
  expect(await tenant.deliveries()).toMatchObject([{ event: "disk full", triggers: names }]);
});

test("what comes after changes that wait waits, too, whichever server stores it: an occurrence is seen in its order", async () => {
  const tenant = await waiting();
  const quick = ruleTenant(sql, undefined, tenant.tenantId);
  await tenant.store(t0, report(1));
  await quick.store(t0 + 1, report(2, { status: Status.CLOSED }));
  await quick.store(t0 + 2, report(3));
  expect([await quick.deliveries(), await left(tenant.tenantId)]).toEqual([[], 3]);
  await quick.matchLate(t0 + 10);
  expect((await quick.deliveries()).map(({ occasion, createdMs }) => [occasion, createdMs - t0])).toEqual([
    ["first", 10],
    ["first", 10],
    ["clear", 11],
  ]);
  await quick.store(t0 + 20, report(4, { status: Status.CLOSED }));
  expect(await left(tenant.tenantId)).toBe(0);
});

test("what comes while there is no rule follows changes that wait, too: an alert that ends meanwhile is not left open", async () => {
  const tenant = await waiting();
  await tenant.store(t0, report(1));
  await tenant.rule({ name: "r", triggers: ["disks"], enabled: false });
  await tenant.store(t0 + 1, report(2, { status: Status.CLOSED }));
  expect(await left(tenant.tenantId)).toBe(2);
  await tenant.rule({ name: "r", triggers: ["disks"], sendUpdates: true });
  await tenant.matchLate(t0 + 10);
  expect((await tenant.deliveries()).map(({ occasion }) => occasion)).toEqual(["first", "clear"]);
});

test("a row that cannot be read keeps nothing from being matched that follows it", async () => {
  const causes: object[] = [];
  const log = { error: (fields: object) => void causes.push(fields) };
  const engine = ruleEngine(
    sql,
    () => undefined,
    () => t0,
    { storingMs: 0, log },
  );
  const tenant = await waiting({}, engine);
  const store = (source: string) => tenant.store(t0, report(1, { dimensions: { source } }));
  const breaks: ((changes: string) => string)[] = [
    () => "{",
    () => "[]",
    (changes) => changes.replace(/"texts":\[.*?\]/, '"texts":[]'),
    (changes) => changes.replace('"disk full"', "7"),
  ];
  for (const [i, broken] of breaks.entries()) {
    await store(`broken-${i}`);
    const [{ changes }] = await sql<[{ changes: string }]>`
      select changes from unmatched_changes where tenant_id = ${tenant.tenantId}`;
    await sql`update unmatched_changes set changes = ${broken(changes)} where tenant_id = ${tenant.tenantId}`;
    await store(`whole-${i}`);
    await tenant.matchLate(t0 + 1);
    expect(causes).toHaveLength(i + 1);
  }
  expect(causes[0]).toMatchObject({ tenant: tenant.tenantId, cause: expect.stringContaining("JSON") });
  const told = await tenant.deliveries();
  expect(told.map(({ entity }) => entity).sort()).toEqual(breaks.map((_, i) => `whole-${i}`));
});

test("a row that always fails is set aside after some tries, and says so; what follows is matched", async () => {
  const causes: object[] = [];
  const log = { error: (fields: object) => void causes.push(fields) };
  const engine = late(log);
  const tenant = await waiting({ sendUpdates: true }, engine);
  await tenant.store(t0, report(1, { dimensions: { source: "broken" } }));
  // No column of what is noted holds such a severity.
  await sql`update unmatched_changes set changes = replace(changes, '[4,1,false]', '[99999,1,false]') where tenant_id = ${tenant.tenantId}`;
  for (let i = 0; i < 5; i++) await tenant.store(t0, report(1, { dimensions: { source: `web-${i}` } }));
  const kind = engine.kinds.find(({ name }) => name === matchKind) as JobKind;
  const lane = { tenantId: tenant.tenantId, kind: matchKind };
  let failed = 0;
  for (let now = t0; (await left(tenant.tenantId)) > 0; now += 10_000) {
    const jobs = await claim(sql, lane, { sizeMax: 50, leaseMs: 10_000, nowMs: now });
    await transaction(sql, async (tx) =>
      finishJobs(tx, lane, jobs, await kind.run(tx, tenant.tenantId, jobs, now)),
    ).catch(() => {
      failed += 1;
      return giveBackJobs(sql, lane, jobs, now, true);
    });
  }
  expect(failed).toBeGreaterThan(8);
  expect(causes).toMatchObject([{ tenant: tenant.tenantId, changes: 1, cause: expect.stringContaining("99999") }]);
  expect(engine.stats().setAside).toBe(1);
  expect((await tenant.deliveries()).map(({ entity }) => entity).sort()).toEqual([
    "web-0",
    "web-1",
    "web-2",
    "web-3",
    "web-4",
  ]);
});

onOnePostgres("triggers")("nothing is set aside for what no row is to blame for, such as a full disk", async () => {
  const engine = late({ error: (fields) => expect.fail(JSON.stringify(fields)) });
  const tenant = await waiting({}, engine);
  await tenant.store(t0, report(1));
  const kind = engine.kinds.find(({ name }) => name === matchKind) as JobKind;
  const lane = { tenantId: tenant.tenantId, kind: matchKind };
  await sql.unsafe(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'No space left on device' using errcode = '53100'; end $$`);
  await sql`create trigger refused before insert on due_deliveries for each row execute function refuse()`;
  let failed = 0;
  for (let now = t0; now < t0 + 200_000; now += 10_000) {
    const jobs = await claim(sql, lane, { sizeMax: 50, leaseMs: 10_000, nowMs: now });
    await transaction(sql, (tx) => kind.run(tx, tenant.tenantId, jobs, now)).catch(() => {
      failed += 1;
      return giveBackJobs(sql, lane, jobs, now, true);
    });
  }
  await sql`drop trigger refused on due_deliveries`;
  expect(failed).toBe(20);
  await tenant.matchLate(t0 + 200_000);
  expect(await tenant.deliveries()).toHaveLength(1);
  expect(engine.stats().setAside).toBe(0);
});

test("of two servers one matches at a time, and a run that fails leaves all as it was", async () => {
  const tenant = await waiting();
  for (let i = 0; i < 30; i++)
    await tenant.store(t0, report(i, { dimensions: { source: `web-${i % 7}` }, status: 1 + 2 * (i % 2) }));
  let fails = 3;
  async function server() {
    const kind = late().kinds.find(({ name }) => name === matchKind) as JobKind;
    const lane = { tenantId: tenant.tenantId, kind: matchKind };
    for (let now = t0; (await left(tenant.tenantId)) > 0; now += 200) {
      const jobs = await claim(sql, lane, { sizeMax: 4, leaseMs: 0, nowMs: now });
      await transaction(sql, async (tx) => {
        const again = await kind.run(tx, tenant.tenantId, jobs, now);
        if (fails-- > 0) throw new Error("the server is killed");
        await finishJobs(tx, lane, jobs, again);
      }).catch(() => undefined);
    }
  }
  await Promise.all([server(), server()]);
  const byEntity = Map.groupBy(await tenant.deliveries(), ({ entity }) => entity);
  const expected = ruleTenant(sql);
  await expected.trigger("disks", equals("name", "disk full"));
  await expected.destination("d");
  await expected.rule({ name: "r", triggers: ["disks"], sendUpdates: true });
  for (let i = 0; i < 30; i++)
    await expected.put(t0, report(i, { dimensions: { source: `web-${i % 7}` }, status: 1 + 2 * (i % 2) }));
  const wanted = Map.groupBy(await expected.deliveries(), ({ entity }) => entity);
  const occasions = (of: typeof wanted) =>
    [...of].map(([entity, all]) => [entity, all.map(({ occasion }) => occasion).sort()]).sort();
  expect(occasions(byEntity)).toEqual(occasions(wanted));
  expect(byEntity.size).toBe(7);
});

test("a look at the end of a delay waits for changes that wait", async () => {
  const tenant = await waiting({ delaySec: 5 });
  const [first] = await (async () => {
    await tenant.put(t0, report(1));
    return sql<{ id: string; ruleId: string; subject: Buffer; eventId: Buffer; entityId: Buffer }[]>`
      select id, rule_id as "ruleId", subject, event_id as "eventId", entity_id as "entityId" from due_deliveries
      where tenant_id = ${tenant.tenantId}`;
  })();
  if (first === undefined) throw new Error("nothing was decided");
  await tenant.store(t0 + 1, report(2, { status: Status.CLOSED }));
  const subject = { key: first.subject, eventId: first.eventId, number: 1, entityId: first.entityId };
  const delivery = {
    ...first,
    destinationName: "ops",
    subject,
    occasion: "first" as const,
    createdMs: t0,
    dueMs: t0 + 5000,
    tries: 0,
    told: {},
  };
  const verdict = async () => (await tenant.engine.recheck(tenant.tenantId, [delivery], t0 + 6000)).get(first.id);
  expect(await verdict()).toEqual({ send: "later" });
  await tenant.matchLate(t0 + 6000);
  expect(await verdict()).toEqual({ send: false, reason: "the condition is over" });
});

test("a look at the end of a delay does not wait for changes that came after it, of which there may always be some", async () => {
  const tenant = await waiting({ delaySec: 5 });
  await tenant.put(t0, report(1));
  const [first] = await sql<{ id: string; ruleId: string; subject: Buffer; eventId: Buffer; entityId: Buffer }[]>`
    select id, rule_id as "ruleId", subject, event_id as "eventId", entity_id as "entityId" from due_deliveries
    where tenant_id = ${tenant.tenantId}`;
  if (first === undefined) throw new Error("nothing was decided");
  await tenant.store(t0 + 5001, report(2, { dimensions: { source: "another" } }));
  const subject = { key: first.subject, eventId: first.eventId, number: 1, entityId: first.entityId };
  const times = { createdMs: t0, dueMs: t0 + 5000, tries: 0 };
  const delivery = { ...first, destinationName: "ops", subject, occasion: "first" as const, told: {}, ...times };
  const verdicts = await tenant.engine.recheck(tenant.tenantId, [delivery], t0 + 6000);
  expect(verdicts.get(first.id)).toMatchObject({ send: true });
  expect(await left(tenant.tenantId)).toBeGreaterThan(0);
});

test("while too much of a tenant waits no more is taken of it, of others it is", async () => {
  const tenant = await waiting();
  const other = await waiting();
  const wait = async (expected: boolean) => {
    for (let i = 0; i < 100; i++) {
      const refused = (() => {
        try {
          tenant.engine.check(tenant.tenantId);
          return false;
        } catch (error) {
          expect(error).toMatchObject({ code: 8, rawMessage: expect.stringContaining("50001 changes of events wait") });
          return true;
        }
      })();
      if (refused === expected) return;
      await sleep(50);
    }
    throw new Error("nothing has changed");
  };
  await tenant.store(t0, report(1));
  await wait(false);
  await sql`update unmatched_changes set count = 50001 where tenant_id = ${tenant.tenantId}`;
  await wait(true);
  tenant.engine.check(other.tenantId);
  await sql`delete from unmatched_changes where tenant_id = ${tenant.tenantId}`;
  await wait(false);
});
