import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { byteaArray, textArray } from "../../src/db/batch.ts";
import { encodeChunk } from "../../src/metrics/codec/chunk.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";
import { mergeAll } from "./points.ts";

const server = await testServer();
const { sql } = server.database;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const baseMs = Math.floor(Date.now() / hourMs) * hourMs - 3 * hourMs;
const iso = (ms: number) => new Date(ms).toISOString();
const dimensions = { source: "web-1", zone: "b" };

let tenant: TestTenant;
let call: ReturnType<typeof v1>;

/** A point a minute from `baseMs` on. */
const everyMinute = (metric: string, values: readonly number[], of: Record<string, string> = dimensions) =>
  values.map((value, i) => ({ metric, timestamp: baseMs + i * minuteMs, value, dimensions: of }));

async function putMetrics(metrics: readonly object[]) {
  const { status, body } = await call("POST", "/v1/data-receiver/metrics", { metrics });
  expect({ status, body }).toMatchObject({ status: 200, body: { failed: 0, succeeded: metrics.length } });
}

const bySource = (value: string) => ({ filter: { field: "source", operation: "OP_EQUALS", value } });
const search = (more: object = {}) =>
  call("POST", "/v1/metrics:search", {
    entityClause: bySource("web-1"),
    timeRange: { start: iso(baseMs), end: iso(baseMs + hourMs) },
    downsample: { aggregator: "MEAN", period: "600s" },
    ...more,
  });

beforeAll(async () => {
  tenant = await testTenant(sql);
  call = v1(server.url, tenant.headers);
  await call("POST", "/v1/dictionary/metrics", {
    name: "requests",
    label: "Requests",
    units: "1",
    isRate: true,
    tags: ["http", "web"],
    minimum: "0",
    scaleFactor: "0.10",
    scaleFactorUnits: "1 -> k",
  });
  await putMetrics([
    ...everyMinute("cpu", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20]),
    ...everyMinute("requests", [100, 200, 50, 150]),
    ...everyMinute("system.cpu.utilization", [0.5]),
    { ...everyMinute("disk", [1])[0], metadataFields: { units: "By", description: "what is left" } },
    ...everyMinute("cpu", [77], { source: "web-2" }),
  ]);
});

