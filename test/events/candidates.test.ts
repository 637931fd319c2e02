import { create, type JsonObject } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import fc from "fast-check";
import { expect, test } from "vitest";
import { EventQuerySchema, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { readMatchers } from "../../src/clause/label-matcher.ts";
import { toPredicate } from "../../src/clause/to-predicate.ts";
import { paced, unpaced } from "../../src/event-loop.ts";
import { type MatchingOccurrences, matchingOccurrences, readQuery } from "../../src/events/matching.ts";
import { occurrenceIdText } from "../../src/events/occurrence-id.ts";
import { openAlerts } from "../../src/events/open-alerts.ts";
import { eventResolver } from "../../src/events/resolver.ts";
import { clauseOf } from "../clause/rows.ts";
import { cases, seed } from "../support/cases.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { clauses, fillEvents, keys, readEvents, words } from "./random-events.ts";

const server = await testServer();
const db = server.database.sql;
const tenant = await testTenant(db);

await fillEvents(db, tenant.id);
const rows = await readEvents(db, tenant.id);
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
