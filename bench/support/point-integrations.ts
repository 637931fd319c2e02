import { create } from "@bufbuild/protobuf";
import {
  type ExportMetricsServiceRequest,
  ExportMetricsServiceRequestSchema,
  MetricsService,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import type { LoadRequest } from "../load/load.ts";
import { callsOf } from "./calls.ts";
import type { Generator } from "./generator.ts";
import type { Target } from "./point-ingest.ts";
import { placesOf, remoteWrite } from "./point-stores.ts";
import { labelsOf, metricOf, metricsEach, stepMs, value } from "./points.ts";
import { table } from "./table.ts";

/** The same points as other tools send them: over remote write, and over OTLP by gRPC and in JSON, a resource for each host. */
export function integrationTargets(key: Record<string, string>): Pick<Target, "name" | "put">[] {
  return [
    {
      name: "Belfry, remote write",
      put(...args) {
        const request = remoteWrite(...args);
        return { ...request, headers: { ...key, ...request.headers } };
      },
    },
    { name: "Belfry, OTLP over gRPC", put: (...args) => otlp("grpc", key, ...args) },
    { name: "Belfry, OTLP in JSON", put: (...args) => otlp("rest", key, ...args) },
  ];
}

function requestOf(count: number, baseMs: number): ExportMetricsServiceRequest {
  const attribute = ([name, text]: [string, string]) => ({
    key: name,
    value: { value: { case: "stringValue" as const, value: text } },
  });
  const timeUnixNano = BigInt(baseMs) * 1_000_000n;
  const point = { timeUnixNano, value: { case: "asDouble" as const, value } };
  const metrics = Array.from({ length: metricsEach }, (_, i) => ({
    name: metricOf(i),
    data: { case: "gauge" as const, value: { dataPoints: [point] } },
  }));
  const resourceMetrics = Array.from({ length: count / metricsEach }, (_, host) => ({
    resource: { attributes: Object.entries(labelsOf(host)).map(attribute) },
    scopeMetrics: [{ metrics }],
  }));
  return create(ExportMetricsServiceRequestSchema, { resourceMetrics });
}

function otlp(
  form: "grpc" | "rest",
  key: Record<string, string>,
  count: number,
  series: number,
  baseMs: number,
): LoadRequest {
  const http = { method: "POST", path: "/v1/metrics" } as const;
  const call = callsOf(MetricsService.method.export, requestOf(count, baseMs), http, key)[form];
  const body = Buffer.from(call.body ?? []);
  const [time, double] = [Buffer.alloc(8), Buffer.alloc(8)];
  time.writeBigUInt64LE(BigInt(baseMs) * 1_000_000n);
  double.writeDoubleLE(value);
  const inText = form === "rest";
  const marks = {
    timesAt: placesOf(body, inText ? Buffer.from(String(baseMs)) : time),
    valuesAt: placesOf(body, inText ? Buffer.from(String(value)) : double),
    metricsAt: placesOf(body, Buffer.from("metric_")).map((at) => at + 7),
    // A host stands once for all of its metrics.
    hostsAt: placesOf(body, Buffer.from("web-")).flatMap((at) => Array<number>(metricsEach).fill(at + 4)),
  };
  const times = inText ? "digits" : "nanoseconds";
  return { ...call, vary: { times, baseMs, hostSets: series / count, stepMs, metricsEach, ...marks } };
}

interface Measure {
  generator: Generator;
  series: number;
  baseMs: number;
  rounds: number;
  countMs: number;
}

const [pointsEach, connections] = [2000, 4];
/** What is aimed at: processor time of PutMetrics over gRPC in relation to another's. */
const aims: Readonly<Record<string, string>> = { "Belfry, remote write": "0.8", "Belfry, OTLP over gRPC": "0.6" };
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Processor time a point of each, in turns: medians of the rounds, and that of the first in relation to it. */
export async function integrationTable(targets: readonly Target[], measure: Measure): Promise<string> {
  const { generator, series, baseMs, rounds, countMs } = measure;
  const cpuUs = new Map<string, number[]>();
  const rates = new Map<string, number[]>();
  for (let round = -1; round < rounds; round++) {
    for (const { name, port, put, cpu } of targets) {
      const load = { port, request: put(pointsEach, series, baseMs), connections, streams: 1, leadInMs: 100 };
      const before = (await cpu?.()) ?? 0;
      const { bad, answered, perSec } = await generator.run({ ...load, countMs });
      if (bad > 0) throw new Error(`${name}: ${bad} of ${answered} answers were not good`);
      if (round < 0) continue;
      cpuUs.set(name, [...(cpuUs.get(name) ?? []), (((await cpu?.()) ?? 0) - before) / answered / pointsEach]);
      rates.set(name, [...(rates.get(name) ?? []), perSec * pointsEach]);
    }
  }
  const first = cpuUs.get(targets[0]?.name ?? "") ?? [];
  const rows = [...cpuUs].map(([name, all]) => {
    const ratio = median(all.map((each, i) => (first[i] ?? 0) / each)).toFixed(2);
    const rate = Math.round(median(rates.get(name) ?? [])).toLocaleString("en");
    return [name, rate, median(all).toFixed(2), ratio, aims[name] ?? ""];
  });
  const title = `${pointsEach} points a request of ${series} series, ${connections} connections`;
  return `\n${table([title, "points/s", "CPU µs/point", "ratio by CPU", "aim"], rows)}\n\nratio: PutMetrics over gRPC to this one.\n`;
}
