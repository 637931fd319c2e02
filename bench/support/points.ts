import { create, toBinary } from "@bufbuild/protobuf";
import {
  DataReceiverService,
  type PutMetricsRequest,
  PutMetricsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { LoadRequest, Variation } from "../load/load.ts";
import { callsOf } from "./calls.ts";

/** Metrics of one entity. */
export const metricsEach = 50;
/** The time between two points of a series, ms. */
export const stepMs = 1000;

/** The labels of an entity by its number. */
export const labelsOf = (host: number) => ({
  host: `web-${String(host).padStart(8, "0")}`,
  service: "checkout",
  region: "eu-central-1",
  zone: "eu-central-1b",
});

/** The name of a metric by its number. */
export const metricOf = (metric: number) => `metric_${String(metric).padStart(8, "0")}`;

/** The value in a body before the first request: unlike any other number in it. */
export const value = 12.34;

function request(count: number, baseMs: number, metricsEach: number): PutMetricsRequest {
  const metrics = Array.from({ length: count }, (_, index) => ({
    metric: metricOf(index % metricsEach),
    timestamp: BigInt(baseMs),
    value,
    dimensions: labelsOf(Math.floor(index / metricsEach)),
  }));
  return create(PutMetricsRequestSchema, { metrics });
}

/**
 * PutMetrics of this many points a request, one of each of `series` series in turn, each `stepMs` after the one before, with
 * values of two decimals; over gRPC and over JSON.
 */
export function putPoints(
  count: number,
  series: number,
  baseMs: number,
  key: Record<string, string>,
  ofHost = metricsEach,
) {
  const message = request(count, baseMs, ofHost);
  const method = DataReceiverService.method.putMetrics;
  const calls = callsOf(method, message, { method: "POST", path: "/v1/data-receiver/metrics" }, key);
  const vary = (load: LoadRequest, times: Variation["times"]): LoadRequest => {
    const body = Buffer.from(load.body ?? []);
    const marks = {
      timesAt: placesOf(body, times === "digits" ? Buffer.from(String(baseMs)) : varint(message)),
      valuesAt: placesOf(body, times === "digits" ? Buffer.from(String(value)) : double(value)),
      hostsAt: placesOf(body, Buffer.from("web-")).map((at) => at + 4),
      metricsAt: placesOf(body, Buffer.from("metric_")).map((at) => at + 7),
    };
    for (const places of Object.values(marks)) if (places.length !== count) throw new Error("a place was not found");
    return { ...load, vary: { times, baseMs, hostSets: series / count, stepMs, metricsEach: ofHost, ...marks } };
  };
  return { grpc: vary(calls.grpc, "varint"), json: vary(calls.rest, "digits") };
}

/** The time of the first point as it is in the message. */
function varint(message: PutMetricsRequest): Buffer {
  const point = { metrics: [{ timestamp: message.metrics[0]?.timestamp ?? 0n }] };
  return Buffer.from(toBinary(PutMetricsRequestSchema, create(PutMetricsRequestSchema, point))).subarray(-6);
}

function double(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(number);
  return bytes;
}

function placesOf(body: Buffer, part: Buffer): number[] {
  const places: number[] = [];
  for (let at = body.indexOf(part); at >= 0; at = body.indexOf(part, at + part.byteLength)) places.push(at);
  return places;
}
