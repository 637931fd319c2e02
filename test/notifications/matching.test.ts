import { describe, expect, test } from "vitest";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { transaction } from "../../src/db/transaction.ts";
import { deleteOld } from "../../src/events/retention.ts";
import { testDatabase } from "../support/database.ts";
import { equals, report, ruleTenant, untried } from "./rule-tenant.ts";

const asked: string[] = [];
const { sql } = await testDatabase({ debug: (_, statement) => asked.push(statement) });
const t0 = 1_790_000_000_000;
const sec = 1000;

/** A tenant with one rule over events of one name. */
async function simple(more: Partial<Parameters<ReturnType<typeof ruleTenant>["rule"]>[0]> = {}) {
  const tenant = ruleTenant(sql);
  await tenant.trigger("disks", equals("name", "disk full"));
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["disks"], ...more });
  return tenant;
}

describe("an event that matches", () => {
  test("is told once to each destination, in the transaction that stores it, however often it is reported", async () => {
    const tenant = await simple();
    await tenant.destination("other");
    await tenant.rule({ name: "r", triggers: ["disks"], destinations: ["other", "d"] });
    await tenant.put(t0, report(1), report(2), report(3, { name: "fan" }));
    await tenant.put(t0 + 5, report(4));
    const made = { rule: "r", triggers: ["disks"], occasion: "first", event: "disk full", entity: "web-1" };
    const told = { severity: 4, status: 1, acknowledged: false, timeMs: 1, count: 1, root: expect.any(String) };
    expect(await tenant.deliveries()).toEqual([
      { ...made, destination: "d", createdMs: t0, dueMs: t0, told },
      { ...made, destination: "other", createdMs: t0, dueMs: t0, told },
    ]);
  });

  test("is told once however many triggers match; those that do are named in the rule's order", async () => {
    const tenant = await simple();
    await tenant.trigger("hot", { greaterAndEquals: { field: "severity", value: { numberVal: 4 } } });
    await tenant.trigger("cold", { lessAndEquals: { field: "severity", value: { numberVal: 1 } } });
    await tenant.rule({ name: "r", triggers: ["hot", "cold", "disks"] });
    await tenant.put(t0, report(1));
    expect(await tenant.deliveries()).toMatchObject([{ triggers: ["hot", "disks"] }]);
  });

  test("starts every rule that has a trigger for it, and none that is disabled or has no destination", async () => {
    const tenant = await simple();
    await tenant.rule({ name: "s", triggers: ["disks"] });
    await tenant.rule({ name: "off", triggers: ["disks"], enabled: false });
    await tenant.rule({ name: "nowhere", triggers: ["disks"], destinations: [] });
    await tenant.put(t0, report(1));
    expect((await tenant.deliveries()).map(({ rule }) => rule)).toEqual(["r", "s"]);
  });

  test("may be asked for by its entity: dimensions, properties and what models say", async () => {
    const tenant = await simple();
    await tenant.put(t0, report(1, { name: "seen" }));
    await sql`
      update entities set name = 'Web One', metadata = '{"rack": 7}', window_production_state = 300
      where tenant_id = ${tenant.tenantId}`;
    const clauses = {
      dimension: equals("dimensions.source", "WEB-1"),
      bare: equals("source", "web-1"),
      name: equals("entityName", "web one"),
      entity: equals("entity.name", "WEB ONE"),
      state: { equals: { field: "entity.productionState", value: { numberVal: 300 } } },
      rack: { in: { field: "entity.metadataFields.rack", values: [{ stringVal: "7" }, { stringVal: "8" }] } },
      second: { equals: { field: "count", value: { numberVal: 1 } } },
      never: equals("entity.nothing", "x"),
    };
    for (const [name, clause] of Object.entries(clauses)) {
      await tenant.trigger(name, clause);
      await tenant.rule({ name, triggers: [name] });
    }
    await tenant.put(t0, report(1, { name: "fan" }));
    const all = Object.keys(clauses).filter((name) => name !== "never");
    expect((await tenant.deliveries()).map(({ rule }) => rule).sort()).toEqual(all.sort());
  });

  test("closed, is reported by triggers that look at the status alone", async () => {
    const tenant = await simple();
    await tenant.trigger("ends", { equals: { field: "status", value: { stringVal: "STATUS_CLOSED" } } });
    await tenant.rule({ name: "ends", triggers: ["ends"] });
    await tenant.put(t0, report(1, { status: Status.CLOSED }));
    expect(await tenant.deliveries()).toMatchObject([{ rule: "ends", occasion: "first", told: { status: 3 } }]);
  });
});

