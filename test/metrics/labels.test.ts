import { create, fromJson, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { SearchMetricsRequestSchema } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { type Metric, MetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { decodeCursor, encodeCursor, queryDigest } from "../../src/db/paging/cursor.ts";
import { entityId } from "../../src/entities/identity.ts";
import { seriesId } from "../../src/metrics/identity.ts";
import { labelsKey, labelsOrder } from "../../src/metrics/labels.ts";
import { noNotes } from "../../src/metrics/notes.ts";
import { scannedPoint, scanPoint } from "../../src/metrics/point-scanner.ts";
import { ageSeries } from "../../src/metrics/retention.ts";
import { searchMetrics } from "../../src/metrics/search.ts";
import { type KeptKey, kinds } from "../../src/metrics/series-key.ts";
import { found, seriesMemory, seriesOf } from "../../src/metrics/series-memory.ts";
import { formKey } from "../../src/receiver/read-points.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer({});
const { sql } = server.database;
const minuteMs = 60_000;
const baseMs = Math.floor(Date.now() / 3_600_000) * 3_600_000 - 3_600_000;
const dimensions = { source: "web-1" };
const never = new AbortController().signal;

const filter = (field: string, operation: string, value?: unknown) => ({
  filter: { field, operation, ...(value !== undefined && { value }) },
});
const request = (more: object = {}) => ({
  entityClause: filter("source", "OP_EQUALS", "web-1"),
  timeRange: { start: new Date(baseMs).toISOString(), end: new Date(baseMs + 60 * minuteMs).toISOString() },
  downsample: { aggregator: "LAST", period: "1h" },
  ...more,
});

async function world() {
  const tenant = await testTenant(sql);
  const call = v1(server.url, tenant.headers);
  const put = (metrics: readonly object[], more: object = {}) =>
    call("POST", "/v1/data-receiver/metrics", {
      metrics: metrics.map((each) => ({ metric: "disk.used", timestamp: baseMs, dimensions, ...each })),
      ...more,
    });
  const search = async (more: object = {}) => (await call("POST", "/v1/metrics:search", request(more))).body;
  const shown = async (more: object = {}) =>
    ((await search(more)).metrics as { name: string; labels: object; values: number[] }[]).map(
      ({ name, labels, values }) =>
        `${name}{${Object.entries(labels)
          .map(([key, value]) => `${key}=${value}`)
          .sort()}} ${values}`,
    );
  return { tenant, call, put, search, shown };
}

describe("series with labels", () => {
  test("are series of their own, in the order of names and labels, on pages whose tokens hold both", async () => {
    const { put, search, shown } = await world();
    const { body } = await put([
      { value: 1, labels: { mountpoint: "/var", device: "sda" } },
      { value: 2 },
      { value: 3, labels: { device: "sda", mountpoint: "/home" } },
      { value: 4, labels: { mountpoint: "/var", device: "sda", fstype: "" }, timestamp: baseMs + minuteMs },
      { value: 5, metric: "cpu", labels: { cpu: "1" } },
      { value: 6, metric: "cpu", labels: { cpu: "0", mode: "" } },
    ]);
    expect(body).toMatchObject({ succeeded: 6 });
    const all = [
      "cpu{cpu=0} 6",
      "cpu{cpu=1} 5",
      "disk.used{} 2",
      "disk.used{device=sda,mountpoint=/home} 3",
      "disk.used{device=sda,mountpoint=/var} 4",
    ];
    expect(await shown()).toEqual(all);
    const pages: string[] = [];
    for (let pageToken = ""; ; ) {
      pages.push(...(await shown({ pageSize: 1, pageToken })));
      pageToken = (await search({ pageSize: 1, pageToken })).nextPageToken;
      if (pageToken === "") break;
    }
    expect(pages).toEqual(all);
  });

  test("are found by clauses over labels", async () => {
    const { put, shown, search } = await world();
    await put([
      { value: 1, labels: { cpu: "0", mode: "idle" } },
      { value: 2, labels: { cpu: "0", mode: "user" } },
      { value: 3, labels: { cpu: "1", mode: "idle" } },
      { value: 4 },
    ]);
    const values = async (metricClause: object) => (await shown({ metricClause })).map((text) => Number(text.at(-1)));
    expect(await values(filter("labels.cpu", "OP_EQUALS", "0"))).toEqual([1, 2]);
    expect(await values(filter("labels.cpu", "OP_NOT_EQUALS", "0"))).toEqual([4, 3]);
    expect(await values(filter("labels.mode", "OP_EXISTS"))).toEqual([1, 2, 3]);
    expect(await values(filter("labels.none", "OP_EQUALS", "0"))).toEqual([]);
    const both = [filter("labels.mode", "OP_EQUALS", "idle"), filter("labels.cpu", "OP_GREATER", "0")];
    expect(await values({ and: { clauses: both } })).toEqual([3]);
    expect(await values({ or: { clauses: both } })).toEqual([1, 3]);
    const idle = { metricClause: filter("labels.mode", "OP_EQUALS", "idle"), pageSize: 1 };
    const { nextPageToken } = await search(idle);
    expect(await shown({ ...idle, pageToken: nextPageToken })).toEqual(["disk.used{cpu=1,mode=idle} 3"]);
  });

  test("a token of before labels is still good", async () => {
    const { tenant, put, search, shown } = await world();
    await put([
      { value: 1, metric: "a" },
      { value: 2, metric: "b" },
      { value: 3, metric: "b", labels: { x: "y" } },
    ]);
    const { nextPageToken } = await search({ pageSize: 1 });
    const query = toBinary(SearchMetricsRequestSchema, fromJson(SearchMetricsRequestSchema, request() as never));
    const digest = queryDigest(Buffer.from(query).toString("base64"));
    const { texts } = decodeCursor("metrics", tenant.id, digest, nextPageToken, "");
    expect(texts.slice(2)).toEqual(["", ""]);
    // What 0.1.0 made.
    const before = encodeCursor("metrics", tenant.id, digest, texts.slice(0, 2));
    expect(await shown({ pageSize: 1, pageToken: before })).toEqual(["b{} 2"]);
  });

  test("reach a series without labels where a server of 0.1.0 takes their points, which newer ones keep apart", async () => {
    const { tenant, put, shown } = await world();
    await put([{ value: 1, metric: "other" }]);
    // As 0.1.0 stores a point with labels, which it does not know: by entity and metric.
    const [series] = await sql<[{ number: bigint }]>`
      with counted as (
        update series_counts set last_number = last_number + 1, count = count + 1
        where tenant_id = ${tenant.id} returning last_number
      )
      insert into series (tenant_id, number, entity_id, metric, units, description, created_ms)
      select ${tenant.id}::uuid, last_number, ${entityId(tenant.id, dimensions)}, 'disk.used', '', '', 1 from counted
      returning number`;
    await put([{ value: 2 }, { value: 3, labels: { mode: "idle" } }]);
    expect(await shown()).toEqual(["disk.used{} 2", "disk.used{mode=idle} 3", "other{} 1"]);
    // As 0.1.0 looks for a series: it finds one of them for all labels and none.
    const found = await sql<{ number: bigint; labels: object | null }[]>`
      select number, labels from series
      where tenant_id = ${tenant.id} and entity_id = ${entityId(tenant.id, dimensions)} and metric = 'disk.used'
      order by number`;
    expect(found).toEqual([
      { number: series.number, labels: null },
      { number: expect.any(BigInt), labels: { mode: "idle" } },
    ]);
  });

  test("that break a rule are refused, each by itself", async () => {
    const { put } = await world();
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, "v"]));
    const wrong = [many, { "": "v" }, { ["k".repeat(256)]: "v" }, { k: "v".repeat(1025) }, { k: "a\0b" }];
    const { body } = await put(
      [{ value: 1, labels: { k: "v".repeat(1024) } }, ...wrong.map((labels) => ({ value: 1, labels }))],
      {
        detailedResponse: true,
      },
    );
    expect(body).toMatchObject({ succeeded: 1, failed: 5 });
    const errors = (body.failedMetrics as { error: string }[]).map(({ error }) => error);
    expect(errors.map((text, i) => text.startsWith(`metrics[${i + 1}].labels`))).toEqual(Array(5).fill(true));
  });

  test("by every protocol and again by the bytes of known points are the same, and none of tagged points", async () => {
    const { tenant, put, shown } = await world();
    await put([{ value: 1, labels: { a: "1", b: "2" } }]);
    const point = (value: number, labels: Record<string, string>, metric = "disk.used") =>
      create(MetricSchema, { metric, timestamp: BigInt(baseMs + value * 1000), value, dimensions, labels });
    for (const protocol of ["grpc", "connect", "grpc-web"] as const) {
      const receiver = createClient(DataReceiverService, transport(server.target, protocol, tenant.headers));
      for (const value of [2, 3, 4]) {
        const metrics = [
          point(value, { b: "2", a: "1" }),
          point(value, { a: "1" }),
          point(value, {}),
          point(value, { a: "1", b: "2", c: "" }),
        ];
        expect((await receiver.putMetrics({ metrics })).succeeded).toBe(4);
      }
    }
    expect(await shown()).toEqual(["disk.used{} 4", "disk.used{a=1} 4", "disk.used{a=1,b=2} 4"]);
    const [{ count }] = await sql<[{ count: bigint }]>`select count(*) from series where tenant_id = ${tenant.id}`;
    expect(count).toBe(3n);
  });

  test("of one entity with 20,000 are found by a label without reading them all, and go with what finds them", async () => {
    const { tenant, put } = await world();
    await put([{ value: 1, labels: { n: "0" } }]);
    const entity = entityId(tenant.id, dimensions);
    const order = Array.from({ length: 20_000 }, (_, i) => labelsOrder({ n: `${i + 1}`, all: "x" }));
    await sql`
      insert into series (tenant_id, number, entity_id, metric, labels, labels_begin, labels_hash, units, description, created_ms)
      select ${tenant.id}::uuid, 10 + n, ${entity}::bytea, 'many', jsonb_build_object('n', n::text, 'all', 'x'),
        o.begin, decode(o.hash, 'hex'), '', '', 1
      from jsonb_to_recordset(${JSON.stringify(order.map(({ begin, hash }, i) => ({ n: i + 1, begin, hash: hash.toString("hex") })))}::jsonb)
        as o (n int, begin text, hash text)`;
    await sql`
      insert into series_labels (tenant_id, entity_id, key, value_begin, series)
      select tenant_id, entity_id, label.key, label.value, number from series, jsonb_each_text(labels) as label
      where tenant_id = ${tenant.id} and number > 10`;
    const ask = (clause: object) =>
      searchMetrics(
        sql,
        { id: tenant.id, name: "t" },
        fromJson(SearchMetricsRequestSchema, request({ metricClause: clause }) as never),
        never,
      );
    const before = await fetched();
    const { metrics } = await ask(filter("labels.n", "OP_EQUALS", "777"));
    expect(metrics.map(({ labels }) => labels)).toEqual([{ n: "777", all: "x" }]);
    expect((await fetched()) - before).toBeLessThan(50);
    expect((await ask(filter("labels.all", "OP_EQUALS", "x"))).metrics).toHaveLength(100);
    const later = Date.now() + 10 * 3_600_000;
    for (let round = 0; round < 2; round++) {
      for (let after: number | undefined = 0; after !== undefined; ) {
        after = await sql.begin((tx) =>
          ageSeries(tx as never, tenant.id, after as number, later + round * 2 * 3_600_000, 86_400),
        );
      }
    }
    const left = await sql`select from series_labels where tenant_id = ${tenant.id} and value_begin <> '0'`;
    expect(left.count).toBe(0);
  });
});

