import { expect, test } from "vitest";
import { transaction } from "../../../src/db/transaction.ts";
import type { Job } from "../../../src/jobs/queue.ts";
import type { JobKind } from "../../../src/jobs/worker.ts";
import { ruleEngine } from "../../../src/notifications/deciding/engine.ts";
import { resolvedKind } from "../../../src/notifications/silences/until-resolved.ts";
import type { WaitingDelivery } from "../../../src/notifications/subject/delivery.ts";
import { groupsKind } from "../../../src/notifications/subject/group-jobs.ts";
import { testDatabase } from "../../support/database.ts";
import { equals, report, ruleTenant, type TestRule } from "../rule-tenant.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const alerts = 60;
const silences = 10_000;
/** The processor time of one transaction, ms: 200 ms of asking, the last answer, and what it reads and writes. */
const stepMsMax = 600;

/** The processor time that something takes, ms. */
async function spent(work: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** A tenant with a rule, and silences that hold everything it reports, each after five comparisons. */
async function silencedTenant(rule: Partial<TestRule> = {}) {
  const engine = ruleEngine(sql, () => undefined, Date.now);
  const tenant = ruleTenant(sql, engine);
  const { tenantId } = tenant;
  const parts = ["=disk full", "!=a", "!=b", "!=c", "!=d"].map((text) => {
    const [, operator = "", value = ""] = /^(!?=)(.*)$/.exec(text) ?? [];
    return { name: "alertname", operator, value };
  });
  await sql`
    insert into silences (tenant_id, id, matchers, parts, canonical, starts_ms, ends_ms, until_resolved, judged, rule_names,
      destination_names, comment, created_by, client_id, client_name, key_prefix, created_ms, updated_ms)
    select ${tenantId}, gen_random_uuid(), '{}', ${JSON.stringify(parts)}::jsonb, '{}', 0, ${t0 * 2}, false, false, '{}', '{}', 'c', '',
      '', '', '', 0, 0 from generate_series(1, ${silences}::int4)`;
  await tenant.trigger("disks", equals("name", "disk full"));
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["disks"], ...rule });
  const sources = Array.from({ length: alerts }, (_, i) => report(t0, { dimensions: { source: `web-${i}` } }));
  return { engine, tenant, tenantId, store: () => tenant.store(t0, ...sources) };
}

/** Has the runs of a kind of jobs measured. */
function measured(kinds: readonly JobKind[], name: string): number[] {
  const kind = kinds.find((each) => each.name === name) as JobKind;
  const runs: number[] = [];
  const { run } = kind;
  kind.run = async (...given) => {
    let again: Awaited<ReturnType<JobKind["run"]>> = [];
    const ms = await spent(async () => {
      again = await run(...given);
    });
    runs.push(ms);
    return again;
  };
  return runs;
}

test("a batch asks silences for 200 ms and commits all it decided; the rest is asked about, 200 ms at a time, when it is sent", async () => {
  const { engine, tenant, tenantId, store } = await silencedTenant();
  await store();
  expect(await spent(() => tenant.match(t0))).toBeLessThan(2 * stepMsMax);
  const rows = await sql<
    (Omit<WaitingDelivery, "subject"> & { key: Buffer; entityId: Buffer; eventId: Buffer; number: number })[]
  >`
    select id, rule_id as "ruleId", rule_name as "ruleName", trigger_names as "triggerNames", destination_name as "destinationName", subject as key, entity_id as "entityId",
      event_id as "eventId", number, occasion, created_ms::float8 as "createdMs", due_ms::float8 as "dueMs", tries, told,
      silence_id as "silenceId" from due_deliveries where tenant_id = ${tenantId} order by id`;
  expect(rows).toHaveLength(alerts);
  const held = rows.filter(({ silenceId }) => silenceId !== null);
  expect(held.length).toBeGreaterThan(0);
  expect(held.length).toBeLessThan(alerts);
  let left = rows
    .filter(({ silenceId }) => silenceId === null)
    .map(({ key, entityId, eventId, number, ...row }): WaitingDelivery => {
      return { ...row, subject: { key, entityId, eventId, number } };
    });
  while (left.length > 0) {
    let verdicts: Awaited<ReturnType<typeof engine.recheck>> = new Map();
    const ms = await spent(async () => {
      verdicts = await engine.recheck(tenantId, left, t0);
    });
    expect(ms).toBeLessThan(stepMsMax);
    const next = left.filter(({ id }) => verdicts.get(id)?.send === "next");
    const silenced = left.filter(({ id }) => verdicts.get(id)?.send === "silenced");
    expect(silenced.length).toBeGreaterThan(0);
    expect(silenced.length + next.length).toBe(left.length);
    left = next;
  }
}, 300_000);

test("the flush of a group whose members take longer to ask goes on where the last run was, and decides on all of them", async () => {
  const { engine, tenant, tenantId, store } = await silencedTenant({
    grouping: { by: [], waitSec: 0, intervalSec: 60 },
  });
  const runs = measured(engine.kinds, groupsKind);
  await store();
  await tenant.match(t0);
  await tenant.groups(t0);
  expect(runs.length).toBeGreaterThan(1);
  for (const ms of runs) expect(ms).toBeLessThan(stepMsMax);
  const [group] = await sql`
    select held, flushed_ms as flushed, due_ms > ${t0} as later from alert_groups where tenant_id = ${tenantId}`;
  expect(group).toEqual({ held: true, flushed: null, later: true });
  expect((await sql`select from group_messages where tenant_id = ${tenantId}`).count).toBe(0);
}, 300_000);

test("silences that end with what they matched end some at a time", async () => {
  const { engine, tenantId, store } = await silencedTenant();
  await store();
  await sql`
    update silences set until_resolved = true, ends_ms = null, judged = true
    where tenant_id = ${tenantId} and id in (select id from silences where tenant_id = ${tenantId} limit 450)`;
  const running = async () =>
    (await sql`select from silences where tenant_id = ${tenantId} and until_resolved and ends_ms is null`).count;
  const kind = engine.kinds.find(({ name }) => name === resolvedKind) as JobKind;
  const counts: number[] = [];
  let jobs: readonly Job[] = [{ id: "until-resolved", payload: {}, failures: 0 } as Job];
  while (jobs.length > 0) {
    const again = await transaction(sql, (tx) => kind.run(tx, tenantId, jobs, t0));
    jobs = again.map((each) => ({ ...each, failures: 0 }) as Job);
    counts.push(await running());
  }
  expect(counts).toEqual([250, 50, 0]);
}, 300_000);