describe("a change of rules", () => {
  test("is in force for what is stored after it, on every server, which reads again only what has changed", async () => {
    const tenant = await simple({ enabled: false });
    await tenant.put(t0, report(1));
    expect(await tenant.deliveries()).toEqual([]);
    await tenant.rule({ name: "r", triggers: ["disks"] });
    await tenant.put(t0 + 1, report(2));
    expect(await tenant.told()).toEqual([`first@${t0 + 1}`]);
    await tenant.trigger("disks", equals("name", "fan"));
    await tenant.put(t0 + 2, report(3, { name: "fan" }), report(3, { dimensions: { source: "web-2" } }));
    expect((await tenant.deliveries()).map(({ event }) => event)).toEqual(["disk full", "fan"]);
    await tenant.deleteRule("r");
    await tenant.put(t0 + 3, report(4, { name: "fan", dimensions: { source: "web-3" } }));
    expect(await tenant.deliveries()).toHaveLength(2);
  });
});

describe("chains", () => {
  test("an event that rules have made starts none of them, now or by a later change, and beyond five it starts none", async () => {
    const tenant = await simple({ repeat: true, repeatIntervalSec: 0, sendUpdates: true });
    await tenant.rule({ name: "other", triggers: ["disks"], sendUpdates: true });
    const made = report(1, { chain: ["first", "r"] });
    await tenant.put(t0, made);
    expect(await tenant.deliveries()).toMatchObject([{ rule: "other", told: { chain: ["first", "r"] } }]);
    await tenant.set(t0 + 1, made, { acknowledged: true });
    await tenant.put(t0 + 2, report(2));
    expect((await tenant.deliveries()).map(({ rule, occasion }) => [rule, occasion])).toEqual([
      ["other", "first"],
      ["other", "acknowledged"],
    ]);
    const fifth = report(1, { dimensions: { source: "web-5" }, chain: ["1", "2", "3", "4", "5"] });
    await tenant.put(t0 + 3, fifth);
    await tenant.put(t0 + 4, { ...report(2, { dimensions: { source: "web-5" } }) });
    expect(await tenant.deliveries()).toHaveLength(2);
  });

  test("a rule's own report into an occurrence from outside does not repeat it; the next one from outside does", async () => {
    const tenant = await simple({ repeat: true, repeatIntervalSec: 0 });
    await tenant.put(t0, report(1));
    await tenant.put(t0 + 1, report(2, { chain: ["r"] }));
    expect(await tenant.told()).toEqual([`first@${t0}`]);
    await tenant.put(t0 + 2, report(3));
    expect(await tenant.told()).toEqual([`first@${t0}`, `repeat@${t0 + 2}`]);
  });
});

