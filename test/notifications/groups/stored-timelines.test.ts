import fc from "fast-check";
import { expect, test } from "vitest";
import type { QuotaBounds } from "../../../src/db/admission-quota.ts";
import { transaction } from "../../../src/db/transaction.ts";
import { ruleEngine } from "../../../src/notifications/deciding/engine.ts";
import { announceSilences, createSilence, expireSilence } from "../../../src/notifications/silences/silences.ts";
import { groupsKind } from "../../../src/notifications/subject/group-jobs.ts";
import { cases, seed } from "../../support/cases.ts";
import { testDatabase } from "../../support/database.ts";
import { report, ruleTenant, type TestRule } from "../rule-tenant.ts";
import { type Act, happenings, model, type Story, spanSec, story } from "./group-model.ts";

const { sql } = await testDatabase();
const t0 = 1_790_000_000_000;
const [OPEN, CLOSED] = [1, 3];
const everything = { greaterAndEquals: { field: "severity", value: { numberVal: 0 } } };

/** A tenant whose clock is the test's, with a rule over every event. */
async function clockedTenant(rule: Omit<TestRule, "name" | "triggers">) {
  let now = t0;
  const engine = ruleEngine(
    sql,
    () => undefined,
    () => now,
  );
  const tenant = ruleTenant(sql, engine);
  await tenant.trigger("all", everything);
  await tenant.destination("d");
  await tenant.rule({ name: "r", triggers: ["all"], ...rule });
  return {
    tenant,
    at(ms: number) {
      now = t0 + ms;
      return now;
    },
  };
}

/** One second in parts: each act is in another one, so that nothing happens at the moment of a flush. */
const parts = 40;
const partMs = 1000 / parts;

/** The same story, counted in parts of a second. */
const inParts = (of: Story): Story => ({
  ...of,
  waitSec: of.waitSec * parts,
  intervalSec: of.intervalSec * parts,
  repeatSec: of.repeatSec * parts,
  delaySec: of.delaySec * parts,
  acts: of.acts.map((act) => ({ ...act, afterSec: act.afterSec * parts + 1 })),
});

/** Silences a member; returns the silence's id. */
async function hold(tenantId: string, member: number, nowMs: number): Promise<string> {
  const wanted = {
    matchers: [`alertname="${member}"`],
    startsMs: undefined,
    // Far ahead by the clock of the database, too.
    endsMs: 2 * t0,
    ruleNames: [],
    destinationNames: [],
    comment: "c",
    createdBy: "",
  };
  const author = { clientId: "", clientName: "", keyPrefix: "" };
  return await transaction(sql, async (tx) => {
    const write = { author, nowMs, bounds: { resourceBytesMax: 1e9 } as QuotaBounds, at: "" };
    const { silence, changed } = await createSilence(tx, tenantId, wanted, write);
    await announceSilences(tx, tenantId, changed);
    return silence.id;
  });
}

