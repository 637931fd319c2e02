import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { transaction } from "../../src/db/transaction.ts";
import { raiseRulesVersion } from "../../src/notifications/silences/rules-version.ts";
import { openHttp2 } from "../support/clients.ts";
import { turnMsMax } from "../support/loop-turns.ts";
import { testTenant } from "../support/tenant.ts";
import { fileServer, memoryBytes } from "./file-server.ts";
import { drained } from "./notifications.ts";

const MiB = 1024 * 1024;
const { server, sql } = await fileServer({ NODE_OPTIONS: "--max-old-space-size=256" });
const json = { "content-type": "application/json" };

/** What a neighbour finds wrong that sends an event after the other while something goes on, and how much memory that takes. */
async function beside(work: () => Promise<void>) {
  const neighbour = await testTenant(sql);
  const connection = openHttp2(server);
  const wrong: string[] = [];
  let going = true;
  let mostBytes = 0;
  const send = async (name: string) => {
    const event = { name, timestamp: String(Date.now()), dimensions: { source: "a" } };
    return await connection.send({
      path: "/v1/data-receiver/events",
      headers: { ...neighbour.headers, ...json },
      body: [Buffer.from(JSON.stringify({ events: [event] }))],
    });
  };
  // A server that has just started compiles its code first.
  for (let i = 0; i < 50; i++) await send(`before ${i}`);
  await server.longestTurn();
  const sending = (async () => {
    for (let i = 0; going; i++) {
      const { status } = await send(`event ${i}`);
      if (status !== 200) wrong.push(`${status}`);
      mostBytes = Math.max(mostBytes, memoryBytes(server));
      await sleep(20);
    }
  })();
  await work().finally(() => {
    going = false;
  });
  await sending;
  connection.close();
  expect(wrong).toEqual([]);
  expect((await server.longestTurn()).ms).toBeLessThan(turnMsMax);
  expect(mostBytes).toBeLessThan(512 * MiB);
  expect(server.complaints).toEqual([]);
}

const triggers = 1500;
const rules = 3;

/** Triggers of 12 texts each, in rules that stood there before rules had a bound. */
async function storeRules(tenantId: string): Promise<void> {
  await transaction(sql, async (tx) => {
    await tx`
      insert into destinations (tenant_id, name, description, tags, kind, type, secrets, max_per_minute, disabled_reason,
        created_ms)
      values (${tenantId}, 'd', '', '[]', 'webhook', '{"webhook":{"url":"http://127.0.0.1:9/"}}', '{}', 0, '', 0)`;
    await tx`
      insert into triggers (tenant_id, name, description, tags, source, type, created_ms)
      select ${tenantId}::uuid, 't' || t, '', '[]', 'event', jsonb_build_object('event', jsonb_build_object('query',
        jsonb_build_object('clause', jsonb_build_object('or', jsonb_build_object('clauses', (
          select jsonb_agg(jsonb_build_object('contains',
            jsonb_build_object('field', 'body', 'value', 'Needle ' || t || ' of ' || i || ';'))) from generate_series(1, 12) as i)))))), 0
      from generate_series(0, ${triggers - 1}::int4) as t`;
    await tx`
      insert into rules (tenant_id, name, description, enabled, message, repeat, repeat_interval_sec, delay_sec,
        send_updates, mute_during_maintenance, tags, created_ms)
      select ${tenantId}::uuid, 'r' || i, '', true, '', false, 3600, 0, false, false, '[]', 0
      from generate_series(0, ${rules - 1}::int4) as i`;
    await tx`
      insert into rule_triggers (tenant_id, rule_name, trigger_name, place)
      select ${tenantId}::uuid, 'r' || (t % ${rules}::int4), 't' || t, t from generate_series(0, ${triggers - 1}::int4) as t`;
    await tx`
      insert into rule_destinations (tenant_id, rule_name, destination_name, place)
      select ${tenantId}::uuid, 'r' || i, 'd', 0 from generate_series(0, ${rules - 1}::int4) as i`;
    await raiseRulesVersion(tx, tenantId, { kind: "rule", name: "all" });
  });
}

/** Each event holds a text of one trigger. */
const eventsOf = (prefix: string, count: number, bytes: number) =>
  Array.from({ length: count }, (_, i) => ({
    name: `${prefix} ${i}`,
    timestamp: String(Date.now()),
    severity: "SEVERITY_ERROR",
    status: "STATUS_OPEN",
    dimensions: { source: `host ${i % 50}` },
    body: `${"Needle 1 of 77, ".repeat(Math.max(0, Math.ceil((bytes - 30) / 16)))}NEEDLE ${i % triggers} OF ${1 + (i % 12)};`,
  }));

