import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { claim, finishJobs } from "../../src/jobs/queue.ts";
import { ruleEngine } from "../../src/notifications/deciding/engine.ts";
import { triggerTroubles } from "../../src/notifications/deciding/sources.ts";
import { testDatabase } from "../support/database.ts";
import { onOnePostgres } from "../support/one-postgres.ts";
import { report, ruleTenant } from "./rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = Date.now() + 86_400_000;
const sec = 1000;
const waiting = (durationSec: number, more: object = {}) => ({
  staleData: { eventName: "beat", durationSec: String(durationSec), ...more },
});

/** A tenant whose rule waits for the event beat of two entities, and a server that looks each second. */
async function watching(type: object = waiting(60), createdMs = t0) {
  let now = t0;
  const engine = ruleEngine(
    sql,
    () => undefined,
    () => now,
  );
  const tenant = ruleTenant(sql, engine);
  const other = { dimensions: { source: "web-2" } };
  await tenant.put(t0 - 10 * sec, report(1, { name: "seen" }), report(1, { name: "seen", ...other }));
  await tenant.trigger("silence", null, type as never, createdMs);
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["silence"], sendUpdates: true });

  /** Lets a server look until a second, and answers what has been told since the last time. */
  async function until(second: number) {
    for (; now <= t0 + second * sec; now += sec) {
      if ((now - t0) % (2 * sec) === 0) await engine.flush(now);
      for (const kind of engine.kinds) {
        const lane = { tenantId: tenant.tenantId, kind: kind.name };
        const jobs = await claim(sql, lane, { sizeMax: kind.sizeMax, leaseMs: 10_000, nowMs: now });
        if (jobs.length === 0) continue;
        await transaction(sql, async (tx) =>
          finishJobs(tx, lane, jobs, await kind.run(tx, tenant.tenantId, jobs, now)),
        );
      }
    }
    return told();
  }
  const told = async () =>
    (await tenant.deliveries())
      .map(({ occasion, entity, createdMs }) => `${occasion} ${entity} ${(createdMs - t0) / sec}`)
      .sort();
  const beat = (second: number, source = "web-1") => {
    now = t0 + second * sec;
    return tenant.put(now, report(now, { name: "beat", dimensions: { source } }));
  };
  const away = (second: number) => {
    now = t0 + second * sec;
  };
  const enable = (enabled: boolean) => tenant.rule({ name: "r", triggers: ["silence"], sendUpdates: true, enabled });
  return { tenant, until, beat, away, told, enable };
}

/** Whether what was told is this, each within five seconds after its time. */
function expectTold(told: string[], expected: [occasion: string, entity: string, second: number][]) {
  expect(told.map((each) => each.replace(/ [\d.]+$/, ""))).toEqual(expected.map(([a, b]) => `${a} ${b}`));
  for (const [i, [, , second]] of expected.entries()) {
    const at = Number(told[i]?.split(" ").at(-1));
    expect(at).toBeGreaterThanOrEqual(second);
    expect(at).toBeLessThanOrEqual(second + 5);
  }
}

test("data that stay away are told within five seconds, what was never seen too, and it is over when they return", async () => {
  const { until, beat } = await watching();
  await until(20);
  await beat(30);
  expectTold(await until(70), [["first", "web-2", 60]]);
  expectTold(await until(100), [
    ["first", "web-1", 90],
    ["first", "web-2", 60],
  ]);
  await beat(101);
  expectTold(await until(110), [
    ["clear", "web-1", 101],
    ["first", "web-1", 90],
    ["first", "web-2", 60],
  ]);
});

test("only entities of its query are awaited; one that leaves it is over", async () => {
  const clause = { filter: { field: "name", operation: "OP_STARTS_WITH", value: "source=web-2" } };
  const { tenant, until } = await watching(waiting(10, { entityQuery: { clause } }));
  expectTold(await until(20), [["first", "web-2", 10]]);
  await sql`update entities set name = 'gone' where tenant_id = ${tenant.tenantId}`;
  expectTold(await until(30), [
    ["clear", "web-2", 20],
    ["first", "web-2", 10],
  ]);
});

await sql`create function fail_for_bad() returns trigger language plpgsql as
  $$ begin raise exception 'no such thing' using errcode = '22000'; end $$`;
const failures = {
  "its entities are taken in": "insert",
  "its data are looked for": "update",
};
const failing = (on: string) => (name: string) =>
  sql.unsafe(
    `create trigger bad before ${on} on stale_watches for each row when (new.trigger_name = '${name}') execute function fail_for_bad()`,
  );

// Members of every object are names as others are.
const names = ["bad", "constructor", "__proto__"];
onOnePostgres("triggers").each(
  Object.entries(failures).flatMap(([when, on]) => names.map((bad) => [bad, when, failing(on)] as const)),
)(
  "a trigger named %s that fails when %s keeps no other from firing, and says so until then",
  async (bad, _when, fail) => {
    const { tenant, until } = await watching(waiting(10));
    await tenant.trigger(bad, null, waiting(10, { eventName: "other" }) as never, t0);
    await tenant.rule({ name: "r2", triggers: [bad] });
    await fail(bad);
    expectTold(await until(20), [
      ["first", "web-1", 10],
      ["first", "web-2", 10],
    ]);
    expect(await triggerTroubles(sql, tenant.tenantId)).toEqual(
      new Map([[bad, "its data cannot be looked for: no such thing"]]),
    );
    await sql`drop trigger bad on stale_watches`;
    expect(await until(60)).toHaveLength(4);
    expect(await triggerTroubles(sql, tenant.tenantId)).toEqual(new Map());
  },
);

test("time without any server does not count", async () => {
  const { until, beat, away, told } = await watching();
  await until(10);
  await beat(20);
  await until(30);
  away(1000);
  await until(1015);
  expect(await told()).toEqual([]);
  expectTold(await until(1070), [
    ["first", "web-1", 1050],
    ["first", "web-2", 1030],
  ]);
});

test("the time begins when a rule begins to use the trigger, or to use it again, however old the trigger is", async () => {
  const { until, enable } = await watching(waiting(60), t0 - 86_400_000);
  await until(50);
  await enable(false);
  await until(100);
  await enable(true);
  expectTold(await until(150), []);
  expectTold(await until(170), [
    ["first", "web-1", 161],
    ["first", "web-2", 161],
  ]);
});

test("a rule that begins to use a trigger which has fired is told of what stays away, once", async () => {
  const { tenant, until, beat } = await watching(waiting(10));
  expectTold(await until(20), [
    ["first", "web-1", 10],
    ["first", "web-2", 10],
  ]);
  await beat(21, "web-2");
  await until(25);
  await tenant.destination("e");
  await tenant.rule({ name: "r2", triggers: ["silence"], destinations: ["e"], sendUpdates: true });
  await until(28);
  const ofSecond = async () =>
    (await tenant.deliveries()).flatMap(({ rule, occasion, entity }) => (rule === "r2" ? `${occasion} ${entity}` : []));
  expect(await ofSecond()).toEqual(["first web-1"]);
  await beat(29);
  await until(32);
  expect(await ofSecond()).toEqual(["first web-1", "clear web-1"]);
});

test("what stays away while its rule is disabled is not sent again, and ends when data return", async () => {
  const { until, beat, enable } = await watching();
  await until(70);
  await enable(false);
  await until(80);
  await enable(true);
  await until(200);
  await beat(201);
  expectTold(await until(210), [
    ["clear", "web-1", 201],
    ["first", "web-1", 60],
    ["first", "web-2", 60],
  ]);
});
