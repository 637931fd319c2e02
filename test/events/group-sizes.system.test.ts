import { existsSync, readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQuerySchema, GroupEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../../src/db/connect.ts";
import { groupEvents } from "../../src/events/group.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";

const db = (await testDatabase()).sql;
const { id: tenantId } = await testTenant(db);
const labels = ["alertname", "instance", "job", "cluster", "zone"];
const count = 42_000;
const perInsert = 6000;

/** Opens occurrences, each with metadata of 4 KiB that hold labels. */
async function open() {
  await db`
    insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    select ${tenantId}, sha256(i::text::bytea), 'host ' || i, jsonb_build_object('host', i::text), '{}', 0, 0, 0
    from generate_series(1, 1000) as i`;
  for (let from = 1; from <= count; from += perInsert) {
    const numbers = db`generate_series(${from}::int, ${from + perInsert - 1}::int) as i`;
    await db`
      insert into events (tenant_id, id, entity_id, name)
      select ${tenantId}, sha256(('event ' || i)::bytea), sha256((i % 1000 + 1)::text::bytea), 'down ' || i % 50 from ${numbers}`;
    await db`
      insert into occurrences (
        tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms, last_seen_ms, instance_count
      )
      select ${tenantId}, sha256(('event ' || i)::bytea), 1, 5, 1, false, '', '', '',
        jsonb_build_object('text', (select string_agg(md5(i || ' ' || k), '') from generate_series(1, 128) as k),
          'instance', 'host ' || i % 1000, 'job', 'node', 'cluster', i % 10, 'zone', i % 3 = 0),
        1, i, 1
      from ${numbers}`;
  }
}

/** The processor time of a connection's backend, ms: fields 14 and 15 of proc(5), in ticks of 10 ms. */
async function backendMs(tx: Db) {
  const [{ pid } = { pid: 0 }] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const [, rest = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const fields = rest.split(" ").map(Number);
  return 10 * ((fields[11] ?? 0) + (fields[12] ?? 0));
}

test.runIf(existsSync("/proc/self/stat"))(
  "42,000 open occurrences with large metadata are grouped by five labels within 4 s of the processor",
  async () => {
    await open();
    const query = create(EventQuerySchema, { statuses: [Status.OPEN] });
    const request = create(GroupEventsRequestSchema, { query, labels, pageSize: 5 });
    await db.begin(async (tx) => {
      await tx`set local statement_timeout = '120s'`;
      const before = await backendMs(tx as unknown as Db);
      const { totalCount } = await groupEvents(tx as unknown as Db, tenantId, request, new AbortController().signal);
      const ms = (await backendMs(tx as unknown as Db)) - before;
      expect(totalCount).toBe(2000n);
      expect(ms).toBeLessThan(4000);
    });
  },
);