test("thousands of triggers of 12 texts hold up no one, whatever events come, and all that match are reported once", async () => {
  const tenant = await testTenant(sql);
  await storeRules(tenant.id);
  const connection = openHttp2(server);
  const batches = [
    ["large", 100, 63_000],
    ["short", 500, 100],
    ["middle", 500, 1000],
  ] as const;
  const matched = async () => {
    const [row] = await sql<{ events: number; deliveries: number }[]>`
      select count(distinct event_id)::int4 as events, count(*)::int4 as deliveries from (
        select event_id from due_deliveries where tenant_id = ${tenant.id}
        union all select event_id from delivery_history where tenant_id = ${tenant.id}
      ) as all_of_them`;
    return row;
  };
  let sum = 0;
  await beside(async () => {
    for (const [prefix, count, bytes] of batches) {
      const body = [Buffer.from(JSON.stringify({ events: eventsOf(prefix, count, bytes) }))];
      const answer = await connection.send({
        path: "/v1/data-receiver/events",
        headers: { ...tenant.headers, ...json },
        body,
      });
      expect({ status: answer.status, body: JSON.parse(answer.body.toString()) }).toMatchObject({
        status: 200,
        body: { succeeded: count },
      });
      sum += count;
    }
    for (let i = 0; i < 600 && (await matched())?.events !== sum; i++) await sleep(100);
    await sleep(500);
  });
  connection.close();
  expect(await matched()).toEqual({ events: sum, deliveries: sum });
});

test("thousands of thresholds of one metric hold up no one, whatever points come", async () => {
  const tenant = await testTenant(sql);
  await storeRules(tenant.id);
  await sql`
    update triggers set source = 'metricThreshold', type = jsonb_build_object('metricThreshold',
      jsonb_build_object('metricName', 'cpu', 'max', 50 + substr(name, 2)::int4 / 100.0))
    where tenant_id = ${tenant.id}`;
  const connection = openHttp2(server);
  await beside(async () => {
    const startMs = Date.now() - 1_000_000;
    // Each value lies beyond some of the bounds, another number of them each time.
    const metrics = Array.from({ length: 5000 }, (_, i) => ({
      metric: "cpu",
      dimensions: { source: `host ${i % 100}` },
      timestamp: String(startMs + Math.floor(i / 100) * 1000),
      value: 50 + ((i * 7919) % 3000) / 100,
    }));
    const answer = await connection.send({
      path: "/v1/data-receiver/metrics",
      headers: { ...tenant.headers, ...json },
      body: [Buffer.from(JSON.stringify({ metrics }))],
    });
    expect(answer.status).toBe(200);
  });
  connection.close();
  const [row] = await sql<{ series: number }[]>`
    select count(distinct subject)::int4 as series from rule_matches where tenant_id = ${tenant.id} and standing`;
  expect(row?.series).toBe(100);
});

test("ten rules that cause each other hold up no one", async () => {
  const tenant = await testTenant(sql);
  const connection = openHttp2(server);
  const call = async (path: string, body: object) => {
    const answer = await connection.send({
      path: `/v1/${path}`,
      headers: { ...tenant.headers, ...json },
      body: [Buffer.from(JSON.stringify(body))],
    });
    expect(answer.status).toBe(200);
  };
  const clause = { greaterAndEquals: { field: "severity", value: { numberVal: 0 } } };
  await call("notification/triggers", { name: "all", type: { event: { query: { clause } } } });
  const templates = { nameTemplate: "{{{rule.name}}} of {{{event.name}}}", typeTemplate: "t", summaryTemplate: "s" };
  for (let i = 0; i < 10; i++) {
    const event = { ...templates, severity: "SEVERITY_INFO" };
    await call("notification/destinations", { name: `d${i}`, type: { event } });
    const members = { enabled: true, triggerNames: ["all"], destinationNames: [`d${i}`] };
    await call("notification/rules", { name: `r${i}`, ...members });
  }
  await beside(async () => {
    const cause = { name: "cause", timestamp: String(Date.now()), dimensions: { source: "a" } };
    await call("data-receiver/events", { events: [cause] });
    await drained(sql);
  });
  connection.close();
  const [row] = await sql<{ events: number }[]>`
    select count(*)::int4 as events from events where tenant_id = ${tenant.id}`;
  expect(row?.events).toBe(101);
});
