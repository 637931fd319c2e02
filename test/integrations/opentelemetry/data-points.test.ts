import { fromBinary, fromJson } from "@bufbuild/protobuf";
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
import {
  type ExportMetricsServiceRequest,
  ExportMetricsServiceRequestSchema,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { dataPointsOf, factsOf } from "../../../src/integrations/opentelemetry/data-points.ts";
import { entityOfResource } from "../../../src/integrations/opentelemetry/resource.ts";

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

/** Its points as `name{labels} value`, without times. */
function shown({ resourceMetrics }: ExportMetricsServiceRequest) {
  return resourceMetrics.flatMap(({ scopeMetrics }) =>
    scopeMetrics.flatMap(({ metrics, scope }) =>
      metrics.flatMap((metric) =>
        [...dataPointsOf(metric, scope)].flat().map(({ metric: name, labels, value, timeMs }) => {
          expect(Math.abs(Date.now() - timeMs)).toBeLessThan(600_000);
          return `${name}${JSON.stringify(labels)} ${value}`;
        }),
      ),
    ),
  );
}

const scope = '"otel.scope.name":"shop"';
const expected = [
  `orders{${scope},"http.method":"GET","ok":"true"} 3`,
  `queue{${scope}} -2`,
  `temperature{${scope},"room":"7"} 20.5`,
  ...[`latency.count{${scope}} 3`, `latency.sum{${scope}} 5.9`, `latency.min{${scope}} 0.2`, `latency.max{${scope}} 5`],
  `latency.bucket{${scope},"le":"0.5"} 1`,
  `latency.bucket{${scope},"le":"1"} 2`,
  `latency.bucket{${scope},"le":"+Inf"} 3`,
  ...["count{} 1", "sum{} 4", "min{} 4", "max{} 4"].map((each) => `exponential.${each.replace("{}", `{${scope}}`)}`),
  `observed{${scope}} 7`,
];

describe.each([
  ["cumulative", AggregationTemporality.CUMULATIVE],
  ["delta", AggregationTemporality.DELTA],
] as const)("each instrument of the SDK, %s", (name, temporality) => {
  const decoded = {
    Protobuf: (all: ResourceMetrics) =>
      fromBinary(ExportMetricsServiceRequestSchema, ProtobufMetricsSerializer.serializeRequest(all) as Uint8Array),
    JSON: (all: ResourceMetrics) =>
      fromJson(
        ExportMetricsServiceRequestSchema,
        JSON.parse(Buffer.from(JsonMetricsSerializer.serializeRequest(all) as Uint8Array).toString()),
        { ignoreUnknownFields: true },
      ),
  };

  test.each(Object.entries(decoded))("in %s", async (_form, decode) => {
    const request = decode(await collected(temporality));
    expect(shown(request).sort()).toEqual(expected.toSorted());
    const orders = request.resourceMetrics[0]?.scopeMetrics[0]?.metrics.find((each) => each.name === "orders");
    expect(orders && factsOf(orders)).toEqual({
      units: "1",
      description: "Orders taken",
      temporality: name,
      monotonic: true,
    });
    expect(entityOfResource(request.resourceMetrics[0]?.resource)).toEqual({
      dimensions: { "host.name": "web-1" },
      metadata: { "os.type": "linux" },
    });
  });
});
