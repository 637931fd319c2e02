import { describe, expect, test, vi } from "vitest";
import type { Db } from "../../src/db/connect.ts";
import { transaction } from "../../src/db/transaction.ts";
import { entityId } from "../../src/entities/identity.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { mergeCandidates, mergingKind } from "../../src/metrics/merge.ts";
import { type MetricOptions, startMetrics } from "../../src/metrics/start.ts";
import type { StoredPoints } from "../../src/metrics/store.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { dimensions, mergeAll, put, stored, testStore } from "./points.ts";

const { sql } = await testDatabase();
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const config = { metricRetentionSec: 400 * 86_400, modelAgeSecMax: 86_400, aheadSecMax: 600, seriesMax: 1000 };
const quiet = { info() {}, warn: console.warn, error: console.error };
const start = (options: Partial<MetricOptions> = {}) =>
  startMetrics(sql, config, Date.now, quiet, { ...testStore(), ...options });

describe("a hook on points", () => {
  const alarms = (tenantId: string) => sql<{ payload: unknown }[]>`
    select payload from jobs where tenant_id = ${tenantId} and kind = 'alarm'`;
  const alarm = (tx: Db, tenantId: string, payload: unknown) =>
    enqueue(tx, { tenantId, kind: "alarm" }, [{ id: "one", payload }], Date.now());

  test("is handed the batch as columns, late points and all, and its rows are stored with it", async () => {
    const { id } = await testTenant(sql);
    const heard: { points: StoredPoints; nowMs: number }[] = [];
    const metrics = await start({
      async onPoints(tx, tenantId, points, nowMs) {
        heard.push({ points, nowMs });
        await alarm(tx, tenantId, { highest: Math.max(...points.values) });
      },
    });
    const nowMs = Date.now();
    const sent = [
      { metric: "cpu", timeMs: nowMs, value: 90 },
      { metric: "disk", timeMs: nowMs, value: 5 },
      { metric: "cpu", timeMs: nowMs - 23 * hourMs, value: 95 },
      { metric: "cpu", timeMs: nowMs, value: 91 },
    ];
    await put(sql, metrics.store, id, sent, nowMs);
    const [{ points, nowMs: toldMs }] = heard as [(typeof heard)[number]];
    expect(toldMs).toBe(nowMs);
    const series = points.seriesOf(() => true);
    const rows = [...points.series].map((number, i) => {
      const { metric, entityId: entity } = series.get(number) as { metric: string; entityId: Buffer };
      expect(entity).toEqual(entityId(id, dimensions));
      return { metric, timeMs: points.times[i], value: points.values[i] };
    });
    expect(rows).toEqual(sent);
    expect(await alarms(id)).toEqual([{ payload: { highest: 95 } }]);
    await metrics.stop();
  });

  test("that fails undoes the batch, and its own rows", async () => {
    const { id } = await testTenant(sql);
    const metrics = await start({
      async onPoints(tx, tenantId) {
        await alarm(tx, tenantId, {});
        throw new Error("the hook fails");
      },
    });
    const nowMs = Date.now();
    await expect(put(sql, metrics.store, id, [{ metric: "cpu", timeMs: nowMs, value: 1 }])).rejects.toThrow("the hook");
    expect(await stored(sql, id, nowMs - hourMs, nowMs + hourMs)).toEqual({});
    expect(await alarms(id)).toEqual([]);
    await metrics.stop();
  });
});