describe("succeeds", () => {
  test("series of the entity come by the names of their metrics, downsampled, with their dictionary block", async () => {
    const { status, body } = await search();
    expect(status).toBe(200);
    expect(body.nextPageToken).toBe("");
    expect(body.metrics.map(({ dictionary }: { dictionary: { name: string } }) => dictionary.name)).toEqual([
      "cpu",
      "disk",
      "requests",
      "system.cpu.utilization",
    ]);
    const [cpu, disk, requests, shipped] = body.metrics;
    expect(cpu).toEqual({
      labels: {},
      id: expect.stringMatching(/^[\w-]{27}=$/),
      name: "cpu",
      dictionary: {
        name: "cpu",
        layer: "DEFAULT",
        label: "",
        description: "",
        units: "",
        minimum: null,
        maximum: null,
        tags: [],
        scaleFactor: null,
        scaleFactorUnits: null,
        scaleFactorString: null,
        default: null,
        isRate: false,
        defaultGroupingFields: [],
      },
      timestamps: [String(baseMs), String(baseMs + 10 * minuteMs)],
      values: [5.5, 20],
    });
    expect(disk.dictionary).toMatchObject({ units: "By", description: "what is left" });
    expect(requests).toMatchObject({
      name: "Requests",
      dictionary: {
        name: "requests",
        layer: "TENANT",
        tags: ["http", "web"],
        minimum: 0,
        scaleFactor: 0.1,
        scaleFactorString: "0.10",
        scaleFactorUnits: "1 -> k",
        isRate: true,
      },
      values: [125],
    });
    expect(shipped.dictionary).toMatchObject({ layer: "DEFAULT", default: null });
    expect(shipped.name).not.toBe("system.cpu.utilization");
  });

  test.each([
    ["COUNT", [10, 1]],
    [1, [10, 1]],
    ["SUM", [55, 20]],
    ["LAST", [10, 20]],
    ["MAX", [10, 20]],
    ["MIN", [1, 20]],
    ["DELTA", [9, 10]],
    ["RATE", [9 / 540, 10 / 60]],
    ["P50", [5.5, 20]],
    ["STDDEV", [Math.sqrt(8.25), 0]],
    ["NEXT_OLDER", [10, 20, 20, 20, 20]],
    ["INTERPOLATE", [1, 20]],
  ])("aggregator %s", async (aggregator, values) => {
    const { body } = await search({ downsample: { aggregator, period: "10m" } });
    expect(body.metrics[0].values).toEqual(values);
  });

  test("the points themselves with NONE, those of the range alone", async () => {
    const { body } = await search({
      downsample: { aggregator: "NONE", period: "1h" },
      timeRange: { start: iso(baseMs + minuteMs), end: iso(baseMs + 3 * minuteMs) },
    });
    expect(body.metrics[0]).toMatchObject({
      timestamps: [String(baseMs + minuteMs), String(baseMs + 2 * minuteMs)],
      values: [2, 3],
    });
    expect(body.metrics[1]).toMatchObject({ timestamps: [], values: [] });
  });

  test("a counter of the dictionary that started again counts from 0", async () => {
    const { body } = await search({ downsample: { aggregator: "DELTA", period: "1h" } });
    expect(body.metrics[2].values).toEqual([100 + 50 + 100]);
  });

  test.each([
    ["name", { filter: { field: "name", operation: "OP_EQUALS", value: "cpu" } }, ["cpu"]],
    ["label", { filter: { field: "label", operation: 1, value: "Requests" } }, ["requests"]],
    ["tags", { filter: { field: "tags", operation: "OP_EQUALS", value: "web" } }, ["requests"]],
    ["units", { filter: { field: "units", operation: "OP_EQUALS", value: "By" } }, ["disk"]],
    [
      "existence",
      { filter: { field: "units", operation: "OP_EXISTS" } },
      ["disk", "requests", "system.cpu.utilization"],
    ],
    ["a range", { range: { path: "name", gte: "d", lt: "s" } }, ["disk", "requests"]],
    ["not", { not: { clause: { range: { path: "name", lt: "r" } } } }, ["requests", "system.cpu.utilization"]],
    ["an unknown field", { filter: { field: "zone", operation: "OP_EXISTS" } }, []],
  ])("metricClause by %s", async (_what, metricClause, names) => {
    const { status, body } = await search({ metricClause });
    expect(status).toBe(200);
    expect(body.metrics.map(({ dictionary }: { dictionary: { name: string } }) => dictionary.name)).toEqual(names);
  });

  test("metricClause by ids of series", async () => {
    const { body } = await search();
    const found = await search({ metricClause: { withIds: { ids: [body.metrics[1].id, "none"] } } });
    expect(found.body.metrics).toEqual([body.metrics[1]]);
  });

  test("no entity matches: an empty list", async () => {
    const { status, body } = await search({ entityClause: bySource("web-9") });
    expect({ status, body }).toEqual({ status: 200, body: { metrics: [], nextPageToken: "", entity: null } });
  });

  test("an entity without series: an empty list, and no series of the next one", async () => {
    const source = "without";
    await call("POST", "/v1/data-receiver/models", { models: [{ timestamp: Date.now(), dimensions: { source } }] });
    const { status, body } = await search({ entityClause: bySource(source) });
    const entity = { id: expect.any(String), name: "source=without", otherCount: 0 };
    expect({ status, body }).toEqual({ status: 200, body: { metrics: [], nextPageToken: "", entity } });
  });

  test("the last of more series than are looked at together is found, and they come in pages", async () => {
    const names = Array.from({ length: 1002 }, (_, i) => `m${String(i).padStart(4, "0")}`);
    await putMetrics(names.flatMap((name) => everyMinute(name, [1], { source: "wide" })));
    const byName = (gte: string) => ({ range: { path: "name", gte } });
    const ask = async (more: object) => {
      const { body } = await search({ entityClause: bySource("wide"), ...more });
      const found: string[] = body.metrics.map(({ dictionary }: { dictionary: { name: string } }) => dictionary.name);
      expect(body.entity.name).toBe("source=wide");
      return { found, pageToken: body.nextPageToken };
    };
    expect((await ask({ metricClause: byName("m1001") })).found).toEqual(["m1001"]);
    const query = { metricClause: byName("m0001"), pageSize: 600 };
    const first = await ask(query);
    const second = await ask({ ...query, pageToken: first.pageToken });
    expect([...first.found, ...second.found]).toEqual(names.slice(1));
    expect(second.pageToken).toBe("");
  });

  test("a key without a prefix that metadata have, and one that is both", async () => {
    const dimensions = { source: "z-known", zone: "z7" };
    const model = { timestamp: Date.now(), dimensions, metadataFields: { shelf: "upper", zone: "none" } };
    await call("POST", "/v1/data-receiver/models", { models: [model] });
    await putMetrics(everyMinute("in metadata", [1], dimensions));
    for (const [field, value] of [
      ["shelf", "upper"],
      ["zone", "z7"],
    ]) {
      const { body } = await search({ entityClause: { filter: { field, operation: "OP_EQUALS", value } } });
      expect(body.metrics).toMatchObject([{ name: "in metadata" }]);
    }
  });

  test("a metric by its name alone, and beside other clauses", async () => {
    const of = { source: "z-numbered" };
    await putMetrics(["1.0", "1", "2", "a"].flatMap((name) => everyMinute(name, [1], of)));
    const named = (value: string) => ({ filter: { field: "name", operation: "OP_EQUALS", value } });
    const ask = async (metricClause: object) => {
      const { body } = await search({ entityClause: bySource("z-numbered"), metricClause });
      return body.metrics.map(({ name }: { name: string }) => name);
    };
    expect(await ask(named("1"))).toEqual(["1"]);
    expect(await ask({ and: { clauses: [named("a"), { not: { clause: named("2") } }] } })).toEqual(["a"]);
    expect(await ask({ or: { clauses: [named("a"), named("2")] } })).toEqual(["2", "a"]);
  });

  test("several entities match: the first one by name, which is said, and how many others match", async () => {
    const exists = { filter: { field: "source", operation: "OP_EXISTS" } };
    const { body } = await search({ entityClause: exists });
    expect(body.metrics).toHaveLength(4);
    const { entities } = (
      await call("POST", "/v1/modelcontext/entities:search", { search_input: { query: { clause: exists } } })
    ).body;
    expect(body.entity).toEqual({
      id: entities.entities[0].id,
      name: "source=web-1,zone=b",
      otherCount: entities.entities.length - 1,
    });
    const some = await search({
      entityClause: { in: { field: "source", values: ["web-1", "web-2", "wide", "none"] } },
    });
    expect(some.body.entity).toEqual({ ...body.entity, otherCount: 2 });
    const models = Array.from({ length: 102 }, (_, i) => ({ timestamp: Date.now(), dimensions: { many: String(i) } }));
    await call("POST", "/v1/data-receiver/models", { models });
    const many = await search({ entityClause: { filter: { field: "many", operation: "OP_EXISTS" } } });
    expect(many.body.entity).toMatchObject({ name: "many=0", otherCount: 100 });
  });

  test("the same after merging, and a point that comes later is there at once", async () => {
    const before = await search();
    await mergeAll(sql, tenant.id);
    expect((await search()).body).toEqual(before.body);
    await putMetrics([{ ...everyMinute("cpu", [0])[0], value: 11 }]);
    const { body } = await search();
    expect(body.metrics[0].values[0]).toBe(6.5);
    await putMetrics([{ ...everyMinute("cpu", [0])[0], value: 1 }]);
  });

  test("series of a deleted entity stay readable by its id", async () => {
    const of = { source: "gone" };
    await putMetrics(everyMinute("cpu", [1, 2], of));
    const entities = await call("POST", "/v1/modelcontext/entities:search", {
      search_input: { query: { clause: bySource("gone") } },
    });
    const { id } = entities.body.entities.entities[0];
    await call("POST", "/v1/data-receiver/models", {
      models: [{ timestamp: Date.now(), dimensions: of, metadataFields: { _svc_deleted_entity: true } }],
    });
    expect((await search({ entityClause: bySource("gone") })).body.metrics).toEqual([]);
    const { body } = await search({ entityClause: { withIds: { ids: [id] } } });
    expect(body.metrics).toMatchObject([{ name: "cpu", values: [1.5] }]);
  });

  test("points of a stream, in all forms", async () => {
    const receiver = createClient(DataReceiverService, transport(server.target, "grpc", tenant.headers));
    const point = { metric: "streamed", timestamp: BigInt(baseMs), value: 1 };
    async function* points() {
      yield { metric: { case: "canonical" as const, value: { ...point, dimensions } } };
      yield {
        metric: { case: "tagged" as const, value: { ...point, timestamp: BigInt(baseMs + 1), tags: dimensions } },
      };
      yield { metric: { case: "compact" as const, value: { id: "7", timestamp: 1n, value: 1 } } };
      yield { metric: { case: "tagged" as const, value: { ...point, metric: "", tags: dimensions } } };
      yield {};
    }
    const answer = await receiver.putMetric(points());
    expect(answer).toMatchObject({ succeeded: 2, failed: 3, message: "2 of 5 metrics processed" });
    expect(answer.failedCompactMetrics).toMatchObject([
      { error: expect.stringContaining("[2].id"), metric: { id: "7" } },
    ]);
    expect(answer.failedTaggedMetrics).toMatchObject([{ error: expect.stringContaining("[3].metric") }]);
    expect(answer.failedMetrics).toMatchObject([{ error: expect.stringContaining("[4].") }]);
    const { body } = await search({ metricClause: { filter: { field: "name", operation: 1, value: "streamed" } } });
    expect(body.metrics).toMatchObject([{ values: [1] }]);
    await sql`delete from series where tenant_id = ${tenant.id} and metric = 'streamed'`;
  });
});

