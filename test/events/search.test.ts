import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { toPredicate } from "../../src/clause/to-predicate.ts";
import { idText } from "../../src/entities/identity.ts";
import { unpaced } from "../../src/event-loop.ts";
import type { EventRow } from "../../src/events/fields.ts";
import { occurrenceIdText } from "../../src/events/occurrence-id.ts";
import { eventResolver } from "../../src/events/resolver.ts";
import { eventAndEntity, occurrenceColumns } from "../../src/events/rows.ts";
import { clauseOf } from "../clause/rows.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";

const server = await testServer({});
const db = server.database.sql;
const tenant = await testTenant(db);
const grpc = transport(server.target, "grpc", tenant.headers);
const receiver = createClient(DataReceiverService, grpc);
const events = createClient(EventQueryService, grpc);

const [DEFAULT, OPEN, CLOSED] = [0, 1, 3];
const [WARNING, ERROR, CRITICAL] = [3, 4, 5];
const base = BigInt(Date.now()) - 100_000n;
const at = (seconds: number) => base + BigInt(seconds) * 1000n;
const web = { source: "web-1", zone: "a" };
const database = { source: "db-1", zone: "b" };

await receiver.putModels({
  models: [
    {
      timestamp: base,
      dimensions: web,
      metadataFields: { name: "Web One", device: ["w1", "w2"], _orgs_location: "/Rome", type: "Host" },
    },
    { timestamp: base, dimensions: database, metadataFields: { name: "Datenbank Ä", device: "d1" } },
  ],
});
const sent = [
  {
    name: "disk full",
    dimensions: web,
    timestamp: at(1),
    severity: ERROR,
    status: OPEN,
    type: "disk",
    summary: "95 % used",
    metadataFields: { mount: "/var", used: 95, tags: ["io", 7] },
  },
  { name: "disk full", dimensions: web, timestamp: at(2), severity: ERROR, status: CLOSED },
  {
    name: "disk full",
    dimensions: web,
    timestamp: at(3),
    severity: CRITICAL,
    status: OPEN,
    acknowledged: true,
    metadataFields: { mount: "/home", used: "99.0" },
  },
  {
    name: "disk full",
    dimensions: web,
    timestamp: at(4),
    severity: CRITICAL,
    status: OPEN,
    metadataFields: { mount: "/home", used: "99.0" },
  },
  {
    name: "down",
    dimensions: database,
    timestamp: at(5),
    severity: WARNING,
    status: DEFAULT,
    body: "no answer\nfor 10 s",
    metadataFields: { source: "not this one", rack: "r7" },
  },
  { name: "Down again", dimensions: { source: "lonely" }, timestamp: at(6) },
];
for (const event of sent) await receiver.putEvents({ events: [event as never] });

/** Another tenant, with this many events that the planner prefers indexes where they help. */
const crowded = await testTenant(db);
const many = db`generate_series(1, 20000) as i, lateral (select decode(left(md5(i::text) || md5((-i)::text), 40), 'hex')) as made(id)`;
await db`insert into entities (tenant_id, id, name, dimensions, metadata, created_ms, updated_ms, liveness_ms)
  select ${crowded.id}::uuid, id, 'Host ' || i, jsonb_build_object('source', 'host-' || i), '{}', 0, 0, ${Date.now()} from ${many}`;
await db`insert into events (tenant_id, id, entity_id, name)
  select ${crowded.id}::uuid, id, id, 'event ' || i % 1000 from ${many}`;
await db`insert into occurrences (tenant_id, event_id, number, severity, status, acknowledged, type, summary, body, metadata,
    start_ms, last_seen_ms, instance_count)
  select ${crowded.id}::uuid, id, 1, 4, 1, false, '', '', '', '{}', i * 60000, i * 60000, 1 from ${many}`;
await db`analyze entities, events, occurrences`;

const rows = await db<EventRow[]>`
  select ${occurrenceColumns(db)},
    (select count(*) from occurrences c where c.tenant_id = ${tenant.id} and c.event_id = o.event_id) as count
  from occurrences o ${eventAndEntity(db, tenant.id)} where o.tenant_id = ${tenant.id} order by o.start_ms`;
