import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { afterAll, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { readConfig } from "../../src/config/settings.ts";
import { keepPartitions } from "../../src/db/partitions.ts";
import { historyPartitions } from "../../src/notifications/queue/history.ts";
import { openLog } from "../../src/rpc/log.ts";
import { startServer } from "../../src/server.ts";
import { putModels } from "../entities/stored.ts";
import { transport } from "../support/clients.ts";
import { temporaryDir, testDatabase } from "../support/database.ts";
import { masterKeys } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const nowMs = Date.now();
const { sql, url } = await testDatabase();
const tenant = await testTenant(sql);

// What is older than the server's settings allow is there before it starts.
await sql`
  insert into audit_entries (tenant_id, id, time_ms, client_id, client_name, rpc, method, resource, outcome, request_id)
  values (${tenant.id}, 'old', ${BigInt(nowMs - 2 * dayMs)}, '', '', '', '', '', 'OK', ''),
    (${tenant.id}, 'young', ${BigInt(nowMs)}, '', '', '', '', '', 'OK', '')`;
const idleMs = nowMs - 2 * dayMs;
await putModels(sql, tenant.id, [{ timestampMs: BigInt(idleMs), dimensions: { host: "idle" }, metadata: {} }], idleMs);
await sql`
  insert into jobs (tenant_id, kind, id, payload, size, due_ms, created_ms, fence, lease_until_ms, failures)
  values (${tenant.id}, 'entities.retention', 'daily', '{}', 1, 0, 0, 0, 0, 0)`;
const days = historyPartitions({ deliveryRetentionSec: (20 * dayMs) / 1000, deliveryWaitSecMax: 0 });
await keepPartitions(sql, days, nowMs - 18 * dayMs);
const partitions = async () =>
  (await sql`select from pg_inherits where inhparent = 'delivery_history'::regclass`).count;
const partitionsBefore = await partitions();

const config = readConfig({
  DATABASE_URL: url,
  BELFRY_DATA_DIR: temporaryDir(),
  BELFRY_PORT: "0",
  BELFRY_PLAINTEXT: "1",
  BELFRY_MASTER_KEYS: masterKeys,
  BELFRY_DATA_AGE_MAX: "10d",
  BELFRY_DATA_AHEAD_MAX: "1h",
  BELFRY_METRIC_RETENTION: "2d",
  BELFRY_EVENT_RETENTION: "3d",
  BELFRY_DELIVERY_RETENTION: "7d",
  BELFRY_IDLE_ENTITY_RETENTION: "1d",
  BELFRY_AUDIT_RETENTION: "1d",
});
const server = await startServer(config, openLog("silent"));
afterAll(() => server.stop());
const receiver = createClient(DataReceiverService, transport(server, "grpc", tenant.headers));

const dimensions = { host: "web-1" };
const at = (ms: number) => BigInt(nowMs + ms);

test("BELFRY_DATA_AGE_MAX and BELFRY_DATA_AHEAD_MAX bound the times of models", async () => {
  const models = [-9 * dayMs, -11 * dayMs, 30 * 60_000, 2 * hourMs].map((ms) => ({ timestamp: at(ms), dimensions }));
  const { succeeded, failedModels } = await receiver.putModels({ models, detailedResponse: true });
  expect(succeeded).toBe(2);
  expect(failedModels.map(({ error }) => error)).toEqual([
    expect.stringContaining("must not be more than 240 h old"),
    expect.stringContaining("must not be more than 3600 s ahead"),
  ]);
});

test("BELFRY_METRIC_RETENTION bounds the age of points, BELFRY_EVENT_RETENTION that of events", async () => {
  const metrics = [-dayMs, -3 * dayMs].map((ms) => ({ timestamp: at(ms), dimensions, metric: "cpu", value: 1 }));
  const points = await receiver.putMetrics({ metrics, detailedResponse: true });
  expect(points.failedMetrics.map(({ error }) => error)).toEqual([
    expect.stringContaining("must not be more than 48 h old"),
  ]);
  const events = [-2 * dayMs, -4 * dayMs].map((ms) => ({ timestamp: at(ms), dimensions, name: "disk full" }));
  const stored = await receiver.putEvents({ events, detailedResponse: true });
  expect(stored.failedEvents.map(({ error }) => error)).toEqual([
    expect.stringContaining("must not be more than 72 h old"),
  ]);
});

test("BELFRY_DELIVERY_RETENTION drops the partitions of deliveries that are older", async () => {
  expect(partitionsBefore).toBeGreaterThan(0);
  const old = await sql<{ name: string }[]>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'delivery_history'::regclass`;
  const oldest = new Date(nowMs - 14 * dayMs).toISOString().slice(0, 10).replaceAll("-", "");
  expect(old.map(({ name }) => name).filter((name) => name < `delivery_history_${oldest}`)).toEqual([]);
});

test("BELFRY_AUDIT_RETENTION removes rows of the audit log, BELFRY_IDLE_ENTITY_RETENTION entities without data", {
  timeout: 30_000,
}, async () => {
  const audit = async () =>
    (await sql`select id from audit_entries where tenant_id = ${tenant.id}`).map(({ id }) => id);
  const idle = async () =>
    (await sql`select from entities where tenant_id = ${tenant.id} and dimensions->>'host' = 'idle'`).count;
  while ((await audit()).includes("old") || (await idle()) > 0) await sleep(50);
  expect(await audit()).toContain("young");
  // The job that a server of 0.2.x has left for the same work is gone as well.
  expect(await sql`select from jobs where tenant_id = ${tenant.id} and kind = 'entities.retention'`).toHaveLength(0);
});
