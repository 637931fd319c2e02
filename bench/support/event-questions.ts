import { create } from "@bufbuild/protobuf";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import {
  CountEventFrequencyRequestSchema,
  CountEventsRequestSchema,
  SearchEventsRequestSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { textArray } from "../../src/db/batch.ts";
import type { Db, Sql } from "../../src/db/connect.ts";
import { countEventFrequency, countEvents } from "../../src/events/count.ts";
import { searchEvents } from "../../src/events/search.ts";

/** A question of the API beside a statement that a person would write for it. */
export interface EventQuestion {
  name: string;
  /** What the API promises, ms. */
  aimMs: number;
  /** The service's function; returns how many results there are. */
  service(db: Db, endMs: bigint): Promise<number>;
  /** The same, put directly: rows as the driver reads them. */
  direct(sql: Sql, endMs: bigint): Promise<number>;
}

const hourMs = 3_600_000n;
const dayMs = 24n * hourMs;
const fiveMinutesMs = 300_000n;
const names = ["link down", "disk full", "crash loop", "unreachable", "volume offline"];
const severe = [Severity.ERROR, Severity.CRITICAL];
const never = new AbortController().signal;
const bySeverity = [{ field: "severity" }];
const bySeverityAndStatus = [{ field: "severity" }, { field: "status" }];

/** The questions about a tenant's events; each asks about a time that ends at `endMs`. */
export function eventQuestions(tenantId: string): EventQuestion[] {
  const range = (endMs: bigint, lengthMs: bigint) => ({ timeRange: { start: endMs - lengthMs, end: endMs } });
  return [
    {
      name: "search, the last hour by severity and clause",
      aimMs: 15,
      async service(db, endMs) {
        const clauses = names.map((name) => ({
          filter: {
            field: "name",
            operation: Operation.OP_EQUALS,
            value: { kind: { case: "stringValue" as const, value: name } },
          },
        }));
        const query = { ...range(endMs, hourMs), severities: severe, clause: { anyOf: { clauses } } };
        const { results } = await searchEvents(db, tenantId, create(SearchEventsRequestSchema, { query }), never);
        return results.reduce((sum, { occurrences }) => sum + occurrences.length, 0);
      },
      async direct(sql, endMs) {
        // The page's events, then their occurrences.
        const rows = await sql`
          with found as (
            select o.*, e.name, e.entity_id from occurrences o
              join events e on e.tenant_id = ${tenantId} and e.id = o.event_id
            where o.tenant_id = ${tenantId} and o.seen_slot between ${(endMs - hourMs) / fiveMinutesMs} and ${endMs / fiveMinutesMs}
              and o.last_seen_ms >= ${endMs - hourMs} and o.last_seen_ms < ${endMs}
              and o.severity in (4, 5) and lower(e.name) = any(${textArray(names)}::text[])
          ), page as (
            select event_id, max(last_seen_ms) as last_ms from found group by event_id order by 2 desc, 1 limit 100
          )
          select found.*, n.name as entity_name, n.dimensions, n.metadata as entity_metadata
          from page join found using (event_id)
            join entities n on n.tenant_id = ${tenantId} and n.id = found.entity_id
          order by page.last_ms desc, event_id, found.last_seen_ms desc`;
        return rows.length;
      },
    },
    {
      name: "count by severity and status, a day",
      aimMs: 50,
      async service(db, endMs) {
        const request = create(CountEventsRequestSchema, { query: range(endMs, dayMs), fields: bySeverityAndStatus });
        return resultsOf(await countEvents(db, tenantId, request, never));
      },
      async direct(sql, endMs) {
        const rows = await sql`
          select severity, status, count(*) from occurrences
          where tenant_id = ${tenantId} and seen_slot between ${(endMs - dayMs) / fiveMinutesMs} and ${endMs / fiveMinutesMs}
            and last_seen_ms >= ${endMs - dayMs} and last_seen_ms < ${endMs}
          group by grouping sets (severity, status)`;
        return rows.length;
      },
    },
    {
      name: "frequency by severity, a day by 5 minutes",
      aimMs: 150,
      async service(db, endMs) {
        const request = create(CountEventFrequencyRequestSchema, {
          query: range(endMs, dayMs),
          fields: bySeverity,
          downsample: fiveMinutesMs,
        });
        return resultsOf(await countEventFrequency(db, tenantId, request, never));
      },
      async direct(sql, endMs) {
        const rows = await sql<{ severity: number }[]>`
          select last_seen_ms / ${fiveMinutesMs}::int8 as bucket, severity, count(*) from occurrences
          where tenant_id = ${tenantId} and seen_slot between ${(endMs - dayMs) / fiveMinutesMs} and ${endMs / fiveMinutesMs}
            and last_seen_ms >= ${endMs - dayMs} and last_seen_ms < ${endMs}
          group by 1, 2`;
        return new Set(rows.map(({ severity }) => severity)).size;
      },
    },
    {
      name: "instances counted by severity and status, a day",
      aimMs: 300,
      async service(db, endMs) {
        const request = create(CountEventsRequestSchema, {
          query: range(endMs, dayMs),
          fields: bySeverityAndStatus,
          countInstances: true,
        });
        return resultsOf(await countEvents(db, tenantId, request, never));
      },
      async direct(sql, endMs) {
        const rows = await sql`
          select severity, status, count(*) from instances
          where tenant_id = ${tenantId} and time_ms >= ${endMs - dayMs} and time_ms < ${endMs}
          group by grouping sets (severity, status)`;
        return rows.length;
      },
    },
    {
      name: "frequency of instances by severity, a day by 5 minutes",
      aimMs: 300,
      async service(db, endMs) {
        const request = create(CountEventFrequencyRequestSchema, {
          query: range(endMs, dayMs),
          fields: bySeverity,
          downsample: fiveMinutesMs,
          countInstances: true,
        });
        return resultsOf(await countEventFrequency(db, tenantId, request, never));
      },
      async direct(sql, endMs) {
        const rows = await sql<{ severity: number }[]>`
          select time_ms / ${fiveMinutesMs}::int8 as bucket, severity, count(*) from instances
          where tenant_id = ${tenantId} and time_ms >= ${endMs - dayMs} and time_ms < ${endMs}
          group by 1, 2`;
        return new Set(rows.map(({ severity }) => severity)).size;
      },
    },
  ];
}

const resultsOf = ({ results }: { results: Record<string, { values: readonly unknown[] }> }) =>
  Object.values(results).reduce((sum, { values }) => sum + values.length, 0);
