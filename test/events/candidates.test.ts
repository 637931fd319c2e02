import { create, type JsonObject } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import fc from "fast-check";
import { expect, test } from "vitest";
import { EventQuerySchema, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { readMatchers } from "../../src/clause/label-matcher.ts";
import { toPredicate } from "../../src/clause/to-predicate.ts";
import { paced, unpaced } from "../../src/event-loop.ts";
import type { EventRow } from "../../src/events/fields.ts";
import { identityColumns } from "../../src/events/fields.ts";
import { type MatchingOccurrences, matchingOccurrences, readQuery } from "../../src/events/matching.ts";
import { occurrenceIdText } from "../../src/events/occurrence-id.ts";
import { openAlerts } from "../../src/events/open-alerts.ts";
import { eventResolver } from "../../src/events/resolver.ts";
import { eventAndEntity, occurrenceColumns } from "../../src/events/rows.ts";
import { clauseOf } from "../clause/rows.ts";
import { cases, seed } from "../support/cases.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer();
const db = server.database.sql;
const tenant = await testTenant(db);

/** Yesterday: what is older than it is kept goes while the test runs. */
const baseMs = Date.now() - 86_400_000;

// Few values, so that most of what is asked for is there, in several places and spellings.
const words = ["a", "A", "7", "7.0", "true", "a b", 'q"uo\\te', "ä"];
const keys = ["source", "zone", "type", "label.zone", "labels.zone", "alertname", "severity"];
const word = fc.constantFrom(...words);
const values = fc.oneof(
  word,
  fc.constantFrom<unknown>(7, true, null),
  fc.array(fc.oneof(word, fc.constant(7)), { maxLength: 2 }),
);
const estates = fc.array(
  fc.record({
    dimensions: fc.dictionary(fc.constantFrom("source", "zone", "labels.zone"), word, { minKeys: 1, maxKeys: 2 }),
    name: word,
    dedupKey: fc.oneof(word, fc.constant(null)),
    labels: fc.oneof(fc.dictionary(fc.constantFrom(...keys), word), fc.constant(null)),
    type: fc.oneof(word, fc.constant("alert")),
    severity: fc.nat(5),
    closed: fc.boolean(),
    deleted: fc.boolean(),
    metadata: fc.dictionary(fc.constantFrom(...keys), values),
    seenMs: fc.nat(9).map((slot) => baseMs + slot * 200_000),
  }),
  { minLength: 60, maxLength: 60 },
);

const plainFields =
  `id name dedupKey type severity status entityName lastSeen startTime endTime summary coreProperties.name
  coreProperties.source`.split(/\s+/);
const fields = plainFields.concat(
  keys.flatMap((key) => [key, `dimensions.${key}`, `metadataFields.${key}`, `labels.${key}`]),
);
const asked = fc.oneof(word, fc.constantFrom<unknown>(7, 3, true, baseMs + 400_000));
const isEnumeration = (field: string) => field === "severity" || field === "status";
const leaf = fc.oneof(
  fc
    .record({
      field: fc.constantFrom(...fields),
      operation: fc.constantFrom(
        "OP_EQUALS",
        "OP_NOT_EQUALS",
        "OP_STARTS_WITH",
        "OP_CONTAINS",
        "OP_GREATER",
        "OP_EXISTS",
      ),
      value: asked,
    })
    .map(({ field, operation, value }) => {
      if (operation === "OP_EXISTS") return { filter: { field, operation } };
      const isText = operation === "OP_STARTS_WITH" || operation === "OP_CONTAINS";
      const fitting = isText ? String(value) : typeof value === "boolean" && operation === "OP_GREATER" ? 3 : value;
      return { filter: { field, operation, value: isEnumeration(field) && !isText ? 3 : fitting } };
    }),
  fc
    .record({
      field: fc.constantFrom(...fields.filter((field) => !isEnumeration(field))),
      values: fc.array(asked, { maxLength: 3 }),
    })
    .map((of) => ({ in: of })),
);
const clauses = fc.letrec<{ clause: object }>((tie) => ({
  clause: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie("clause"), { minLength: 1, maxLength: 3 }).map((of) => ({ and: { clauses: of } })),
    fc.array(tie("clause"), { minLength: 1, maxLength: 3 }).map((of) => ({ or: { clauses: of } })),
    tie("clause").map((clause) => ({ not: { clause } })),
  ),
})).clause;