const [first, second, down, again] = rows as unknown as [EventRow, EventRow, EventRow, EventRow];
const idOf = (row: EventRow) => occurrenceIdText(row.event_id, row.number);
const eventIdOf = (row: EventRow) => idOf(row).replace(/:.*/, "");
const entityIdOf = (row: EventRow) => `${row.entity_id.toString("base64url")}=`;

const filter = (field: string, operation: string, value?: unknown) => ({
  filter: { field, operation, ...(value !== undefined && { value }) },
});
const equals = (field: string, value: unknown) => filter(field, "OP_EQUALS", value);

/** What is asked, and the occurrences that answer: 0 the closed one, 1 the next of the same event, 2 down, 3 the lonely. */
const cases: [clause: object, found: number[]][] = [
  [equals("id", eventIdOf(first)), [0, 1]],
  [filter("id", "OP_NOT_EQUALS", eventIdOf(first)), [2, 3]],
  [filter("id", "OP_IN", [eventIdOf(down), "nonsense", 5]), [2]],
  [filter("id", "OP_STARTS_WITH", eventIdOf(down).slice(0, 10)), [2]],
  [{ withIds: { ids: [eventIdOf(first)] } }, [0, 1]],
  [{ withIds: { ids: [idOf(second), eventIdOf(down), "x:1"] } }, [1, 2]],
  [{ withIds: { ids: [`${eventIdOf(first)}:9`] } }, []],
  [equals("name", "disk full"), [0, 1]],
  [filter("name", "OP_STARTS_WITH", "d"), [0, 1, 2]],
  [filter("name", "OP_TEXT", "DOWN"), [2, 3]],
  [filter("name", "OP_REGEX", "(?i)^down\\b"), [2, 3]],
  [equals("type", "disk"), [0]],
  [filter("summary", "OP_CONTAINS", "%"), [0]],
  [filter("body", "OP_REGEX", "answer\\nfor"), [2]],
  [equals("severity", "SEVERITY_CRITICAL"), [1]],
  [equals("severity", 5), [1]],
  [equals("severity", "5"), [1]],
  [filter("severity", "OP_GREATER_OR_EQ", "SEVERITY_ERROR"), [0, 1]],
  [{ range: { path: "severity", gte: "SEVERITY_WARNING", lt: 5 } }, [0, 2]],
  [{ in: { field: "severity", values: ["SEVERITY_DEFAULT", 3] } }, [2, 3]],
  [filter("severity", "OP_CONTAINS", "SEVERITY"), []],
  [equals("status", "STATUS_CLOSED"), [0]],
  [filter("status", "OP_NOT_EQUALS", "STATUS_CLOSED"), [1, 2, 3]],
  [equals("acknowledged", true), [1]],
  [equals("acknowledged", "true"), []],
  [equals("entity", entityIdOf(down)), [2]],
  [equals("entityName", "Web One"), [0, 1]],
  [filter("entityName", "OP_STARTS_WITH", "Datenbank"), [2]],
  [filter("entityName", "OP_END_WITH", "Ä"), [2]],
  [filter("entityName", "OP_TEXT", "ä DATEN"), [2]],
  [equals("startTime", Number(at(5))), [2]],
  [filter("lastSeen", "OP_GREATER", String(at(4))), [2, 3]],
  [{ range: { path: "lastSeen", gte: Number(at(2)), lte: `${at(4)}.0` } }, [0, 1]],
  [filter("lastSeen", "OP_LESS", Number(at(5)) - 0.5), [0, 1]],
  [filter("endTime", "OP_EXISTS"), [0]],
  [filter("endTime", "OP_EXISTS", false), [1, 2, 3]],
  [equals("instanceCount", 2), [0, 1]],
  [equals("count", 2), [0, 1]],
  [equals("dimensions.source", "web-1"), [0, 1]],
  [filter("dimensions.source", "OP_IN", ["db-1", "lonely"]), [2, 3]],
  [filter("dimensions.zone", "OP_EXISTS", false), [3]],
  [equals("metadataFields.used", 99), [1]],
  [filter("metadataFields.used", "OP_GREATER", 90), [0, 1]],
  [equals("metadataFields.tags", "io"), [0]],
  [equals("metadataFields.source", "not this one"), [2]],
  // Bare: a dimension, else the event's metadata.
  [equals("source", "db-1"), [2]],
  [equals("source", "not this one"), []],
  [equals("rack", "r7"), [2]],
  [equals("mount", "/home"), [1]],
  [equals("coreProperties.device", "w2"), [0, 1]],
  [equals("coreProperties.source", "lonely"), [3]],
  [filter("coreProperties._orgs_location", "OP_STARTS_WITH", "/Ro"), [0, 1]],
  [equals("coreProperties.name", "Datenbank Ä"), [2]],
  [equals("coreProperties._svc_direct_entity_id", entityIdOf(again)), [3]],
  [equals("coreProperties._svc_tenant_id", tenant.id), [0, 1, 2, 3]],
  [equals("coreProperties._svc_schemaIds", "Host"), [0, 1]],
  [equals("coreProperties._svc_schemaIds", "Base.Entity"), [0, 1, 2, 3]],
  [equals("coreProperties.zone", "a"), [0, 1]],
  [equals("nothing", "x"), []],
  [
    {
      and: {
        clauses: [
          equals("dimensions.source", "web-1"),
          equals("status", "STATUS_OPEN"),
          filter("name", "OP_CONTAINS", "full"),
        ],
      },
    },
    [1],
  ],
  [{ or: { clauses: [equals("name", "down"), equals("coreProperties.device", "w1")] } }, [0, 1, 2]],
  [{ not: { clause: equals("dimensions.zone", "a") } }, [2, 3]],
];

