import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventQueryService, SortOrder } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { type Protocol, protocols, transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";

const server = await testServer();

function clients(protocol: Protocol, { headers }: TestTenant) {
  const way = transport(server.target, protocol, headers);
  return {
    receiver: createClient(DataReceiverService, way),
    events: createClient(EventQueryService, way),
    entities: createClient(EntityService, way),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: members of an answer are looked at by path; a wrong path fails its test
type Json = any;

async function json({ headers }: TestTenant, path: string, body: unknown) {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Json };
}

async function get({ headers }: TestTenant, path: string) {
  const response = await fetch(server.url + path, { headers });
  return { status: response.status, body: (await response.json()) as Json };
}

const now = BigInt(Date.now());

describe.each(protocols)("over %s", (protocol) => {
  test("models and events go in, entities and events come out", async () => {
    const tenant = await testTenant(server.database.sql);
    const { receiver, events, entities } = clients(protocol, tenant);
    const dimensions = { source: "web-1", zone: "b" };
    const put = await receiver.putModels({
      models: [{ timestamp: now, dimensions, metadataFields: { name: "Web 1", type: "host" } }],
    });
    expect(put).toMatchObject({ succeeded: 1, failed: 0, message: "1 of 1 models processed" });
    await receiver.putEvents({
      events: [{ name: "disk full", timestamp: now, dimensions, severity: Severity.ERROR, status: Status.OPEN }],
    });

    const found = await entities.searchEntities({
      searchInput: {
        query: {
          clause: {
            filter: {
              field: "dimensions.source",
              operation: 1,
              value: { kind: { case: "stringValue", value: "web-1" } },
            },
          },
        },
      },
    });
    expect(found.pageInfo).toMatchObject({ totalCount: 1n, hasNext: false, hasPrev: false });
    const [entity] = found.entities?.entities ?? [];
    expect(entity).toMatchObject({
      name: "Web 1",
      dimensions,
      timestamp: now,
      tenant: tenant.name,
      productionState: 1000n,
    });
    expect(entity?.schemaIds).toEqual(["Base.Entity", "host"]);
    expect(entity?.coreProperties).toMatchObject({ name: ["Web 1"], source: ["web-1"], zone: ["b"] });

    const { results } = await events.searchEvents({ query: { severities: [Severity.ERROR] } });
    expect(results).toMatchObject([{ name: "disk full", entityName: "Web 1", entity: entity?.id }]);
    const { result } = await events.getEvent({ id: results[0]?.id ?? "" });
    expect(result).toMatchObject({
      id: results[0]?.id,
      count: 1n,
      occurrences: [{ severity: Severity.ERROR, startTime: now }],
    });
  });
});

describe("client streams", () => {
  test.each(["grpc", "grpc-web", "connect"] as const)(
    "over %s store what comes, batch by batch, and name what does not fit",
    async (protocol) => {
      const tenant = await testTenant(server.database.sql);
      const { receiver } = clients(protocol, tenant);
      const dimensionsOf = (i: number): Record<string, string> => (i === 1234 ? {} : { source: "web-1" });
      async function* stream() {
        for (let i = 0; i < 2500; i++) {
          yield {
            event: {
              case: "canonical" as const,
              value: { name: `event ${i}`, timestamp: now, dimensions: dimensionsOf(i) },
            },
          };
        }
      }
      const answer = await receiver.putEvent(stream());
      expect(answer).toMatchObject({ succeeded: 2499, failed: 1, message: "2499 of 2500 events processed" });
      expect(answer.failedEvents).toMatchObject([{ event: { name: "event 1234" } }]);
      expect(answer.failedEvents[0]?.error).toContain("[1234].dimensions");
    },
  );

  test("of models likewise; an item that holds nothing fails alone", async () => {
    const tenant = await testTenant(server.database.sql);
    const { receiver, entities } = clients("grpc", tenant);
    async function* stream() {
      yield { model: { case: "canonical" as const, value: { timestamp: now, dimensions: { source: "a" } } } };
      yield {};
    }
    expect(await receiver.putModel(stream())).toMatchObject({ succeeded: 1, failed: 1 });
    const found = await entities.searchEntities({
      searchInput: {
        query: {
          clause: {
            filter: { field: "name", operation: 1, value: { kind: { case: "stringValue", value: "source=a" } } },
          },
        },
      },
    });
    expect(found.pageInfo?.totalCount).toBe(1n);
  });

  test("a slow one is stored while it goes on", async () => {
    const tenant = await testTenant(server.database.sql);
    const { receiver, events } = clients("grpc", tenant);
    const { promise: seen, resolve } = Promise.withResolvers<void>();
    async function* stream() {
      yield {
        event: { case: "canonical" as const, value: { name: "a", timestamp: now, dimensions: { source: "a" } } },
      };
      await seen;
    }
    const answer = receiver.putEvent(stream());
    await expect.poll(async () => (await events.searchEvents({ query: {} })).results.length).toBe(1);
    resolve();
    expect(await answer).toMatchObject({ succeeded: 1 });
  });
});

describe("over /v1", () => {
  test("the same goes in and comes out as JSON, 64-bit numbers as strings", async () => {
    const tenant = await testTenant(server.database.sql);
    const dimensions = { source: "web-1" };
    const model = { timestamp: Number(now), dimensions, metadataFields: { name: "Web 1", "source-type": "host" } };
    expect(await json(tenant, "/v1/data-receiver/models", { models: [model] })).toEqual({
      status: 200,
      body: { failed: 0, succeeded: 1, message: "1 of 1 models processed", failedModels: [] },
    });
    const event = {
      name: "disk full",
      timestamp: String(now),
      dimensions,
      severity: "SEVERITY_ERROR",
      metadataFields: { eventClass: "/Disk" },
    };
    expect(await json(tenant, "/v1/data-receiver/events", { events: [event] })).toMatchObject({
      status: 200,
      body: { succeeded: 1 },
    });

    const clause = { filter: { field: "name", operation: "OP_EQUALS", value: "Web 1" } };
    const entities = await json(tenant, "/v1/modelcontext/entities:search", { search_input: { query: { clause } } });
    expect(entities).toMatchObject({
      status: 200,
      body: {
        entities: {
          entities: [
            {
              name: "Web 1",
              timestamp: String(now),
              productionState: "1000",
              priority: "3",
              fields: null,
              customProperties: null,
            },
          ],
        },
        pageInfo: { count: "1", totalCount: "1", hasNext: false, hasPrev: false, pending: "PENDING_FALSE" },
      },
    });
    const [{ id }] = entities.body.entities.entities;
    const byId = { search_input: { query: { clause: { withIds: { ids: [id, "nonsense"] } } } } };
    expect((await json(tenant, "/v1/modelcontext/entities:search", byId)).body.entities.entities).toMatchObject([
      { id },
    ]);

    const search = await json(tenant, "/v1/events:search", {
      query: { timeRange: { start: Number(now), end: String(now + 1n) } },
    });
    expect(search).toMatchObject({
      status: 200,
      body: {
        results: [
          {
            name: "disk full",
            entityName: "Web 1",
            occurrences: [{ severity: "SEVERITY_ERROR", lastSeen: String(now), instanceCount: "1" }],
          },
        ],
      },
    });
    const [found] = search.body.results;
    expect(found.occurrences[0].coreProperties.source).toEqual(["web-1"]);
    expect(found.occurrences[0].metadataFields).toEqual({ eventClass: "/Disk" });
    const got = await get(tenant, `/v1/events/${encodeURIComponent(found.id)}?fields=severity&fields=name`);
    expect(got).toMatchObject({ status: 200, body: { result: { id: found.id, name: "disk full" } } });
    expect(got.body.result.occurrences).toEqual([
      {
        id: `${found.id}:1`,
        eventId: found.id,
        severity: "SEVERITY_ERROR",
        dimensions: {},
        metadataFields: {},
        coreProperties: {},
        annotations: [],
      },
    ]);
    expect(got.body.result).not.toHaveProperty("entityName");
  });

  test("an answer that lists no failures names the first reason, and how to see all", async () => {
    const tenant = await testTenant(server.database.sql);
    const dimensions = { source: "web-1" };
    const bad = { name: "x".repeat(256), metric: "x", timestamp: 1_700_000_000, dimensions, metadataFields: {} };
    for (const [path, list, noun] of [
      ["events", "events", "events"],
      ["models", "models", "models"],
      ["metrics", "taggedMetrics", "metrics"],
      ["metrics", "metrics", "metrics"],
    ] as const) {
      const { name, metric, ...rest } = bad;
      const item = { ...rest, ...(path === "events" && { name }), ...(path === "metrics" && { metric, value: 1 }) };
      const { metadataFields, dimensions: tags, ...tagged } = item;
      const items = Array.from({ length: 2 }, () => (list === "taggedMetrics" ? { ...tagged, tags } : item));
      const { body } = await json(tenant, `/v1/data-receiver/${path}`, { [list]: items });
      expect(body.message).toMatch(
        new RegExp(`^0 of 2 ${noun} processed; ${list}\\[0\\]\\..* \\(detailedResponse: true lists every failure\\)$`),
      );
      expect(body.message).toContain("looks like seconds");
      const detailed = await json(tenant, `/v1/data-receiver/${path}`, { [list]: items, detailedResponse: true });
      expect(detailed.body.message).toBe(`0 of 2 ${noun} processed`);
    }
  });

  test("a request that cannot be read is refused whole, with the path", async () => {
    const tenant = await testTenant(server.database.sql);
    const good = { name: "a", timestamp: Number(now), dimensions: { source: "a" } };
    const events = [good, { ...good, severity: "SEVERITY_BAD" }];
    const { status, body } = await json(tenant, "/v1/data-receiver/events", { events });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: 3, message: expect.stringContaining("events[1].severity") });
    expect((await json(tenant, "/v1/events:search", { query: {} })).body.results).toEqual([]);
  });

  test("nothing sent, and all failed, are answered 200 with succeeded 0", async () => {
    const tenant = await testTenant(server.database.sql);
    expect(await json(tenant, "/v1/data-receiver/events", {})).toMatchObject({
      status: 200,
      body: { succeeded: 0, failed: 0 },
    });
    expect(await json(tenant, "/v1/data-receiver/events", { events: [{}] })).toMatchObject({
      status: 200,
      body: { succeeded: 0, failed: 1 },
    });
  });
});

