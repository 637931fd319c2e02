import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import fc from "fast-check";
// @ts-expect-error: the package has no types
import { compress } from "snappyjs";
import { expect, test } from "vitest";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { RequestSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import {
  ExportMetricsServiceRequestSchema,
  ExportMetricsServiceResponseSchema,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { storedSeries } from "../metrics/points.ts";
import { cases } from "../support/cases.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { type TestTenant, testTenant } from "../support/tenant.ts";
import { tool } from "./calls.ts";

const server = await testServer();
const { sql } = server.database;
const hourMs = 3_600_000;
const now = Date.now();

interface Sent {
  metric: string;
  dimensions: { job: string; instance: string };
  labels: Record<string, string>;
  timeMs: number;
  value: number;
  unit: string;
}

/** How many points of a request were refused. */
type Way = (tenant: TestTenant, sent: readonly Sent[]) => Promise<number>;

const point = ({ metric, dimensions, labels, timeMs, value, unit }: Sent) => ({
  metric,
  dimensions,
  labels,
  timestamp: BigInt(timeMs),
  value,
  ...(unit !== "" && { metadataFields: { units: unit } }),
});

const receivers = {
  gRPC: createClient(DataReceiverService, transport(server.target, "grpc", {})),
  JSON: createClient(DataReceiverService, transport(server.target, "connect-json", {})),
};

const put =
  (protocol: keyof typeof receivers): Way =>
  async ({ headers }, sent) =>
    (await receivers[protocol].putMetrics({ metrics: sent.map(point) }, { headers })).failed;

const stream: Way = async ({ headers }, sent) => {
  async function* points() {
    for (const each of sent) yield { metric: { case: "canonical" as const, value: point(each) } };
  }
  return (await receivers.gRPC.putMetric(points(), { headers })).failed;
};

const attributes = (texts: Record<string, string>) =>
  Object.entries(texts).map(([key, value]) => ({ key, value: { value: { case: "stringValue" as const, value } } }));

/** A resource for each point, and a metric for each, so that they come in this order. */
const exported = (sent: readonly Sent[]) =>
  create(ExportMetricsServiceRequestSchema, {
    resourceMetrics: sent.map(({ metric, dimensions, labels, timeMs, value, unit }) => ({
      resource: {
        attributes: attributes(dimensions),
        entityRefs: [{ type: "host", idKeys: Object.keys(dimensions) }],
      },
      scopeMetrics: [
        {
          metrics: [
            {
              name: metric,
              unit,
              data: {
                case: "gauge" as const,
                value: {
                  dataPoints: [
                    {
                      attributes: attributes(labels),
                      timeUnixNano: BigInt(timeMs) * 1_000_000n,
                      value: { case: "asDouble" as const, value },
                    },
                  ],
                },
              },
            },
          ],
        },
      ],
    })),
  });

const otlp: Way = async ({ headers }, sent) => {
  const body = Buffer.from(toBinary(ExportMetricsServiceRequestSchema, exported(sent)));
  const type = { "content-type": "application/x-protobuf" };
  const { status, bytes } = await tool(server, headers)("POST", "/v1/metrics", body, type);
  expect(status).toBe(200);
  return Number(fromBinary(ExportMetricsServiceResponseSchema, bytes).partialSuccess?.rejectedDataPoints ?? 0n);
};

const otlpJson: Way = async ({ headers }, sent) => {
  const body = toJson(ExportMetricsServiceRequestSchema, exported(sent));
  const answer = await tool(server, headers)("POST", "/v1/metrics", body);
  expect(answer.status).toBe(200);
  return Number(answer.body.partialSuccess?.rejectedDataPoints ?? 0);
};

/** The labels as Prometheus writes them: sorted. */
const labelsOf = ({ metric, dimensions, labels }: Sent) =>
  Object.entries({ __name__: metric, ...dimensions, ...labels }).sort(([a], [b]) => (a < b ? -1 : 1));
const snappy = { "content-encoding": "snappy", "content-type": "application/x-protobuf" };
const samplesOf = ({ timeMs, value }: Sent) => [{ timestamp: BigInt(timeMs), value }];

const write1: Way = async ({ headers }, sent) => {
  const timeseries = sent.map((each) => ({
    labels: labelsOf(each).map(([name, value]) => ({ name, value })),
    samples: samplesOf(each),
  }));
  const bytes = Buffer.from(compress(toBinary(WriteRequestSchema, create(WriteRequestSchema, { timeseries }))));
  const { status } = await tool(server, headers)("POST", "/api/v1/write", bytes, snappy);
  // It says only whether any was refused.
  return status === 204 ? 0 : Number.NaN;
};

const write2: Way = async ({ headers }, sent) => {
  const symbols = [""];
  const symbol = (text: string) => {
    const place = symbols.indexOf(text);
    return place < 0 ? symbols.push(text) - 1 : place;
  };
  const timeseries = sent.map((each) => ({
    labelsRefs: labelsOf(each).flat().map(symbol),
    samples: samplesOf(each),
    metadata: { unitRef: symbol(each.unit) },
  }));
  const bytes = Buffer.from(compress(toBinary(RequestSchema, create(RequestSchema, { symbols, timeseries }))));
  const type = { ...snappy, "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" };
  const answer = await tool(server, headers)("POST", "/api/v1/write", bytes, type);
  return sent.length - Number(answer.headers["x-prometheus-remote-write-samples-written"]);
};

const ways: Record<string, Way> = {
  "PutMetrics over gRPC": put("gRPC"),
  "PutMetrics in JSON": put("JSON"),
  "a stream of PutMetric": stream,
  OTLP: otlp,
  "OTLP in JSON": otlpJson,
  "remote write 1.0": write1,
  "remote write 2.0": write2,
};

const long = "v".repeat(1025);
const sent: fc.Arbitrary<Sent> = fc.record({
  metric: fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom("cpu", "disk", "mémoire") },
    { weight: 1, arbitrary: fc.constantFrom("bad\u0001name", "m".repeat(256)) },
  ),
  dimensions: fc.record({ job: fc.constantFrom("shop", "bank"), instance: fc.constantFrom("a", "b") }),
  labels: fc.oneof(
    { weight: 6, arbitrary: fc.constant({}) },
    {
      weight: 9,
      arbitrary: fc.dictionary(fc.constantFrom("k", "zone"), fc.constantFrom("1", "ü", ""), { maxKeys: 2 }),
    },
    { weight: 1, arbitrary: fc.constant({ k: long }) },
  ),
  timeMs: fc.oneof(
    { weight: 12, arbitrary: fc.integer({ min: now - 20, max: now }) },
    { weight: 4, arbitrary: fc.integer({ min: now - 20 * hourMs, max: now }) },
    { weight: 1, arbitrary: fc.constantFrom(now - 25 * hourMs, now + hourMs) },
  ),
  value: fc
    .oneof(fc.integer({ min: -9, max: 9 }), fc.double({ noNaN: true, noDefaultInfinity: true }))
    .map((value) => value + 0), // JSON has no -0
  unit: fc.constantFrom("", "said"),
});
/** Points of which those that name a unit name the same one. */
const request = (maxLength: number) =>
  fc
    .tuple(fc.array(sent, { minLength: 1, maxLength }), fc.constantFrom("s", "By"))
    .map(([all, unit]) => all.map((each) => ({ ...each, unit: each.unit && unit })));