async function fill(): Promise<void> {
  const rows = fc.sample(estates, { numRuns: 1, seed })[0] ?? [];
  const texts = JSON.stringify(
    rows.map((row, i) => ({ ...row, entity: `${i % 40}`.padStart(40, "0"), event: `${i}`.padStart(40, "e") })),
  );
  const row = db`jsonb_to_recordset(${texts}::text::jsonb) as row (dimensions jsonb, name text, "dedupKey" text, labels jsonb, type text,
    severity int2, closed bool, deleted bool, metadata jsonb, "seenMs" int8, entity text, event text)`;
  await db`insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms, deleted_ms)
    select distinct on (entity) ${tenant.id}::uuid, decode(entity, 'hex'), name, dimensions, '{}'::jsonb, 0, 0, 0,
      case when deleted then 1 end
    from ${row}`;
  await db`insert into events (tenant_id, id, entity_id, name, dedup_key, alert_labels)
    select ${tenant.id}::uuid, decode(event, 'hex'), decode(entity, 'hex'), name, "dedupKey", nullif(labels, 'null')::json from ${row}`;
  await db`insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
      last_seen_ms, end_ms, instance_count)
    select ${tenant.id}::uuid, decode(event, 'hex'), 1, severity, case when closed then 3 else 1 end, false, type, name, '', metadata,
      "seenMs" - 1000, "seenMs", case when closed then "seenMs" end, 1
    from ${row}`;
  // Of some events an earlier one, in the midst of those of others.
  await db`insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
      last_seen_ms, end_ms, instance_count)
    select ${tenant.id}::uuid, decode(event, 'hex'), 2, severity, 3, false, type, name, '', metadata, "seenMs" - 701000,
      "seenMs" - 700000, "seenMs" - 700000, 1
    from ${row} where event ~ '[2-6]$'`;
}
await fill();
const rows = (await db<EventRow[]>`
  select ${occurrenceColumns(db)}, ${identityColumns(db)}, 1::int8 as count
  from occurrences o ${eventAndEntity(db, tenant.id)} where o.tenant_id = ${tenant.id}`) as unknown as EventRow[];
const idOf = (row: { event_id: Buffer; number: number }) => occurrenceIdText(row.event_id, row.number);

const found = async ({ from, where }: MatchingOccurrences) => {
  const keys = await db<
    { event_id: Buffer; number: number }[]
  >`select o.event_id, o.number from ${from} where ${where}`;
  return keys.map(idOf).sort();
};

test(`candidates, all occurrences and memory answer clauses alike (seed ${seed})`, { timeout: 300_000 }, async () => {
  let matched = 0;
  for (const clause of fc.sample(clauses, { numRuns: cases(300), seed })) {
    const query = create(EventQuerySchema, { clause: clauseOf(clause as JsonObject) });
    const matches = toPredicate(clauseOf(clause as JsonObject), "clause", eventResolver(tenant.id));
    const wanted = rows
      .filter((row) => matches(row, unpaced) === true)
      .map(idOf)
      .sort();
    const message = JSON.stringify(clause);
    expect(await found(await matchingOccurrences(db, tenant.id, query, "query")), message).toEqual(wanted);
    expect(await found(readQuery(db, tenant.id, query, "query").all()), message).toEqual(wanted);
    matched += wanted.length;
  }
  expect(matched).toBeGreaterThan(0);
});

test("an equality of a label finds the alerts that all of them are compared with", async () => {
  const all: { id: string; labels: Readonly<Record<string, string>> }[] = [];
  const read = async (matchers: readonly string[]) => {
    const list: typeof all = [];
    for await (const page of openAlerts(db, tenant.id, {
      matchers: readMatchers(matchers, "filter"),
      path: "filter",
      pace: paced(),
    }))
      for (const { event, occurrence, labels } of page)
        list.push({ id: occurrenceIdText(event.id, occurrence.number), labels });
    return list;
  };
  all.push(...(await read([])));
  let matched = 0;
  for (const name of keys)
    for (const value of [...words, "warning"]) {
      const wanted = all.filter(({ labels }) => Object.hasOwn(labels, name) && labels[name] === value);
      const ids = (await read([`"${name}"=${JSON.stringify(value)}`])).map(({ id }) => id);
      expect(ids, `${name}=${value}`).toEqual(wanted.map(({ id }) => id));
      matched += ids.length;
    }
  expect(matched).toBeGreaterThan(50);
});

test("pages of the newest events are those of all of them, in one order", async () => {
  const events = createClient(EventQueryService, transport(server.target, "grpc", tenant.headers));
  const ids: string[] = [];
  for (let cursor = ""; ; ) {
    const { results, pageInfo } = await events.searchEvents({ query: { pageInput: { limit: 7, cursor } } });
    ids.push(...results.map(({ id }) => id));
    expect(pageInfo?.totalCount).toBe(60n);
    if (!pageInfo?.hasNext) break;
    cursor = pageInfo.endCursor;
  }
  const ordered = rows.toSorted(
    (a, b) => Number(b.last_seen_ms - a.last_seen_ms) || Buffer.compare(a.event_id, b.event_id),
  );
  expect(ids).toEqual([...new Set(ordered.map((row) => idOf(row).replace(/:\d+$/, "")))]);
});