describe("the liveness of an entity", () => {
  const livenessOf = async (tenantId: string) => {
    const [row] = await sql<{ ms: number }[]>`
      select liveness_ms::float8 as ms from entities where tenant_id = ${tenantId} and id = ${entityId(tenantId, dimensions)}`;
    return row?.ms;
  };
  const minute = (timeMs: number) => timeMs - (timeMs % minuteMs);

  test("follows its newest point with the next writing, and does not go back", async () => {
    const { id } = await testTenant(sql);
    const metrics = await start({ livenessMs: 500 });
    const nowMs = Date.now();
    const send = (timeMs: number) => put(sql, metrics.store, id, [{ metric: "cpu", timeMs, value: 1 }], nowMs);
    await send(nowMs - hourMs);
    expect(await livenessOf(id)).toBe(minute(nowMs - hourMs));
    await send(nowMs);
    await send(nowMs - 2 * hourMs);
    await vi.waitFor(async () => expect(await livenessOf(id)).toBe(minute(nowMs)), { timeout: 10_000 });
    await send(nowMs - hourMs);
    await metrics.stop();
    expect(await livenessOf(id)).toBe(minute(nowMs));
  });

  test("is written when the server stops, not with the points, and not for an entity that was deleted", async () => {
    const { id } = await testTenant(sql);
    const deleted = await testTenant(sql);
    const metrics = await start();
    const nowMs = Date.now();
    for (const tenantId of [id, deleted.id])
      for (const timeMs of [nowMs - hourMs, nowMs])
        await put(sql, metrics.store, tenantId, [{ metric: "cpu", timeMs, value: 1 }], nowMs);
    expect(await livenessOf(id)).toBe(minute(nowMs - hourMs));
    await sql`update entities set deleted_ms = ${BigInt(nowMs)} where tenant_id = ${deleted.id}`;
    await metrics.stop();
    expect(await livenessOf(id)).toBe(minute(nowMs));
    expect(await livenessOf(deleted.id)).toBe(minute(nowMs - hourMs));
  });
});

describe("the job that merges", () => {
  const dueOf = async (tenantId: string) => {
    const [row] = await sql<{ ms: number; lane: number }[]>`
      select j.due_ms::float8 as ms, d.due_ms::float8 as lane from jobs j
      join due_work d on d.tenant_id = j.tenant_id and d.kind = j.kind
      where j.tenant_id = ${tenantId} and j.kind = 'metrics.merge'`;
    if (row === undefined) throw new Error("there is no such job");
    expect(row.lane).toBeLessThanOrEqual(row.ms);
    return row.ms;
  };
  /** As the worker does it. */
  const run = async (tenantId: string, nowMs: number) => {
    const job = { id: "head", payload: {}, size: 1, dueMs: nowMs, fence: 0n, failures: 0 };
    const [again] = await transaction(sql, (tx) =>
      mergingKind(config.metricRetentionSec).run(tx, tenantId, [job], nowMs),
    );
    await sql`
      update jobs set due_ms = ${BigInt(again?.dueMs ?? 0)} where tenant_id = ${tenantId} and kind = 'metrics.merge'`;
    return again?.dueMs ?? 0;
  };

  test("rests while a tenant sends nothing, and is called when it does", async () => {
    const { id } = await testTenant(sql);
    const metrics = await start({ hintMs: 500 });
    const nowMs = Date.now();
    const send = () => put(sql, metrics.store, id, [{ metric: "cpu", timeMs: nowMs, value: 1 }]);
    await send();
    expect(await dueOf(id)).toBeLessThan(nowMs + 10_000);
    // A few points wait in the head until they are an hour old.
    const restMs = (await run(id, Date.now())) - nowMs;
    expect(restMs).toBeGreaterThan(hourMs - minuteMs);
    expect(restMs).toBeLessThan(hourMs + minuteMs);
    await send();
    await vi.waitFor(async () => expect(await dueOf(id)).toBeLessThanOrEqual(Date.now()), { timeout: 10_000 });
    await metrics.stop();
    // An empty head: nothing to do but to look once an hour.
    await mergeAll(sql, id);
    expect(await run(id, nowMs)).toBe(nowMs + hourMs);
  });

  test("is called for a tenant although another one's hint fails", async () => {
    const { id } = await testTenant(sql);
    const metrics = await start();
    await put(sql, metrics.store, id, [{ metric: "cpu", timeMs: Date.now(), value: 1 }]);
    await metrics.stop();
    await run(id, Date.now());
    const hints = mergeCandidates(sql, Date.now);
    for (const tenantId of ["no tenant", id]) hints.note(tenantId);
    await hints.stop();
    expect(await dueOf(id)).toBeLessThanOrEqual(Date.now());
  });
});
