import { gunzipSync, gzipSync } from "node:zlib";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import fc from "fast-check";
// @ts-expect-error: the package has no types
import { compress, uncompress } from "snappyjs";
import { afterAll, describe, expect, test } from "vitest";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import { RequestSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import {
  ExportLogsServiceRequestSchema,
  ExportLogsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import {
  ExportMetricsServiceRequestSchema,
  ExportMetricsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { cases } from "../support/cases.ts";
import { codeOf, raw } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { type ToolAnswer, tool } from "./calls.ts";

/** Requests of each kind. */
const numRuns = cases(60);
const server = await testServer();
const { sql } = server.database;
const { id, headers } = await testTenant(sql);
const call = tool(server, headers);
const rssBytes = process.memoryUsage.rss();

const timeUnixNano = BigInt(Date.now()) * 1_000_000n;
const texts = fc.string({ maxLength: 20, unit: "binary" });
const times = fc.oneof(fc.constant(timeUnixNano), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
const timestamp = fc.oneof(fc.constant(BigInt(Date.now())), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
const attributes = fc.array(fc.record({ key: texts, value: fc.record({ value: value() }) }), { maxLength: 4 });
function value() {
  return fc.oneof(
    fc.record({ case: fc.constant("stringValue" as const), value: texts }),
    fc.record({ case: fc.constant("intValue" as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
    fc.record({ case: fc.constant("doubleValue" as const), value: fc.double() }),
    fc.record({ case: fc.constant("bytesValue" as const), value: fc.uint8Array({ maxLength: 9 }) }),
  );
}
const point = fc.record({ attributes, timeUnixNano: times, flags: fc.nat({ max: 3 }) });
const gauge = fc.record({
  case: fc.constant("gauge" as const),
  value: fc.record({
    dataPoints: fc.array(
      fc
        .tuple(point, fc.double())
        .map(([each, number]) => ({ ...each, value: { case: "asDouble" as const, value: number } })),
      { maxLength: 4 },
    ),
  }),
});
const histogram = fc.record({
  case: fc.constant("histogram" as const),
  value: fc.record({
    dataPoints: fc.array(
      fc
        .tuple(
          point,
          fc.array(fc.bigInt({ min: 0n, max: 9n }), { maxLength: 5 }),
          fc.array(fc.double(), { maxLength: 5 }),
        )
        .map(([each, bucketCounts, explicitBounds]) => ({ ...each, bucketCounts, explicitBounds, sum: 1 })),
      { maxLength: 3 },
    ),
  }),
});
const resource = fc.record({ attributes });
const metrics = fc.record({
  resourceMetrics: fc.array(
    fc.record({
      resource,
      scopeMetrics: fc.array(
        fc.record({
          metrics: fc.array(fc.record({ name: texts, unit: texts, data: fc.oneof(gauge, histogram) }), {
            maxLength: 3,
          }),
        }),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 2 },
  ),
});
const logs = fc.record({
  resourceLogs: fc.array(
    fc.record({
      resource,
      scopeLogs: fc.array(
        fc.record({
          logRecords: fc.array(
            fc.record({
              eventName: texts,
              timeUnixNano: times,
              attributes,
              severityNumber: fc.integer({ min: -9, max: 99 }),
            }),
            { maxLength: 3 },
          ),
        }),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 2 },
  ),
});
const samples = fc.array(fc.record({ value: fc.double(), timestamp }), { maxLength: 4 });
const label = fc.record({ name: fc.oneof(fc.constantFrom("__name__", "job", "a"), texts), value: texts });
const written = fc.record({
  timeseries: fc.array(fc.record({ labels: fc.array(label, { maxLength: 4 }), samples }), { maxLength: 4 }),
});
const written2 = fc.record({
  symbols: fc.array(texts, { maxLength: 5 }).map((rest) => ["", ...rest]),
  timeseries: fc.array(fc.record({ labelsRefs: fc.array(fc.nat({ max: 6 }), { maxLength: 6 }), samples }), {
    maxLength: 3,
  }),
});

/** What a body is spoilt by, before and after it is packed. */
const spoilt = fc.record({
  at: fc.nat(),
  by: fc.constantFrom("nothing", "nothing", "flip", "cut", "insert", "repeat"),
  byte: fc.nat({ max: 255 }),
});
type Spoilt = typeof spoilt extends fc.Arbitrary<infer T> ? T : never;
function spoil(bytes: Uint8Array, { at, by, byte }: Spoilt): Buffer {
  const all = Buffer.from(bytes);
  const place = all.length === 0 ? 0 : at % all.length;
  if (by === "flip" && all.length > 0) all[place] = byte;
  if (by === "cut") return all.subarray(0, place);
  if (by === "insert") return Buffer.concat([all.subarray(0, place), Buffer.from([byte]), all.subarray(place)]);
  if (by === "repeat") return Buffer.concat([all, all.subarray(place)]);
  return all;
}

const packings = {
  none: { headers: {}, pack: (bytes: Uint8Array) => Buffer.from(bytes), unpack: (bytes: Buffer) => bytes },
  gzip: { headers: { "content-encoding": "gzip" }, pack: (bytes: Uint8Array) => gzipSync(bytes), unpack: gunzipSync },
  snappy: {
    headers: { "content-encoding": "snappy" },
    pack: (bytes: Uint8Array) => Buffer.from(compress(bytes)),
    unpack: (bytes: Buffer) => Buffer.from(uncompress(bytes)),
  },
};
const type = "application/x-protobuf";

const stored = async () => {
  const [row] = await sql`select (select count(*)::int from series where tenant_id = ${id}) as series,
    (select count(*)::int from instances where tenant_id = ${id}) as instances`;
  return JSON.stringify(row);
};

/** An answer of OTLP: what was taken, or a Status; of what cannot be read nothing is stored. */
async function checkOtlp(answer: ToolAnswer, response: DescMessage, before: string): Promise<void> {
  expect(answer.headers["content-type"]).toBe(type);
  expect([200, 400, 413]).toContain(answer.status);
  if (answer.status === 200) return void fromBinary(response, answer.bytes);
  expect(fromBinary(StatusSchema, answer.bytes).message).toMatch(/\w/);
  expect(await stored()).toBe(before);
}

/** An answer of remote write; what is refused whole is said so. */
async function checkWrite(answer: ToolAnswer, _response: DescMessage, before: string): Promise<void> {
  expect([204, 400, 413]).toContain(answer.status);
  if (answer.status === 204) expect(answer.body).toBe("");
  else expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
  if (answer.status !== 204 && !answer.body.startsWith("all was stored but for ")) expect(await stored()).toBe(before);
}

function kind<S extends DescMessage>(
  schema: S,
  init: fc.Arbitrary<unknown>,
  path: string,
  packing: keyof typeof packings,
  check: typeof checkOtlp,
  response: DescMessage = schema,
  more: Record<string, string> = {},
) {
  return { schema: schema as DescMessage, init, path, packing: packings[packing], check, response, more };
}
const kinds = {
  "OTLP metrics": kind(
    ExportMetricsServiceRequestSchema,
    metrics,
    "/v1/metrics",
    "none",
    checkOtlp,
    ExportMetricsServiceResponseSchema,
  ),
  "OTLP metrics in gzip": kind(
    ExportMetricsServiceRequestSchema,
    metrics,
    "/v1/metrics",
    "gzip",
    checkOtlp,
    ExportMetricsServiceResponseSchema,
  ),
  "OTLP logs": kind(
    ExportLogsServiceRequestSchema,
    logs,
    "/v1/logs",
    "none",
    checkOtlp,
    ExportLogsServiceResponseSchema,
  ),
  "remote write 1.0": kind(WriteRequestSchema, written, "/api/v1/write", "snappy", checkWrite),
  "remote write 2.0": kind(RequestSchema, written2, "/api/v1/write", "snappy", checkWrite, RequestSchema, {
    "content-type": `${type};proto=io.prometheus.write.v2.Request`,
  }),
};

describe.each(Object.entries(kinds))(
  "%s, good and spoilt",
  (_, { schema, init, path, packing, check, response, more }) => {
    test("is answered in its form, and stored whole or not at all", { timeout: 1_800_000 }, async () => {
      await fc.assert(
        fc.asyncProperty(init, spoilt, spoilt, async (made, inside, outside) => {
          const message = toBinary(schema, create(schema, made as MessageInitShape<DescMessage>));
          const body = spoil(packing.pack(spoil(message, inside)), outside);
          const before = await stored();
          await check(
            await call("POST", path, body, { "content-type": type, ...packing.headers, ...more }),
            response,
            before,
          );
        }),
        { numRuns },
      );
    });
  },
);

test("OTLP over gRPC, good and spoilt", { timeout: 1_800_000 }, async () => {
  const path = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
  await fc.assert(
    fc.asyncProperty(metrics, spoilt, async (made, inside) => {
      const init = made as MessageInitShape<typeof ExportMetricsServiceRequestSchema>;
      const message = spoil(
        toBinary(ExportMetricsServiceRequestSchema, create(ExportMetricsServiceRequestSchema, init)),
        inside,
      );
      const body = [encodeEnvelope(0, message)];
      const before = await stored();
      const answer = await raw(server, "2", {
        path,
        headers: { ...headers, "content-type": "application/grpc" },
        body,
      });
      expect([Code.InvalidArgument, Code.ResourceExhausted, 0]).toContain(codeOf(answer));
      if (codeOf(answer) !== 0) expect(await stored()).toBe(before);
    }),
    { numRuns },
  );
});

test.each([
  ["gzip", gzipSync(Buffer.alloc(64 * 2 ** 20)), "/v1/metrics", { "content-encoding": "gzip" }],
  ["gzip of logs", gzipSync(Buffer.alloc(64 * 2 ** 20)), "/v1/logs", { "content-encoding": "gzip" }],
  [
    "snappy that declares it",
    Buffer.from([0x80, 0x80, 0x80, 0x20, 0, 0]),
    "/api/v1/write",
    { "content-encoding": "snappy" },
  ],
])("64 MiB in a few bytes: %s", async (_, body, path, more) => {
  expect((await call("POST", path, body, { "content-type": type, ...more })).status).toBe(413);
});

// The server runs in this process.
afterAll(() => expect(process.memoryUsage.rss() - rssBytes).toBeLessThan(2 ** 30));