test("series with more points than may be in memory at once are all answered", async () => {
  const names = ["one", "two", "three"];
  await putMetrics(names.flatMap((name) => everyMinute(name, [0], { source: "large" })));
  await mergeAll(sql, tenant.id);
  const [perChunk, chunks] = [16_384, 25];
  const made = Array.from({ length: chunks }, (_, i) => {
    const times = Float64Array.from({ length: perChunk }, (_, j) => baseMs + minuteMs + i * perChunk + j);
    return encodeChunk({ times, values: new Float64Array(perChunk).fill(7) });
  });
  await sql`
    insert into metric_chunks (tenant_id, series, first_ms, last_ms, points, chunk)
    select tenant_id, number, ${BigInt(baseMs + minuteMs)} + place * ${perChunk}::int8,
      ${BigInt(baseMs + minuteMs)} + (place + 1) * ${perChunk}::int8 - 1, ${perChunk}::int4, made.chunk
    from series, unnest(${byteaArray(made)}::bytea[]) with ordinality as numbered (chunk, number_of),
      lateral (select number_of - 1 as place, chunk) as made
    where tenant_id = ${tenant.id} and metric = any(${textArray(names)}::text[])`;
  const { body } = await search({
    entityClause: bySource("large"),
    downsample: { aggregator: "COUNT", period: "1h" },
  });
  expect(body.metrics.map((each: { name: string; values: number[] }) => [each.name, each.values])).toEqual(
    ["one", "three", "two"].map((name) => [name, [1 + perChunk * chunks]]),
  );
}, 60_000);

