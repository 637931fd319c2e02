import { create, toBinary } from "@bufbuild/protobuf";
import { JsonMetricsSerializer, ProtobufMetricsSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  AggregationType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from "@opentelemetry/sdk-metrics";
import { describe, expect, test } from "vitest";
import { ExportMetricsServiceRequestSchema } from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { readPoint, valuesOf } from "../../../src/integrations/opentelemetry/data-points.ts";
import { walkOf } from "../../../src/integrations/opentelemetry/fields.ts";
import { type MetricPart, partsOfBytes } from "../../../src/integrations/opentelemetry/metric-parts.ts";
import { pointNames } from "../../../src/integrations/opentelemetry/point-names.ts";
import { protobufOfJson } from "../../../src/integrations/opentelemetry/protobuf-of-json.ts";
import { type NewSeries, noPoints } from "../../../src/metrics/point-batch.ts";
import type { KeptKey } from "../../../src/metrics/series-key.ts";
import { seriesMemory } from "../../../src/metrics/series-memory.ts";

/** What OpenTelemetry's SDK collects of one instrument of each kind. */
async function collected(temporality: AggregationTemporality): Promise<ResourceMetrics> {
  const exporter = new InMemoryMetricExporter(temporality);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({
    resource: resourceFromAttributes({ "host.name": "web-1", "os.type": "linux" }),
    readers: [reader],
    views: [{ instrumentName: "exponential", aggregation: { type: AggregationType.EXPONENTIAL_HISTOGRAM } }],
  });
  const meter = provider.getMeter("shop");
  meter.createCounter("orders", { unit: "1", description: "Orders taken" }).add(3, { "http.method": "GET", ok: true });
  meter.createUpDownCounter("queue").add(-2);
  meter.createGauge("temperature").record(20.5, { room: "7" });
  const explicit = { advice: { explicitBucketBoundaries: [0.5, 1] } };
  const latency = meter.createHistogram("latency", explicit);
  for (const value of [0.2, 0.7, 5]) latency.record(value);
  meter.createHistogram("exponential").record(4);
  meter.createObservableGauge("observed").addCallback((result) => result.observe(7));
  await reader.forceFlush();
  const [all] = exporter.getMetrics();
  await provider.shutdown();
  if (all === undefined) throw new Error("nothing was collected");
  return all;
}

const bytesMax = 16 * 2 ** 20;
const walk = walkOf(1e9);
const partsOf = (bytes: Uint8Array) => partsOfBytes(bytes, walk);
const known = seriesMemory().of("tenant");
/** How many series were made of their labels. */
let resolved = 0;

/** What is new of a request, and its values as `name{labels} value`, without times. Nothing of it is learnt. */
function read(parts: Iterable<MetricPart | undefined>) {
  const names = pointNames({ known, walk, nowMs: 0, reserve: (series) => (resolved += series) });
  const points = noPoints();
  for (const part of parts) {
    if (part === undefined) continue;
    names.begin(part);
    for (const bytes of part.points()) {
      if (bytes === undefined) continue;
      const point = readPoint(bytes, part.kind, walk);
      expect(Math.abs(Date.now() - point.timeMs)).toBeLessThan(600_000);
      const values = valuesOf(point, part.kind);
      expect(names.add(points, point, values, point.timeMs)).toBe(values.length);
    }
  }
  const fresh = points.series.filter((each): each is NewSeries => "metric" in each);
  const shown = fresh.map(({ metric, labels }, i) => `${metric}${JSON.stringify(labels)} ${points.values[i]}`);
  return { fresh, shown };
}
const shown = (parts: Iterable<MetricPart | undefined>) => read(parts).shown;

const scope = '"otel.scope.name":"shop"';
const expected = [
  `orders{${scope},"http.method":"GET","ok":"true"} 3`,
  `queue{${scope}} -2`,
  `temperature{${scope},"room":"7"} 20.5`,
  `latency.count{${scope}} 3`,
  `latency.sum{${scope}} 5.9`,
  `latency.min{${scope}} 0.2`,
  `latency.max{${scope}} 5`,
  `latency.bucket{${scope},"le":"0.5"} 1`,
  `latency.bucket{${scope},"le":"1"} 2`,
  `latency.bucket{${scope},"le":"+Inf"} 3`,
  ...["count{} 1", "sum{} 4", "min{} 4", "max{} 4"].map((each) => `exponential.${each.replace("{}", `{${scope}}`)}`),
  `observed{${scope}} 7`,
];

describe.each([
  ["cumulative", AggregationTemporality.CUMULATIVE],
  ["delta", AggregationTemporality.DELTA],
] as const)("each instrument of the SDK, %s", (_name, temporality) => {
  const parts = {
    Protobuf: async (all: ResourceMetrics) => partsOf(ProtobufMetricsSerializer.serializeRequest(all) as Uint8Array),
    JSON: async (all: ResourceMetrics) => {
      const json = Buffer.from(JsonMetricsSerializer.serializeRequest(all) as Uint8Array);
      const call = { reserve: () => {}, pace: () => undefined };
      return partsOf(await protobufOfJson(json, ExportMetricsServiceRequestSchema, bytesMax, call));
    },
  };

  test.each(Object.entries(parts))("in %s", async (_form, partsIn) => {
    const { fresh, shown } = read(await partsIn(await collected(temporality)));
    expect(shown.sort()).toEqual(expected.toSorted());
    expect(fresh.find(({ metric }) => metric === "orders")).toMatchObject({
      units: "1",
      description: "Orders taken",
      dimensions: { "host.name": "web-1" },
    });
  });
});

test("an attribute named as the label by which a point's values differ has a prefix", () => {
  const attribute = (key: string, value: string) => ({
    key,
    value: { value: { case: "stringValue" as const, value } },
  });
  const point = (first: string) => ({
    timeUnixNano: BigInt(Date.now()) * 1_000_000n,
    attributes: [attribute("le", first), attribute("attribute.le", "2"), attribute("quantile", "3")],
  });
  const histogram = (first: string) => ({ ...point(first), bucketCounts: [1n, 1n], explicitBounds: [5] });
  const metrics = [
    { name: "h", data: { case: "histogram" as const, value: { dataPoints: [histogram("a"), histogram("b")] } } },
    {
      name: "s",
      data: {
        case: "summary" as const,
        value: { dataPoints: [{ ...point("a"), quantileValues: [{ quantile: 0.5, value: 7 }] }] },
      },
    },
    {
      name: "g",
      data: {
        case: "gauge" as const,
        value: { dataPoints: [{ ...point("a"), value: { case: "asInt" as const, value: 4n } }] },
      },
    },
  ];
  const request = create(ExportMetricsServiceRequestSchema, { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
  const ofHistogram = (first: string) => {
    const labels = `"attribute.le":"${first}","attribute.attribute.le":"2","quantile":"3"`;
    return [`h.count{${labels}} 0`, `h.bucket{${labels},"le":"5"} 1`, `h.bucket{${labels},"le":"+Inf"} 2`];
  };
  const ofSummary = '"le":"a","attribute.le":"2","attribute.quantile":"3"';
  expect(shown(partsOf(toBinary(ExportMetricsServiceRequestSchema, request)))).toEqual([
    ...ofHistogram("a"),
    ...ofHistogram("b"),
    `s.count{${ofSummary}} 0`,
    `s.sum{${ofSummary}} 0`,
    `s{${ofSummary},"quantile":"0.5"} 7`,
    'g{"le":"a","attribute.le":"2","quantile":"3"} 4',
  ]);
});

test("labels are resolved once: what names a series again is looked up, however its values change", async () => {
  const sent = async () =>
    partsOf(
      ProtobufMetricsSerializer.serializeRequest(await collected(AggregationTemporality.CUMULATIVE)) as Uint8Array,
    );
  for (const [i, series] of read(await sent()).fresh.entries())
    known.learn(series.key as KeptKey, { ...series, number: i + 1, entityId: Buffer.from("host") }, series, 0);
  const before = resolved;
  for (let i = 0; i < 5; i++) expect(read(await sent()).fresh).toEqual([]);
  expect(resolved).toBe(before);
});
