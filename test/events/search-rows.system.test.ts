import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { TriggerClauseSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { SetMatchingStatusRequestSchema } from "#gen/belfry/events/v1/management_service_pb.ts";
import {
  CountEventFrequencyRequestSchema,
  CountEventsRequestSchema,
  GroupEventsRequestSchema,
  SearchEventsRequestSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import { readMatchers } from "../../src/clause/label-matcher.ts";
import { compileTrigger } from "../../src/clause/trigger.ts";
import { paced } from "../../src/event-loop.ts";
import { countEventFrequency, countEvents } from "../../src/events/count.ts";
import { groupEvents } from "../../src/events/group.ts";
import { seenOccurrences } from "../../src/events/matching.ts";
import { openAlerts } from "../../src/events/open-alerts.ts";
import { searchEvents } from "../../src/events/search.ts";
import { toSet } from "../../src/events/set-matching-status.ts";
import { triggerFields } from "../../src/notifications/rules/rows.ts";
import { testDatabase } from "../support/database.ts";
import { estateMs, fillEstate } from "../support/event-estate.ts";
import { explained } from "../support/rows-read.ts";
import { sentStatements } from "../support/sent-statements.ts";
import type { RanStatement } from "../support/statement-log.ts";
import { testTenant } from "../support/tenant.ts";

const counts = { questions: 1, system: 1, ingest: 1, background: 1, sending: 1 };
const { sql } = await testDatabase({ poolConnectionsMax: 5, counts, statementTimeoutMs: 300_000 });
const signal = new AbortController().signal;
const day = 86_400_000;

/** A tenant with few and one with ten times as many hosts, each open once, and closed occurrences within a month. */
const [small, large] = [await testTenant(sql), await testTenant(sql)];
beforeAll(async () => {
  for (const table of ["entities", "events", "occurrences"])
    await sql.unsafe(`alter table "${table}" set (autovacuum_enabled = false)`);
  await fillEstate(sql, small.id, { hosts: 4000, closed: 20_000 });
  await fillEstate(sql, large.id, { hosts: 40_000, closed: 200_000 });
}, 900_000);

/** Rows of tables that were read; entries of indexes that stand for a row without it are not among them. */
async function rowsRead(question: () => Promise<unknown>): Promise<number> {
  const counter = async () => {
    await sql`select pg_stat_force_next_flush()`;
    const [row] = await sql<[{ rows: number }]>`
      select sum(pg_stat_get_tuples_fetched(oid) + case relkind when 'r' then pg_stat_get_tuples_returned(oid) else 0 end)::float8 as rows
      from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'i')`;
    return row.rows;
  };
  const before = await counter();
  await question();
  return (await counter()) - before;
}

type Question = (tenantId: string) => Promise<unknown>;

const equals = (field: string, value: unknown) => ({ filter: { field, operation: "OP_EQUALS", value } });
const month = { start: String(estateMs - 30 * day), end: String(estateMs + day) };
const search =
  (query: object): Question =>
  async (tenantId) => {
    const request = fromJson(SearchEventsRequestSchema, { query } as JsonObject);
    const { results, pageInfo } = await searchEvents(sql, tenantId, request, signal);
    return { found: results.length, total: pageInfo?.totalCount };
  };
const host = equals("dimensions.source", "host-7");

/** By what is asked; the answer is the same in both tenants, and not empty. */
const questions: Record<string, Question> = {
  "events of a host": search({ clause: host }),
  "of a severity": search({ clause: host, severities: ["SEVERITY_ERROR", "SEVERITY_CRITICAL", "SEVERITY_WARNING"] }),
  "within a month of closed occurrences": search({ clause: host, timeRange: month }),
  "open within that month, by overlap": search({
    clause: host,
    timeRange: month,
    statuses: ["STATUS_OPEN"],
    activeCriteria: "BY_OVERLAP",
  }),
  "a bare dimension": search({ clause: equals("source", "host-7") }),
  "dimensions of several hosts": search({
    clause: { in: { field: "dimensions.source", values: ["host-7", "host-9"] } },
  }),
  "a core property": search({ clause: equals("coreProperties.device", "device-7") }),
  "the name as a core property": search({ clause: equals("coreProperties.name", "Machine 7") }),
  "an entity's name": search({ clause: equals("entityName", "Machine 7") }),
  "a name": search({ clause: equals("name", "event 7") }),
  "the beginning of a key": search({
    clause: { filter: { field: "dedupKey", operation: "OP_STARTS_WITH", value: "key 399." } },
    pageInput: { limit: 1 },
  }),
  "a key": search({ clause: equals("dedupKey", "key 7.") }),
  "a type": search({ clause: equals("type", "type 7") }),
  metadata: search({ clause: equals("metadataFields.ticket", "T-8") }),
  "a list in the metadata": search({ clause: equals("metadataFields.tags", "tag-8") }),
  "bare metadata": search({ clause: equals("ticket", "T-8") }),
  "a label of a dimension": search({ clause: equals("labels.source", "host-8") }),
  "a label of the metadata": search({ clause: equals("labels.ticket", "T-8") }),
  "a label of an alert": search({ clause: equals("labels.pod", "pod-7") }),
  "a label that is the name": search({ clause: equals("labels.alertname", "event 8") }),
  "one or the other": search({
    clause: {
      or: {
        clauses: [
          equals("name", "event 7"),
          { and: { clauses: [equals("dimensions.zone", "z2"), equals("dimensions.source", "host-9")] } },
        ],
      },
    },
  }),
  "what was seen in an hour": search({
    clause: { range: { path: "lastSeen", gte: estateMs - 1_800_000 } },
    statuses: ["STATUS_OPEN"],
  }),
  "what began in an hour": search({
    clause: { range: { path: "startTime", gte: estateMs - 1_800_000 } },
    statuses: ["STATUS_OPEN"],
  }),
  "the newest of a host's zone": search({
    clause: equals("dimensions.zone", "z1"),
    statuses: ["STATUS_OPEN"],
    pageInput: { limit: 20 },
  }),
  "the count of a host": async (tenantId) => {
    const request = fromJson(CountEventsRequestSchema, {
      query: { clause: host },
      fields: [{ field: "severity" }],
    } as JsonObject);
    return (await countEvents(sql, tenantId, request, signal)).results.severity?.values.length;
  },
  "the frequency of a host": async (tenantId) => {
    const query = { clause: host, timeRange: month };
    const request = fromJson(CountEventFrequencyRequestSchema, { query, downsample: String(day) } as JsonObject);
    return (await countEventFrequency(sql, tenantId, request, signal)).results.total?.values.length;
  },
  "the groups of a host": async (tenantId) => {
    const request = fromJson(GroupEventsRequestSchema, {
      query: { clause: host },
      labels: ["alertname"],
    } as JsonObject);
    return (await groupEvents(sql, tenantId, request, signal)).totalCount;
  },
  "what a change of a host's would change": async (tenantId) => {
    const request = fromJson(SetMatchingStatusRequestSchema, {
      query: { clause: host },
      acknowledged: true,
    } as JsonObject);
    return (await toSet(sql, tenantId, request, signal)).keys.length;
  },
  "alerts by a label": async (tenantId) => {
    const matchers = readMatchers(["source=host-8", "ticket=~T-.*"], "filter");
    let count = 0;
    for await (const page of openAlerts(sql, tenantId, { matchers, path: "filter", pace: paced() }))
      count += page.length;
    return count;
  },
  "what a trigger of a host would have matched": async (tenantId) => {
    const clause = fromJson(TriggerClauseSchema, {
      equals: { field: "dimensions.source", value: { stringVal: "HOST-8" } },
    });
    const compiled = compileTrigger(clause, "clause", triggerFields(tenantId, "").events);
    const { start } = month;
    return (
      await seenOccurrences(
        sql,
        tenantId,
        { start: BigInt(start) } as never,
        { clause: compiled.clause, most: 50_001 },
        signal,
      )
    ).length;
  },
};

async function held(name: string, question: Question) {
  const answers = [await question(small.id), await question(large.id)];
  expect(answers[1], name).toEqual(answers[0]);
  expect(answers[0]).toBeTruthy();
  const [few, many] = [await rowsRead(() => question(small.id)), await rowsRead(() => question(large.id))];
  expect(few, "rows that were counted").toBeGreaterThan(0);
  expect(many, `${few} rows of few`).toBeLessThan(2 * few + 50);
}

describe("reads no more of ten times as much, on tables that PostgreSQL has never analysed", () => {
  test.each(Object.keys(questions))("%s", async (name) => held(name, questions[name] as Question));
});

describe("and on those that it has", () => {
  beforeAll(async () => {
    for (const table of ["entities", "events", "occurrences"]) await sql.unsafe(`vacuum analyze ${table}`);
  }, 300_000);
  test.each(Object.keys(questions))("%s", async (name) => held(name, questions[name] as Question));

  test("the newest events are met on a walk, and their total is that of the primary key alone", async () => {
    const newest = search({ pageInput: { limit: 20 } });
    const [few, many] = [await rowsRead(() => newest(small.id)), await rowsRead(() => newest(large.id))];
    expect(many).toBeLessThan(2 * few + 50);
    expect(many).toBeLessThan(1000);
    const sent = await sentStatements(large.id, () => newest(large.id));
    const counting = sent.filter(({ text }) => text.includes("select distinct o.event_id"));
    expect(counting).toHaveLength(1);
    expect(await explained(sql, counting[0] as RanStatement, large.id)).toMatch(
      /Index Only Scan using occurrences_tenant_id_event_id_number_pk on occurrences o/,
    );
  });
});
