import { expect, test } from "vitest";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({}, { statementTimeoutMs: 300_000, deadlineMsMax: 300_000 });
const db = server.database.sql;
const { id: tenantId, headers } = await testTenant(db);
const call = v1(server.url, headers);

const labels = ["alertname", "instance", "job", "cluster", "zone"];

const slice = 20_000;

/** Opens occurrences, each with metadata of half a KiB that hold the labels. */
async function open(count: number) {
  const nowMs = BigInt(Date.now());
  await db`
    insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    select ${tenantId}, sha256(i::text::bytea), 'host ' || i, jsonb_build_object('host', i), '{}', ${nowMs}, ${nowMs}, ${nowMs}
    from generate_series(1, 1000) as i`;
  await db`
    insert into events (tenant_id, id, entity_id, name)
    select ${tenantId}, sha256(('event ' || i)::bytea), sha256((i % 1000 + 1)::text::bytea), 'down ' || i % 50
    from generate_series(1, ${count}::int) as i`;
  for (let from = 1; from <= count; from += slice)
    await db`
    insert into occurrences (
      tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms, last_seen_ms, instance_count
    )
    select ${tenantId}, sha256(('event ' || i)::bytea), 1, 5, 1, false, '', '', '',
      jsonb_build_object('text', (select string_agg(md5(i || ' ' || k), '') from generate_series(1, 16) as k),
        'instance', 'host ' || i % 1000, 'job', 'node', 'cluster', i % 10, 'zone', i % 3 = 0),
      1, i, 1
    from generate_series(${from}::int, ${from + slice - 1}::int) as i`;
}

test("200,000 open occurrences are grouped by five labels", async () => {
  await open(200_000);
  const answer = await call("POST", "/v1/events:group", { query: { statuses: ["STATUS_OPEN"] }, labels, pageSize: 5 });
  expect(answer).toMatchObject({ status: 200, body: { totalCount: "2000" } });
}, 600_000);