/** What a tenant is told when it lives through a story, by part of a second. */
async function lived(of: Story): Promise<string[]> {
  const { waitSec, intervalSec, sendUpdates, repeatSec, unacknowledged, delaySec } = of;
  const { tenant, at } = await clockedTenant({
    grouping: { by: ["team"], waitSec, intervalSec },
    sendUpdates,
    delaySec,
    ...(repeatSec > 0 && { repeat: true, repeatIntervalSec: repeatSec, repeatWhile: unacknowledged ? 2 : 1 }),
  });
  const alerts = new Map<number, { firing: boolean; number: number; team: number; silenceId: string | undefined }>();
  const item = (member: number, ms: number, status: number) =>
    report(t0 + ms, { name: `${member}`, status, metadata: { team: alerts.get(member)?.team ?? 0 } });
  const release = async (member: number, ms: number) => {
    const id = alerts.get(member)?.silenceId;
    if (id === undefined) return;
    await transaction(sql, async (tx) => {
      const { changed } = await expireSilence(tx, tenant.tenantId, id, at(ms));
      await announceSilences(tx, tenant.tenantId, changed);
    });
    Object.assign(alerts.get(member) as object, { silenceId: undefined });
  };
  const act = async ({ member, what }: Act, ms: number) => {
    const before = alerts.get(member) ?? { firing: false, number: 0, team: 0, silenceId: undefined };
    const { firing, number, team, silenceId } = before;
    if (what === "release" || (what === "hold" && !firing) || (what === "fire" && !firing)) await release(member, ms);
    if (what === "hold" && firing && silenceId === undefined)
      alerts.set(member, { ...before, silenceId: await hold(tenant.tenantId, member, at(ms)) });
    if (what === "fire" && !firing) {
      alerts.set(member, { firing: true, number: number + 1, team, silenceId: undefined });
      await tenant.put(at(ms), item(member, ms, OPEN));
    }
    if (what === "move" && firing) {
      alerts.set(member, { ...before, team: 1 - team });
      await tenant.put(at(ms), item(member, ms, OPEN));
    }
    if (what === "end" && firing) {
      alerts.set(member, { ...before, firing: false });
      await tenant.put(at(ms), item(member, ms, CLOSED));
    }
    if (what === "acknowledge" && firing)
      await tenant.set(at(ms), item(member, ms, OPEN), { acknowledged: true }, number);
  };
  const acts = [...happenings(inParts(of))];
  for (let ms = 0; ms < spanSec * 1000; ) {
    const [row] = await sql<[{ dueMs: number | null }]>`
      select min(due_ms)::float8 as "dueMs" from jobs where tenant_id = ${tenant.tenantId} and kind = ${groupsKind}`;
    const dueMs = row.dueMs === null ? Infinity : row.dueMs - t0;
    const [part = Infinity, some = []] = acts[0] ?? [];
    ms = Math.min(dueMs, part * partMs);
    if (ms >= spanSec * 1000) break;
    if (part * partMs === ms) {
      acts.shift();
      for (const each of some) await act(each, ms);
    }
    await tenant.groups(at(ms));
  }
  const rows = await sql<{ createdMs: number; occasion: string; team: string; names: string[]; ended: string[] }[]>`
    select d.created_ms::float8 as "createdMs", d.occasion,
      (select told -> 'labels' ->> 'team' from group_messages g
        where g.tenant_id = d.tenant_id and g.id = (d.told -> 'group' ->> 'message')::uuid) as team,
      array_agg(e.name order by e.name) filter (where not m.resolved) as names,
      array_agg(e.name order by e.name) filter (where m.resolved) as ended
    from due_deliveries d
      join group_message_members m on m.tenant_id = d.tenant_id and m.message_id = (d.told -> 'group' ->> 'message')::uuid
      join events e on e.tenant_id = m.tenant_id and e.id = m.event_id
    where d.tenant_id = ${tenant.tenantId} group by d.id, d.tenant_id, d.told, d.created_ms, d.occasion order by d.created_ms, team`;
  return rows.map(
    ({ createdMs, occasion, team, names, ended }) =>
      `${(createdMs - t0) / partMs} ${team} ${occasion} ${names?.join("") ?? ""}-${ended?.join("") ?? ""}`,
  );
}

test(`random timelines are stored as the documentation tells them (seed ${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(story, async (of) => {
      expect(await lived(of)).toEqual(model(inParts(of), spanSec * parts));
    }),
    { numRuns: cases(16), seed },
  );
}, 300_000);

test("a member that a maintenance window holds is looked at when the window ends, not at the next interval", async () => {
  const { tenant, at } = await clockedTenant({
    muteDuringMaintenance: true,
    grouping: { by: [], waitSec: 30, intervalSec: 3600 },
  });
  await tenant.put(at(0), report(t0, { name: "a" }));
  await tenant.groups(at(0));
  await tenant.maintenance(at(10_000), true);
  for (const ms of [30_000, 31_000]) await tenant.groups(at(ms));
  expect(await tenant.told()).toEqual([]);
  await tenant.maintenance(at(60_000), false);
  await tenant.groups(at(60_000));
  expect(await tenant.told()).toEqual([`first@${t0 + 60_000}`]);
});

test("a window that ended while what it holds was being stored is noticed by a second look", async () => {
  const { tenant, at } = await clockedTenant({
    muteDuringMaintenance: true,
    grouping: { by: [], waitSec: 30, intervalSec: 3600 },
  });
  await tenant.put(at(0), report(t0, { name: "a" }));
  await tenant.groups(at(0));
  await tenant.maintenance(at(10_000), true);
  await tenant.groups(at(30_000));
  // As if it had not seen the group.
  await sql`update entities set window_production_state = null where tenant_id = ${tenant.tenantId}`;
  await tenant.groups(at(31_000));
  expect(await tenant.told()).toEqual([`first@${t0 + 31_000}`]);
});