const isGood = ({ metric, labels, timeMs }: Sent) =>
  metric.length < 256 && !metric.includes("\u0001") && labels.k !== long && timeMs > now - 24 * hourMs && timeMs <= now;

/** What should be there: of each series the last value of each time, and the unit that was said last. */
function modelOf(all: readonly Sent[], units: boolean) {
  const model = new Map<string, { unit: string; points: Map<number, number> }>();
  for (const each of all.filter(isGood)) {
    const labels = Object.entries(each.labels).filter(([, value]) => value !== "");
    const key = JSON.stringify([each.dimensions.job, each.dimensions.instance, each.metric, labels.sort()]);
    const known = model.get(key) ?? { unit: "", points: new Map() };
    model.set(key, known);
    known.points.set(each.timeMs, each.value);
    if (units) known.unit = each.unit || known.unit;
  }
  return Object.fromEntries(
    [...model].map(([key, { unit, points }]) => [key, { unit, points: [...points].sort(([a], [b]) => a - b) }]),
  );
}

async function storedOf(tenantId: string) {
  const found = await storedSeries(sql, tenantId, now - 48 * hourMs, now + 2 * hourMs);
  const rows = await sql<{ number: number; units: string; dimensions: Record<string, string> }[]>`
    select s.number::float8 as number, s.units, e.dimensions from series s
    join entities e on e.tenant_id = s.tenant_id and e.id = s.entity_id where s.tenant_id = ${tenantId}`;
  const facts = new Map(rows.map((row) => [row.number, row]));
  return Object.fromEntries(
    found.map(({ number, metric, labels, points }) => {
      const { units = "", dimensions: { job, instance } = {} } = facts.get(number) ?? {};
      const key = JSON.stringify([job, instance, metric, Object.entries(labels).sort()]);
      return [key, { unit: units, points: points.map(([timeMs, value]) => [timeMs, value]) }];
    }),
  );
}

test.each(Object.entries(ways))(
  "%s stores what is good, and refuses what is not, whatever is known",
  { timeout: 300_000 },
  async (_, way) => {
    await fc.assert(
      fc.asyncProperty(fc.array(request(12), { minLength: 1, maxLength: 5 }), async (requests) => {
        const tenant = await testTenant(sql);
        // The second time all of it is known: by its bytes, by its names, or by other bytes.
        for (const each of [...requests, ...requests.map((request) => request.toReversed()), ...requests]) {
          const refused = await way(tenant, each);
          const wanted = each.filter((one) => !isGood(one)).length;
          if (way === write1) expect(refused).toEqual(wanted === 0 ? 0 : Number.NaN);
          else expect(refused).toBe(wanted);
        }
        expect(await storedOf(tenant.id)).toEqual(modelOf(requests.flat(), way !== write1));
      }),
      { numRuns: cases(40) },
    );
  },
);

test("series that several ways name are the same, and what each says of them last counts", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...Object.values(ways)), request(6)), {
        minLength: 2,
        maxLength: 12,
      }),
      async (requests) => {
        const tenant = await testTenant(sql);
        for (const [way, each] of requests) await way(tenant, each);
        const all = requests.flatMap(([way, each]) => each.map((one) => (way === write1 ? { ...one, unit: "" } : one)));
        expect(await storedOf(tenant.id)).toEqual(modelOf(all, true));
      },
    ),
    { numRuns: cases(80) },
  );
}, 300_000);