describe("the re-check when a delay ends", () => {
  const waiting = async (tenant: Awaited<ReturnType<typeof simple>>, nowMs: number) => {
    const rows = await sql<
      { id: string; rule_id: string; subject: Buffer; event_id: Buffer; number: number; entity_id: Buffer }[]
    >`
      select id, rule_id, subject, event_id, number, entity_id from due_deliveries
      where tenant_id = ${tenant.tenantId} and occasion = 'first' order by created_ms`;
    const verdicts = await tenant.engine.recheck(
      tenant.tenantId,
      rows.map(({ id, rule_id, subject, event_id, number, entity_id }) => ({
        id,
        ruleId: rule_id,
        destinationName: "ops",
        subject: { key: subject, eventId: event_id, number, entityId: entity_id },
        occasion: "first",
        createdMs: t0,
        dueMs: t0 + 60 * sec,
        ...untried,
        told: {},
      })),
      nowMs,
    );
    return rows.map(({ id }) => verdicts.get(id));
  };

  test("sends what still matches, as it is then", async () => {
    const tenant = await simple({ delaySec: 60, sendUpdates: true });
    await tenant.put(t0, report(1));
    await tenant.put(t0 + 20 * sec, report(2, { severity: 5 }));
    expect(await tenant.told()).toEqual([`first@${t0 + 60 * sec}`]);
    expect(await waiting(tenant, t0 + 60 * sec)).toMatchObject([{ send: true, told: { severity: 5, count: 2 } }]);
    // What is tried again, or at another destination later, tells the same.
    expect(await tenant.deliveries()).toMatchObject([{ told: { severity: 5, count: 2 } }]);
    await tenant.put(t0 + 61 * sec, report(3, { severity: 5 }));
    expect(await tenant.told()).toEqual([`first@${t0 + 60 * sec}`]);
  });

  test("cancels what was closed meanwhile, at once; and what its entity no longer makes match", async () => {
    const tenant = await simple({ delaySec: 60, sendUpdates: true });
    await tenant.put(t0, report(1));
    await tenant.put(t0 + 20 * sec, report(2, { status: Status.CLOSED }));
    expect(await tenant.told()).toEqual([`first@${t0 + 20 * sec}`]);
    expect(await waiting(tenant, t0 + 20 * sec)).toEqual([{ send: false, reason: "the condition is over" }]);

    const other = await simple({ delaySec: 60, sendUpdates: true });
    await other.trigger("disks", equals("entity.metadataFields.rack", "7"));
    await other.put(t0, report(1, { name: "seen" }));
    await sql`update entities set metadata = '{"rack": 7}' where tenant_id = ${other.tenantId}`;
    await other.put(t0, report(1));
    await sql`update entities set metadata = '{"rack": 8}' where tenant_id = ${other.tenantId}`;
    expect(await waiting(other, t0 + 60 * sec)).toEqual([{ send: false, reason: "the condition is over" }]);
    expect(await other.told()).toEqual([`first@${t0 + 60 * sec}`]);
  });

  test("cancels what a rule that was disabled, or deleted and made again, has left", async () => {
    const tenant = await simple({ delaySec: 60 });
    await tenant.put(t0, report(1));
    const reason = "the rule is disabled, or is there no more";
    await tenant.rule({ name: "r", triggers: ["disks"], enabled: false });
    expect(await waiting(tenant, t0 + 60 * sec)).toEqual([{ send: false, reason }]);
    await tenant.deleteRule("r");
    await tenant.rule({ name: "r", triggers: ["disks"] });
    expect(await waiting(tenant, t0 + 60 * sec)).toEqual([{ send: false, reason }]);
  });
});

test("of occurrences that are deleted nothing is noted: one of the same number is reported again", async () => {
  const tenant = await simple();
  await tenant.put(t0, report(1), report(2, { status: Status.CLOSED }));
  const { onDeleted } = tenant.engine;
  await transaction(sql, (tx) => deleteOld(tx, tenant.tenantId, BigInt(t0), onDeleted));
  expect(await sql`select 1 from rule_matches where tenant_id = ${tenant.tenantId}`).toHaveLength(0);
  await sql`delete from due_deliveries where tenant_id = ${tenant.tenantId}`;
  await tenant.put(t0 + 1, report(t0));
  expect(await tenant.told()).toEqual([`first@${t0 + 1}`]);
});

test("without any rule a change costs no statement more", async () => {
  const [bare, ruled] = [ruleTenant(sql), await simple()];
  const statementsOf = async (tenant: typeof bare) => {
    await tenant.put(t0, report(1));
    asked.length = 0;
    await tenant.put(t0, report(2));
    // The tenant of the test looks at the feed by itself, where nothing calls a consumer.
    return asked.filter((text) => /rule|deliver|trigger/.test(text) && !/skip locked/.test(text)).length;
  };
  expect(await statementsOf(bare)).toBe(1); // the version of the rules, read with the events' lock
  expect(await statementsOf(ruled)).toBeGreaterThan(1);
});

test("a stored trigger that cannot be read matches nothing, and keeps no other from matching", async () => {
  const tenant = ruleTenant(sql);
  await tenant.destination("d");
  await tenant.trigger("broken", equals("name", "disk full"));
  await tenant.trigger("whole", equals("name", "disk full"));
  await sql`update triggers set type = '{"staleData": {"durationSec": "x"}}' where tenant_id = ${tenant.tenantId} and name = 'broken'`;
  await tenant.rule({ name: "r", triggers: ["broken", "whole"] });
  await tenant.put(t0, report(t0));
  expect((await tenant.deliveries()).map(({ triggers }) => triggers)).toEqual([["whole"]]);
});