describe("invalid", () => {
  const path = (text: string) => expect.stringMatching(new RegExp(`^${text.replaceAll(".", "\\.")}: `));
  test.each([
    ["entityClause", { entityClause: undefined }, path("entityClause")],
    ["an empty clause", { entityClause: {} }, path("entityClause")],
    ["a clause of two", { entityClause: { ...bySource("a"), withIds: { ids: [] } } }, path("entityClause")],
    ["timeRange", { timeRange: undefined }, path("timeRange")],
    ["its start", { timeRange: { end: iso(0) } }, path("timeRange.start")],
    [
      "an end that was made of seconds",
      { timeRange: { start: iso((baseMs - hourMs) / 1000), end: iso(baseMs / 1000) } },
      path("timeRange.end"),
    ],
    ["its order", { timeRange: { start: iso(1), end: iso(1) } }, path("timeRange")],
    ["a time that is none", { timeRange: { start: "now", end: iso(1) } }, path("timeRange.start")],
    ["downsample", { downsample: undefined }, path("downsample")],
    ["its aggregator", { downsample: { period: "1h" } }, path("downsample.aggregator")],
    ["an unknown one", { downsample: { aggregator: "MODE", period: "1h" } }, path("downsample.aggregator")],
    ["an unknown number", { downsample: { aggregator: 17, period: "1h" } }, path("downsample.aggregator")],
    ["its period", { downsample: { aggregator: "MEAN" } }, path("downsample.period")],
    ["a wrong period", { downsample: { aggregator: "MEAN", period: "1 week" } }, path("downsample.period")],
    ["too many buckets", { downsample: { aggregator: "MEAN", period: "1ms" } }, path("downsample.period")],
    ["a negative pageSize", { pageSize: -1 }, path("pageSize")],
    ["a foreign pageToken", { pageToken: "AAAA" }, path("pageToken")],
    ["an empty metricClause", { metricClause: {} }, path("metricClause")],
  ])("%s", async (_what, more, message) => {
    const { status, body } = await search(more);
    expect({ status, body }).toMatchObject({ status: 400, body: { code: 3, message } });
  });
});

test.each([
  "OP_CONTAINS",
  "OP_END_WITH",
  "OP_NOT_CONTAINS",
  "OP_REGEX",
  "OP_STARTS_WITH",
  "OP_TEXT",
  "OP_IN",
  "OP_NOT_IN",
])("%s in metricClause is not supported: 501", async (operation) => {
  const filter = { field: "name", operation, value: "cpu" };
  for (const metricClause of [{ filter }, { and: { clauses: [{ not: { clause: { filter } } }] } }]) {
    const { status, body } = await search({ metricClause });
    expect({ status, code: body.code }).toEqual({ status: 501, code: 12 });
  }
});