describe("a clause on events", () => {
  test.each(cases.map(([clause, found]) => ({ clause, found, text: JSON.stringify(clause) })))(
    "$text",
    async ({ clause, found }) => {
      const wanted = found.map((i) => idOf(rows[i] as EventRow));
      const { results, pageInfo } = await events.searchEvents({ query: { clause: clauseOf(clause) } });
      const occurrences = results.flatMap((event) => event.occurrences.map(({ id }) => id));
      expect(occurrences.toSorted()).toEqual(wanted.toSorted());
      expect(pageInfo?.totalCount).toBe(BigInt(results.length));
      const holds = toPredicate(clauseOf(clause), "clause", eventResolver(tenant.id));
      expect(rows.filter((row) => holds(row, unpaced)).map(idOf)).toEqual(wanted);
    },
  );

  test("stands beside severities, statuses and the time range", async () => {
    const clause = clauseOf(equals("dimensions.source", "web-1"));
    const { results } = await events.searchEvents({
      query: { clause, severities: [ERROR as never], timeRange: { end: at(3) } },
    });
    expect(results.map(({ occurrences }) => occurrences.map(({ id }) => id))).toEqual([[idOf(first)]]);
  });

  test("finds nothing of another tenant", async () => {
    const other = await testTenant(db);
    const theirs = createClient(EventQueryService, transport(server.target, "grpc", other.headers));
    for (const clause of [
      equals("name", "disk full"),
      equals("dimensions.source", "web-1"),
      { withIds: { ids: [eventIdOf(first)] } },
    ]) {
      const { results, pageInfo } = await theirs.searchEvents({ query: { clause: clauseOf(clause) } });
      expect([results.length, pageInfo?.totalCount]).toEqual([0, 0n]);
    }
  });
});

test.each(["id", "entity"])("events in the order of %s stand in that of its text", async (field) => {
  const theirs = createClient(EventQueryService, transport(server.target, "grpc", crowded.headers));
  const sortBy = [{ byField: { field, order: SortOrder.DESC } }];
  const { results } = await theirs.searchEvents({ query: { sortBy, pageInput: { limit: 50 } } });
  const ids = await db<{ id: Buffer }[]>`select id from events where tenant_id = ${crowded.id}`;
  const texts = ids.map(({ id }) => idText(id)).sort();
  // An event's id is its entity's in these rows.
  expect(results.map(({ occurrences }) => occurrences[0]?.id.replace(/:1$/, ""))).toEqual(
    texts.toReversed().slice(0, 50),
  );
});
