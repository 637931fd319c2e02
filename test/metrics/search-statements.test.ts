import { fromJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SearchMetricsRequestSchema } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { createTenant } from "../../src/auth/create-tenant.ts";
import { entityId } from "../../src/entities/identity.ts";
import { searchMetrics } from "../../src/metrics/search.ts";
import { testDatabase } from "../support/database.ts";

const sent: string[] = [];
const { sql } = await testDatabase({
  debug: (_connection, statement) => sent.push(statement.replaceAll(/\s+/g, " ").trim()),
});
const never = new AbortController().signal;

test("a search of one series by its name waits for PostgreSQL twice, and reads the one series", async () => {
  const { id, name } = await createTenant(sql, "two trips");
  const dimensions = { source: "host" };
  const entity = entityId(id, dimensions);
  await sql`
    insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
    values (${id}, ${entity}, 'host', ${sql.json(dimensions)}, '{}', 1, 1, 1)`;
  await sql`
    insert into series (tenant_id, number, entity_id, metric, units, description, created_ms)
    select ${id}::uuid, n, ${entity}::bytea, 'm' || n, '', '', 1 from generate_series(1, 100) as n`;
  const equals = (field: string, value: string) => ({ filter: { field, operation: "OP_EQUALS", value } });
  const request = fromJson(SearchMetricsRequestSchema, {
    entityClause: equals("source", "host"),
    metricClause: equals("name", "m7"),
    timeRange: { start: "2026-01-01T00:00:00Z", end: "2026-01-02T00:00:00Z" },
    downsample: { aggregator: "MEAN", period: "1h" },
  });
  sent.length = 0;
  const { metrics } = await searchMetrics(sql, { id, name }, request, never);
  expect(metrics.map((each) => each.name)).toEqual(["m7"]);
  // The last two are sent at once.
  expect(sent).toEqual([
    expect.stringMatching(/^select entity\.id .* metric = \$/),
    expect.stringMatching(/^with chunks as/),
    expect.stringMatching(/^select "name", "entry" from "dictionary_entries"/),
  ]);
});