describe("what is not there", () => {
  test("an unknown event, and an id of a wrong form, answer 404 with code 5", async () => {
    const tenant = await testTenant(server.database.sql);
    for (const id of ["AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "nonsense"]) {
      expect(await get(tenant, `/v1/events/${id}`)).toMatchObject({
        status: 404,
        body: { code: 5, message: expect.stringContaining(id) },
      });
    }
  });
});

test("events are sorted by the fields asked for, and paged both ways without gaps", async () => {
  const tenant = await testTenant(server.database.sql);
  const { receiver, events } = clients("grpc", tenant);
  await receiver.putEvents({
    events: Array.from({ length: 23 }, (_, i) => ({
      name: `event ${String(i).padStart(2, "0")}`,
      timestamp: now - BigInt(i % 5),
      severity: (i % 3) as Severity,
      dimensions: { source: `s${i % 4}` },
      metadataFields: (i % 2 ? { rank: i % 7, label: "x" } : {}) as Record<string, string | number>,
    })),
  });
  const sorts = [
    [],
    [{ byField: { field: "severity", order: SortOrder.DESC } }, { byField: { field: "name", order: SortOrder.ASC } }],
    [{ byField: { field: "metadataFields.rank", order: SortOrder.DESC } }],
    [{ byField: { field: "endTime" } }, { byField: { field: "dimensions.source", order: SortOrder.DESC } }],
    [{ byField: { field: "entityName" } }, { byField: { field: "id", order: SortOrder.DESC } }],
    [
      { byField: { field: "count" } },
      { byField: { field: "acknowledged" } },
      { byField: { field: "coreProperties.source" } },
    ],
  ];
  for (const sortBy of sorts) {
    const whole = (await events.searchEvents({ query: { sortBy } })).results.map(({ id }) => id);
    expect(whole).toHaveLength(23);
    for (const limit of [1, 2, 7, 100]) {
      const forward: string[] = [];
      let cursor = "";
      for (let more = true; more; ) {
        const { results, pageInfo } = await events.searchEvents({ query: { sortBy, pageInput: { limit, cursor } } });
        forward.push(...results.map(({ id }) => id));
        expect(pageInfo?.totalCount).toBe(23n);
        cursor = pageInfo?.endCursor ?? "";
        more = pageInfo?.hasNext ?? false;
      }
      expect(forward).toEqual(whole);
      const last = await events.searchEvents({ query: { sortBy, pageInput: { limit: 1, cursor: "", direction: 1 } } });
      expect(last.results.map(({ id }) => id)).toEqual(whole.slice(0, 1));
      const backward: string[] = [];
      for (let more = true; more; ) {
        const { results, pageInfo } = await events.searchEvents({
          query: { sortBy, pageInput: { limit, cursor, direction: 2 } },
        });
        backward.unshift(...results.map(({ id }) => id));
        cursor = pageInfo?.startCursor ?? "";
        more = pageInfo?.hasPrev ?? false;
      }
      expect(backward).toEqual(whole.slice(0, -1));
    }
  }
  const { pageInfo } = await events.searchEvents({ query: { pageInput: { limit: 5 } } });
  await expect(
    events.searchEvents({ query: { severities: [Severity.ERROR], pageInput: { cursor: pageInfo?.endCursor ?? "" } } }),
  ).rejects.toMatchObject({ code: 3, rawMessage: expect.stringContaining("query.pageInput.cursor") });
});

test("an event search answers events with all their matching occurrences, ordered by the first of each", async () => {
  const tenant = await testTenant(server.database.sql);
  const { receiver, events } = clients("grpc", tenant);
  const at = (ago: number, name: string, status: Status) => ({
    name,
    timestamp: now - BigInt(ago),
    status,
    severity: Severity.ERROR,
    dimensions: { source: "a" },
  });
  const batch = [at(50, "one", 1), at(40, "one", 3), at(30, "two", 1), at(20, "one", 1)];
  await receiver.putEvents({ events: batch });
  const names = async (query: object) =>
    (await events.searchEvents({ query })).results.map(({ name, occurrences }) => [
      name,
      occurrences.map(({ id }) => Number(id.split(":")[1])),
    ]);
  expect(await names({})).toEqual([
    ["one", [2, 1]],
    ["two", [1]],
  ]);
  expect(await names({ sortBy: [{ byField: { field: "startTime", order: 1 } }] })).toEqual([
    ["one", [1, 2]],
    ["two", [1]],
  ]);
  expect(await names({ statuses: [Status.CLOSED] })).toEqual([["one", [1]]]);
  expect(await names({ timeRange: { start: now - 40n, end: now - 20n } })).toEqual([
    ["two", [1]],
    ["one", [1]],
  ]);
  expect(await names({ timeRange: { start: now - 35n, end: now - 31n } })).toEqual([]);
  expect(await names({ timeRange: { start: now - 35n, end: now - 25n }, activeCriteria: 2 })).toEqual([["two", [1]]]);
  expect(await names({ timeRange: { start: now - 45n, end: now - 41n }, activeCriteria: 2 })).toEqual([["one", [1]]]);
  await expect(names({ timeRange: { start: now, end: now } })).rejects.toMatchObject({
    code: 3,
    rawMessage: expect.stringContaining("query.timeRange"),
  });
});