/** Rows of series that statements have read so far. */
async function fetched(): Promise<number> {
  await sql`select pg_stat_force_next_flush()`;
  const [row] = await sql<[{ rows: bigint }]>`
    select sum(idx_tup_read)::int8 as rows from pg_stat_user_indexes where relname = 'series'`;
  return Number(row.rows);
}

describe("labels", () => {
  test("enter a series' id only where there are any, and no two sets share one", () => {
    const tenant = "018f0000-0000-7000-8000-000000000001";
    const entity = entityId(tenant, { source: "web-1", zone: "eu" });
    const id = (labels?: Record<string, string>) => seriesId(tenant, entity, "system.cpu.utilization", labels);
    // As 0.1.0 made it.
    expect(id()).toBe("4ty7NB2JjiFylVv89ZIj7cQoG4U=");
    const sets: Record<string, string>[] = [{ a: "b" }, { ab: "" }, { a: "b", c: "d" }, { a: "bcd" }, { a: "b\0c\0d" }];
    expect(new Set([id(), ...sets.map(id)]).size).toBe(6);
    expect(id({ c: "d", a: "b" })).toBe(id({ a: "b", c: "d" }));
    expect(labelsKey({ b: "1", a: "2" })).toBe(labelsKey({ a: "2", b: "1" }));
  });

  test("are part of the form of a point, in any order, and of no other form", () => {
    const memory = seriesMemory().of("t");
    const bytesOf = (labels: Metric["labels"], dims = dimensions) =>
      toBinary(MetricSchema, create(MetricSchema, { metric: "m", timestamp: 5n, value: 1, dimensions: dims, labels }));
    const long = "v".repeat(300);
    const known = bytesOf({ a: "1", b: long });
    const key = formKey(known, Object.keys(dimensions).length + 2) as KeptKey;
    memory.learn(key, { number: 7, entityId: Buffer.alloc(20), metric: "m", ...noNotes }, noNotes, 0);
    const find = (bytes: Uint8Array) => {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if (!scanPoint(bytes, view, 0, bytes.byteLength) || !memory.find(kinds.form, 1)) return undefined;
      return seriesOf(found.segment, found.entry);
    };
    const stored = { number: 7, entityId: Buffer.alloc(20), metric: "m", labels: { a: "1", b: long } };
    expect(find(known)).toEqual(stored);
    expect(scannedPoint.labels).toBe(true);
    expect(find(bytesOf({ b: long, a: "1" }))).toEqual(stored);
    expect(find(bytesOf({ a: "1" }))).toBeUndefined();
    expect(find(bytesOf({}, { source: "web-1", a: "1" } as never))).toBeUndefined();
  });
});
