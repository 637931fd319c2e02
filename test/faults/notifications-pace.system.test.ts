import { afterAll, beforeAll, expect, test } from "vitest";
import { announce } from "../../src/jobs/queue.ts";
import { sendingTenant } from "../notifications/dispatch.ts";
import { testDatabase } from "../support/database.ts";
import { type HttpReceiver, httpReceiver } from "../support/receivers.ts";
import { masterKeys } from "../support/server.ts";
import { clear, place } from "./place.ts";
import { type ServerProcess, serverProcess } from "./server-process.ts";

const rows = 30_000;
const samples = 20;
/** As many deliveries of a busy tenant go out at most before another tenant's event is notified: a few claims of each process. */
const besideMax = 2000;

const database = await testDatabase();
const { sql } = database;
const nowMs = Date.now();
const dir = await place();
let server!: ServerProcess;
let receiver!: HttpReceiver;
/** Answers of a destination that hangs until the end, and how many deliveries of the busy tenant have gone out. */
const hanging: (() => void)[] = [];
let busy = 0;
const waiting = new Map<string, () => void>();

beforeAll(async () => {
  receiver = await httpReceiver();
  receiver.answer(({ path, body }, response) => {
    receiver.received.length = 0;
    if (path === "/slow") return void hanging.push(() => response.end());
    if (path === "/busy") busy += 1;
    if (path === "/quick") waiting.get(JSON.parse(body).event.name)?.();
    response.end();
  });
  server = await serverProcess({
    BELFRY_DATA_DIR: dir,
    DATABASE_URL: database.url,
    BELFRY_OUTBOUND_ALLOW: "127.0.0.0/8",
    BELFRY_MASTER_KEYS: masterKeys,
  });
  await server.start();
});
afterAll(async () => {
  for (const end of hanging) end();
  await server.stop();
  await receiver[Symbol.asyncDispose]();
  await clear(dir);
});

/** Sends one event at a time, each when the one before was notified. Returns how many deliveries of the busy tenant went out meanwhile. */
async function besides(headers: Record<string, string>): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < samples; i++) {
    const name = `disk ${i}`;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(name, resolve);
    const before = busy;
    const event = { name, timestamp: String(Date.now()), dimensions: { host: "web-1" }, severity: "SEVERITY_ERROR" };
    await fetch(`${server.url}/v1/data-receiver/events`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ events: [{ ...event, status: "STATUS_OPEN" }] }),
    });
    await promise;
    all.push(busy - before);
  }
  return all;
}

/** Many deliveries of a tenant that are due now, about as many series. */
async function flood(tenantId: string, rule: string, destination: string, count: number): Promise<void> {
  const entity = Buffer.alloc(20, 1);
  await sql`
    insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    values (${tenantId}, ${entity}, 'e', '{"host":"e"}', '{}', 0, 0, ${Date.now()})`;
  await sql`
    insert into rule_matches (tenant_id, subject, rule_id, entity_id, metric_name, trigger_names, standing, muted, chain,
      matched_ms, last_ms)
    select ${tenantId}::uuid, decode(md5(i::text) || '0000000000000000', 'hex'), ${rule}::uuid, ${entity}, 'cpu', '{disks}', true, false,
      '{}', 0, 0 from generate_series(1, ${count}::int4) as i`;
  await sql`
    insert into due_deliveries (tenant_id, id, created_ms, rule_id, rule_name, trigger_names, destination_name, subject,
      entity_id, metric_name, occasion, told, attempts, error, due_ms, lease_until_ms, fence, tries, slow_tries)
    select ${tenantId}::uuid, (lpad(to_hex(${BigInt(nowMs)}::bigint), 12, '0') || '7000' || substr(md5(i::text), 1, 16))::uuid,
      ${BigInt(nowMs)}, ${rule}::uuid, 'page', '{disks}', ${destination},
      decode(md5(i::text) || '0000000000000000', 'hex'), ${entity}, 'cpu', 'first', '{"value":1}', '[]', '', ${BigInt(nowMs)}, 0, 0, 0, 0
    from generate_series(1, ${count}::int4) as i`;
  await announce(sql, { tenantId, kind: "deliveries" }, BigInt(nowMs));
}

test("a destination that hangs and a tenant with many due deliveries leave others their pace", async () => {
  const quick = await sendingTenant(database, receiver.url, nowMs, { quick: {} });
  const slow = await sendingTenant(database, receiver.url, nowMs, { slow: {}, quick: {} });
  const many = await sendingTenant(database, receiver.url, nowMs, { busy: {} });
  await flood(slow.id, slow.rule, "slow", 1000);
  await flood(many.id, many.rule, "busy", rows);
  await expect.poll(() => hanging.length > 0 && busy > 0).toBe(true);
  expect(Math.max(...(await besides(quick.headers)))).toBeLessThan(besideMax);
  expect(busy, "the busy tenant was served all the while").toBeLessThan(rows);
});
