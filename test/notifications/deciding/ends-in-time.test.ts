import { expect, test } from "vitest";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { testDatabase } from "../../support/database.ts";
import { equals, report, ruleTenant } from "../rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const count = 12;
/** About 40 ms of the processor for a value that it was not compared with before. */
const slow = "(?:a|b)*a(?:a|b){200}!?(?:a|b)*";

/** A text whose states are hard to foresee. */
function mixed(length: number, from: number): string {
  let state = from;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return "ab"[(state >> 16) % 2];
  }).join("");
}

/** A tenant with a rule of 12 alerts, whose trigger takes 12 slow comparisons as soon as it is changed. */
async function slowTenant(more: object = {}) {
  const tenant = ruleTenant(sql);
  const clause = equals("name", "long");
  await tenant.trigger("t", clause);
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["t"], sendUpdates: true, ...more });
  const alerts = (nowMs: number, name = "long") =>
    tenant.put(
      nowMs,
      ...Array.from({ length: count }, (_, i) =>
        report(nowMs, { name, dimensions: { source: `web-${i}` }, metadata: { long: mixed(3900, i + 1) } }),
      ),
    );
  const slows = (operator: "=~" | "!~") =>
    tenant.trigger("t", null, { event: { query: { clause, matchers: [`long${operator}${slow}`] } } });
  const told = async () => {
    const counts: Record<string, number> = {};
    for (const { occasion } of await tenant.deliveries()) counts[occasion] = (counts[occasion] ?? 0) + 1;
    return counts;
  };
  return { ...tenant, alerts, slows, told };
}

test("a look at what a changed rule matches ends after 200 ms, and goes on in another transaction", async () => {
  const { alerts, slows, lookAtStanding, told } = await slowTenant();
  await alerts(t0);
  await slows("!~");
  expect(await lookAtStanding(t0 + 1000)).toBeGreaterThan(1);
  expect(await told()).toEqual({ first: count, clear: count });
});

test("a look at what is to be repeated ends after 200 ms, and goes on in another transaction", async () => {
  const how = { repeat: true, repeatIntervalSec: 60, repeatWhile: RepeatWhile.OPEN };
  const { alerts, slows, repeat, told, lookAtStanding } = await slowTenant(how);
  await alerts(t0);
  await slows("=~");
  await lookAtStanding(t0 + 1000);
  expect(await repeat(t0 + 70_000)).toBeGreaterThan(1);
  expect(await told()).toEqual({ first: count, repeat: count });
});

test("a look at what a maintenance window has kept back ends after 200 ms, and goes on in another transaction", async () => {
  const { alerts, maintenance, slows, told } = await slowTenant({ muteDuringMaintenance: true });
  await alerts(t0, "so that there are entities");
  await maintenance(t0 + 1000, true);
  await alerts(t0 + 2000);
  expect(await told()).toEqual({});
  await slows("=~");
  expect(await maintenance(t0 + 3000, false)).toBeGreaterThan(1);
  expect(await told()).toEqual({ first: count });
});
