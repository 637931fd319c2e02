import { create, type JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Clause } from "#gen/belfry/clause/v1/clause_pb.ts";
import { SearchEventsRequestSchema, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { toPredicate } from "../../src/clause/to-predicate.ts";
import { idText } from "../../src/entities/identity.ts";
import { unpaced } from "../../src/event-loop.ts";
import type { EventRow } from "../../src/events/fields.ts";
import { eventResolver } from "../../src/events/resolver.ts";
import { searchEvents } from "../../src/events/search.ts";
import { clauseOf } from "../clause/rows.ts";
import { cases, seed } from "../support/cases.ts";
import { testDatabase } from "../support/database.ts";
import { testTenant } from "../support/tenant.ts";
import { clauses, fillEvents, readEvents, words } from "./random-events.ts";

const { sql: db } = await testDatabase();
const tenant = await testTenant(db);
await fillEvents(db, tenant.id);
const signal = new AbortController().signal;

/** What happens to an event between two pages: it is seen at another time, changed, closed or reopened, opened once more, or loses that again. */
const changes = fc.record({
  place: fc.nat(59),
  kind: fc.constantFrom("seen", "changed", "closed", "opened", "removed"),
  text: fc.constantFrom(...words),
  seenMs: fc.nat(20).map((slot) => 1_700_000_000_000 + slot * 100_000),
});
type Change = typeof changes extends fc.Arbitrary<infer T> ? T : never;

async function apply(id: Buffer, { kind, text, seenMs }: Change): Promise<void> {
  const first = db`tenant_id = ${tenant.id} and event_id = ${id} and number = 1`;
  switch (kind) {
    case "seen":
      return void (await db`update occurrences set last_seen_ms = ${seenMs}::int8, start_ms = ${seenMs}::int8 - 1000 where ${first}`);
    case "changed":
      return void (await db`
        update occurrences set type = ${text}, metadata = jsonb_build_object('zone', ${text}::text), severity = 6 - severity where ${first}`);
    case "closed":
      return void (await db`
        update occurrences set status = 4 - status, end_ms = case when status = 3 then null else last_seen_ms end
        where ${first} and status in (1, 3)`);
    case "opened":
      return void (await db`
        insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata, start_ms,
          last_seen_ms, end_ms, instance_count)
        values (${tenant.id}, ${id}, 3, 3, 3, false, ${text}, ${text}, '', '{}', ${seenMs}::int8 - 1000, ${seenMs}::int8, ${seenMs}::int8, 1)
        on conflict do nothing`);
    case "removed":
      return void (await db`delete from occurrences where tenant_id = ${tenant.id} and event_id = ${id} and number = 3`);
  }
}

/** The events that a clause matches, by the first of their matching occurrences. */
function matchingEvents(rows: readonly EventRow[], clause: Clause, order: SortOrder): string[] {
  const matches = toPredicate(clause, "clause", eventResolver(tenant.id));
  const sign = order === SortOrder.DESC ? -1 : 1;
  const ordered = rows
    .filter((row) => matches(row, unpaced) === true)
    .sort((a, b) => sign * Number(a.last_seen_ms - b.last_seen_ms) || Buffer.compare(a.event_id, b.event_id));
  return [...new Set(ordered.map((row) => idText(row.event_id)))];
}

/** The ids on all pages; `between` runs after each. */
async function readPages(clause: Clause, order: SortOrder, limit: number, between: () => Promise<void>) {
  const ids: string[] = [];
  for (let cursor = ""; ; ) {
    const sortBy = [{ byField: { field: "lastSeen", order } }];
    const request = create(SearchEventsRequestSchema, { query: { clause, sortBy, pageInput: { limit, cursor } } });
    const { results, pageInfo } = await searchEvents(db, tenant.id, request, signal);
    ids.push(...results.map(({ id }) => id));
    if (!pageInfo?.hasNext) return ids;
    await between();
    cursor = pageInfo.endCursor;
  }
}

test(`pages neither repeat nor lose an event that stays as it is while others change (seed ${seed})`, {
  timeout: 300_000,
}, async () => {
  const events = [...new Map((await readEvents(db, tenant.id)).map((row) => [idText(row.event_id), row.event_id]))];
  const runs = cases(100);
  const asked = fc.record({
    clause: clauses,
    limit: fc.integer({ min: 1, max: 9 }),
    order: fc.constantFrom(SortOrder.DESC, SortOrder.ASC),
  });
  const happening = fc.sample(changes, { numRuns: 60 * runs, seed })[Symbol.iterator]();
  let [answered, changed] = [0, 0];
  for (const { clause: json, limit, order } of fc.sample(asked, { numRuns: runs, seed })) {
    const clause = clauseOf(json as JsonObject);
    const wanted = matchingEvents(await readEvents(db, tenant.id), clause, order);
    const touched = new Set<string>();
    const ids = await readPages(clause, order, limit, async () => {
      const change = happening.next().value as Change;
      const [id, bytes] = events[change.place] as [string, Buffer];
      touched.add(id);
      await apply(bytes, change);
    });
    const isUntouched = (id: string) => !touched.has(id);
    expect(ids.filter(isUntouched), JSON.stringify(json)).toEqual(wanted.filter(isUntouched));
    answered += ids.length;
    changed += touched.size;
  }
  expect(answered).toBeGreaterThan(runs);
  expect(changed).toBeGreaterThan(runs / 2);
});
