import { gzipSync } from "node:zlib";
import { envelope, type RawRequest } from "../support/clients.ts";
import { deep, double, empties, fixed64, lying, part, repeated, unknown } from "./hostile-protobuf.ts";

/** An export of OpenTelemetry that is cheap to send; in Protobuf, in JSON, or in both. */
export interface HostileExport {
  signal: "metrics" | "logs";
  binary?: Buffer;
  json?: Buffer;
}

/** What makes them, by name: each when it is sent, since together they take much memory. */
export type HostileExports = Record<string, () => HostileExport>;

/** The requests that carry an export: over HTTP in either form, and over gRPC. */
export function exportRequests(
  { signal, binary, json }: HostileExport,
  key: string,
  packed: boolean,
): { name: string; bytes: number; request: RawRequest }[] {
  const body = (bytes: Buffer) => (packed ? gzipSync(bytes, { level: 1 }) : bytes);
  const service = signal === "metrics" ? "MetricsService" : "LogsService";
  const http = (type: string, bytes: Buffer | undefined) => {
    if (bytes === undefined) return [];
    const headers = { "service-api-key": key, "content-type": type, ...(packed && { "content-encoding": "gzip" }) };
    return [{ name: type, bytes: bytes.length, request: { path: `/v1/${signal}`, headers, body: [body(bytes)] } }];
  };
  const grpc = (bytes: Buffer | undefined) => {
    if (bytes === undefined) return [];
    const path = `/opentelemetry.proto.collector.${signal}.v1.${service}/Export`;
    const type = { "service-api-key": key, "content-type": "application/grpc" };
    const headers = { ...type, ...(packed && { "grpc-encoding": "gzip" }) };
    return [
      { name: "gRPC", bytes: bytes.length, request: { path, headers, body: [envelope(body(bytes), packed ? 1 : 0)] } },
    ];
  };
  return [...http("application/x-protobuf", binary), ...http("application/json", json), ...grpc(binary)];
}

const letters = (count: number) => "x".repeat(count);
/** An element of JSON again and again. */
const list = (count: number, element: string) => `[${`${element},`.repeat(count - 1)}${element}]`;
const text = (value: string) => part(1, value);
const attribute = (key: string, value: Uint8Array) => Buffer.concat([part(1, key), part(2, value)]);
const attributes = (number: number, count: number) =>
  Buffer.concat(Array.from({ length: count }, (_, i) => part(number, attribute(`a${i}`, text(String(i))))));

/** The numbers of the fields of a metric that hold its points, and of those of a point. */
const [gauge, histogram, exponential, summary] = [5, 9, 10, 11];
const [pointAttributes, histogramAttributes] = [7, 9];

const timeNs = () => BigInt(Date.now()) * 1_000_000n;
const sample = (...more: Uint8Array[]) => Buffer.concat([fixed64(3, timeNs()), double(4, 1), ...more]);
const metric = (kind: number, ...points: Uint8Array[]) =>
  Buffer.concat([part(1, "m"), part(kind, ...points.map((point) => part(1, point)))]);
const scoped = (...metrics: Uint8Array[]) => part(2, ...metrics.map((each) => part(2, each)));
/** An export of what one resource holds. */
const exported = (...inside: Uint8Array[]) => part(1, ...inside);
const point = (kind: number, ...fields: Uint8Array[]) => exported(scoped(metric(kind, Buffer.concat(fields))));
const record = (...fields: Uint8Array[]) => exported(part(2, part(2, part(12, "e"), fixed64(1, timeNs()), ...fields)));
const resource = (...fields: Uint8Array[]) => part(1, ...fields);

const old = Buffer.concat([fixed64(3, 1_600_000_000_000_000_000n), double(4, 1)]);
const oldBuckets = Buffer.concat([old.subarray(0, 9), part(6, Buffer.alloc(1000 * 8)), part(7, Buffer.alloc(999 * 8))]);
/** Data points of 1,000 buckets, each with labels of its own. */
const manyBuckets = (count: number) => {
  const bounds = part(7, ...Array.from({ length: 999 }, (_, i) => double(1, i).subarray(1)));
  const fields = Buffer.concat([fixed64(3, timeNs()), part(6, Buffer.alloc(1000 * 8)), bounds]);
  const named = Array.from({ length: 30 }, (_, i) => part(histogramAttributes, attribute(`l${i}`, text("v"))));
  const points = Array.from({ length: count }, (_, i) =>
    Buffer.concat([fields, ...named, part(histogramAttributes, attribute("n", text(String(i))))]),
  );
  return exported(scoped(metric(histogram, ...points)));
};

const metrics = (binary: Buffer, json?: string): HostileExport => ({
  signal: "metrics",
  binary,
  ...(json !== undefined && { json: Buffer.from(json) }),
});
const logs = (binary: Buffer, json?: string): HostileExport => ({ ...metrics(binary, json), signal: "logs" });
const metricsJson = (inside: string) => `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[${inside}]}]}]}`;
const pointJson = (inside: string, kind = "gauge") =>
  metricsJson(`{"name":"m","${kind}":{"dataPoints":[{${inside}}]}}`);
const logsJson = (inside: string) => `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${inside}]}]}]}`;
const onlyJson = (json: string): HostileExport => ({ signal: "metrics", json: Buffer.from(json) });

/** Lists, maps and texts of points, of which there are `size` or as much. */
function ofPoints(size: number): HostileExports {
  return {
    "runs of attributes": () => metrics(point(gauge, sample(repeated(size, Buffer.from([0x3a, 0, 0x40, 0]))))),
    "empty attributes": () =>
      metrics(
        point(gauge, sample(empties(pointAttributes, size))),
        pointJson(`"asDouble":1,"attributes":${list(size, "{}")}`),
      ),
    "attributes at twice their bound": () =>
      metrics(
        point(gauge, sample(attributes(pointAttributes, 2000))),
        pointJson(`"asDouble":1,"attributes":${list(2000, '{"key":"a","value":{"intValue":1}}')}`),
      ),
    "labels at twice the bounds of their texts": () =>
      metrics(
        point(
          gauge,
          sample(
            ...Array.from({ length: 64 }, (_, i) =>
              part(pointAttributes, attribute(`${i}${letters(510)}`, text(letters(2048)))),
            ),
          ),
        ),
      ),
    "a label's text": () =>
      metrics(
        point(gauge, sample(part(pointAttributes, attribute("a", text(letters(size)))))),
        pointJson(`"asDouble":1,"attributes":[{"key":"a","value":{"stringValue":"${letters(size)}"}}]`),
      ),
    "a label's name": () => metrics(point(gauge, sample(part(pointAttributes, attribute(letters(size), text("a")))))),
    "elements of an attribute": () =>
      metrics(
        point(gauge, sample(part(pointAttributes, attribute("a", part(5, empties(1, size)))))),
        pointJson(`"attributes":[{"key":"a","value":{"arrayValue":{"values":${list(size, "{}")}}}}]`),
      ),
    "entries of an attribute": () =>
      metrics(
        point(gauge, sample(part(pointAttributes, attribute("a", part(6, empties(1, size)))))),
        pointJson(`"attributes":[{"key":"a","value":{"kvlistValue":{"values":${list(size, '{"key":"a"}')}}}}]`),
      ),
    "an attribute within others": () =>
      metrics(
        point(gauge, sample(part(pointAttributes, attribute("a", deep(size / 100, [1, 5]))))),
        pointJson(`"attributes":[{"key":"a","value":${'{"arrayValue":{"values":['.repeat(90)}${"]}}".repeat(90)}}]`),
      ),
    quantiles: () =>
      metrics(point(summary, empties(6, size)), pointJson(`"quantileValues":${list(size, "{}")}`, "summary")),
    "quantiles at twice their bound": () =>
      metrics(point(summary, ...Array.from({ length: 2000 }, (_, i) => part(6, double(1, i / 2000), double(2, i))))),
    "bounds without buckets": () =>
      metrics(
        point(histogram, part(7, repeated(size, double(1, 0.1).subarray(1)))),
        pointJson(`"explicitBounds":${list(size, "0")}`, "histogram"),
      ),
    "bounds one by one": () => metrics(point(histogram, repeated(size, double(7, 0.1)))),
    "buckets without bounds": () =>
      metrics(
        point(histogram, part(6, Buffer.alloc(size * 8))),
        pointJson(`"bucketCounts":${list(size, "1")}`, "histogram"),
      ),
    "buckets at twice their bound": () =>
      metrics(point(histogram, part(6, Buffer.alloc(2001 * 8)), part(7, Buffer.alloc(2000 * 8)))),
    exemplars: () =>
      metrics(point(gauge, sample(empties(5, size))), pointJson(`"asDouble":1,"exemplars":${list(size, "{}")}`)),
    "buckets of an exponential histogram": () =>
      metrics(
        point(exponential, part(8, part(2, Buffer.alloc(size)))),
        pointJson(`"positive":{"bucketCounts":${list(size, "0")}}`, "exponentialHistogram"),
      ),
    "times again and again": () => metrics(point(gauge, sample(repeated(size, fixed64(3, timeNs()))))),
    "points that are too old": () =>
      metrics(exported(scoped(metric(gauge, ...Array<Buffer>(Math.min(size, 50_000)).fill(old))))),
    "buckets that are too old": () =>
      metrics(exported(scoped(metric(histogram, ...Array<Buffer>(Math.min(size / 100, 190)).fill(oldBuckets))))),
    "new series of as many buckets as a point may have": () => metrics(manyBuckets(3)),
    "attributes of a histogram that goes on": () =>
      metrics(point(histogram, repeated(size, Buffer.concat([empties(histogramAttributes, 1), part(6)])))),
  };
}

/** What lies around points: resources, scopes, metrics and their texts. */
function ofMetrics(size: number): HostileExports {
  const large = resource(...Array.from({ length: 60 }, (_, i) => part(1, attribute(`a${i}`, text(letters(1000))))));
  const long = letters(size);
  const named = (...fields: Uint8Array[]) => exported(part(2, part(2, ...fields, part(gauge, part(1, sample())))));
  const ofResource = (...fields: Uint8Array[]) => exported(resource(...fields), scoped(metric(gauge, sample())));
  const ofScope = (...fields: Uint8Array[]) => exported(part(2, part(1, ...fields), part(2, metric(gauge, sample()))));
  return {
    "empty resources": () => metrics(empties(1, size), `{"resourceMetrics":${list(size, "{}")}}`),
    "empty scopes": () =>
      metrics(exported(empties(2, size)), `{"resourceMetrics":[{"scopeMetrics":${list(size, "{}")}}]}`),
    "empty metrics": () => metrics(exported(part(2, empties(2, size))), metricsJson(list(size, "{}").slice(1, -1))),
    "empty points": () =>
      metrics(
        exported(part(2, part(2, part(1, "m"), part(gauge, empties(1, size))))),
        metricsJson(`{"name":"m","gauge":{"dataPoints":${list(size, "{}")}}}`),
      ),
    "attributes of a resource": () =>
      metrics(ofResource(empties(1, size)), `{"resourceMetrics":[{"resource":{"attributes":${list(size, "{}")}}}]}`),
    "attributes of a resource at twice their bound": () => metrics(ofResource(attributes(1, 2000))),
    "elements of a resource's attribute": () => metrics(ofResource(part(1, attribute("a", part(5, empties(1, size)))))),
    "elements of a resource's many attributes": () =>
      metrics(
        ofResource(
          ...Array.from({ length: 1000 }, (_, i) => part(1, attribute(`a${i}`, part(5, empties(1, size / 1000))))),
        ),
      ),
    "a text of a resource": () => metrics(ofResource(part(1, attribute("a", text(long))))),
    "a name of a resource's attribute": () => metrics(ofResource(part(1, attribute(long, text("a"))))),
    "references of a resource": () => metrics(ofResource(empties(3, size))),
    "keys of a resource's reference": () => metrics(ofResource(part(3, empties(3, size)))),
    "scopes of a large resource": () => metrics(exported(large, repeated(size / 100, scoped(metric(gauge, sample()))))),
    "resources at the bound of a model": () =>
      metrics(
        Buffer.concat(
          Array.from({ length: size / 8000 }, (_, i) =>
            exported(
              resource(part(1, attribute("host.name", text(String(i)))), part(1, attribute("a", text(letters(8000))))),
              scoped(metric(gauge, sample())),
            ),
          ),
        ),
      ),
    "dimensions at their bounds": () =>
      metrics(
        ofResource(
          ...Array.from({ length: 64 }, (_, i) => part(1, attribute(`${i}${letters(250)}`, text(letters(1024))))),
        ),
      ),
    "a metric's name": () => metrics(named(part(1, long))),
    "a metric's description": () => metrics(named(part(1, "m"), part(2, long))),
    "a metric's unit": () => metrics(named(part(1, "m"), part(3, long))),
    "metadata of a metric": () => metrics(named(part(1, "m"), empties(12, size))),
    "the name of a scope": () => metrics(ofScope(part(1, long))),
    "attributes of a scope": () => metrics(ofScope(part(1, "s"), empties(3, size))),
  };
}

/** Log records and what lies in them. */
function ofLogs(size: number): HostileExports {
  return {
    "empty resources of logs": () => logs(empties(1, size), `{"resourceLogs":${list(size, "{}")}}`),
    "empty scopes of logs": () =>
      logs(exported(empties(2, size)), `{"resourceLogs":[{"scopeLogs":${list(size, "{}")}}]}`),
    "empty log records": () => logs(exported(part(2, empties(2, size))), logsJson(list(size, "{}").slice(1, -1))),
    "attributes of a log record": () =>
      logs(record(empties(6, size)), logsJson(`{"eventName":"e","attributes":${list(size, "{}")}}`)),
    "attributes of a log record at twice their bound": () => logs(record(attributes(6, 2000))),
    "elements of a log record's attribute": () => logs(record(part(6, attribute("a", part(5, empties(1, size)))))),
    "elements of many log records": () =>
      logs(repeated(100, record(part(6, attribute("a", part(5, empties(1, size / 100))))))),
    "elements of a log record's body": () => logs(record(part(5, part(5, empties(1, size))))),
    "a log record's body": () => logs(record(part(5, text(letters(size))))),
    "a log record's name": () => logs(exported(part(2, part(2, part(12, letters(size)))))),
    "fields of a log record that nobody knows": () => logs(record(unknown(size))),
    "resources of log records": () => logs(exported(resource(empties(1, size)), part(2, part(2, part(12, "e"))))),
  };
}

/** Fields that nobody knows, lengths that lie, and JSON that is no message. */
function broken(size: number): HostileExports {
  const more = unknown(size);
  return {
    "unknown fields of a request": () => metrics(more),
    "unknown fields of a resource's metrics": () => metrics(exported(more)),
    "unknown fields of a resource": () => metrics(exported(resource(more), scoped(metric(gauge, sample())))),
    "unknown fields of a scope's metrics": () => metrics(exported(part(2, more))),
    "unknown fields of a scope": () => metrics(exported(part(2, part(1, more), part(2, metric(gauge, sample()))))),
    "unknown fields of a metric": () =>
      metrics(exported(part(2, part(2, part(1, "m"), more, part(gauge, part(1, sample())))))),
    "unknown fields of a gauge": () =>
      metrics(exported(part(2, part(2, part(1, "m"), part(gauge, more, part(1, sample())))))),
    "unknown fields of a point": () => metrics(point(gauge, sample(more))),
    "unknown fields of points": () =>
      metrics(exported(scoped(metric(gauge, ...Array<Buffer>(100).fill(sample(unknown(size / 100))))))),
    "unknown fields of an attribute": () => metrics(point(gauge, sample(part(pointAttributes, part(1, "a"), more)))),
    "unknown fields of a value": () => metrics(point(gauge, sample(part(pointAttributes, attribute("a", more))))),
    "a length that lies": () => metrics(lying(1)),
    "a length that lies in a point": () => metrics(point(gauge, sample(lying(pointAttributes)))),
    "a length that lies in an attribute": () => metrics(point(gauge, sample(part(pointAttributes, lying(2))))),
    brackets: () => onlyJson("[".repeat(size)),
    "brackets that nobody knows": () => onlyJson(`{"x":${"[".repeat(size)}`),
    "numbers that nobody knows": () => onlyJson(`{"x":${list(size, "0")}}`),
    "objects that nobody knows": () => onlyJson(`{"x":${list(size, "{}")}}`),
    "members that nobody knows": () =>
      onlyJson(`{"x":{${Array.from({ length: size / 10 }, (_, i) => `"${i}":0`).join()}}}`),
    "a member again and again": () => onlyJson(`{${'"resourceMetrics":[],'.repeat(size / 10)}"x":0}`),
    "a text that nobody knows": () => onlyJson(`{"x":"${letters(size)}"}`),
    "escapes that nobody knows": () => onlyJson(`{"x":"${"\\u0041".repeat(size / 6)}"}`),
    "digits of a count": () => onlyJson(pointJson(`"count":${"1".repeat(size)}`, "histogram")),
    "digits of a value": () => onlyJson(pointJson(`"asDouble":0.${"1".repeat(size)}`)),
    "a mistake at the end": () => onlyJson(`{"x":${list(size, "{}")},"resourceMetrics":7}`),
  };
}

/** All of them, by name; `size` says how many of what they repeat, or how many characters a text has. */
export function hostileExports(size: number): HostileExports {
  return { ...ofPoints(size), ...ofMetrics(size), ...ofLogs(size), ...broken(size) };
}

/** Exports of which no two name the same, each with texts of `size` characters. */
export function differingExports(size: number, i: number): HostileExport[] {
  const long = `${i}${letters(size)}`;
  const named = (...fields: Uint8Array[]) => part(2, part(2, ...fields, part(gauge, part(1, sample()))));
  const host = part(1, attribute("host.name", text(`host ${i}`)));
  const large = Array.from({ length: 300 }, (_, n) => part(1, attribute(`${n}`, text(letters(size / 300)))));
  return [
    metrics(exported(resource(host, part(1, attribute("a", text(long)))), named(part(1, "m")))),
    metrics(
      exported(
        resource(part(1, attribute("b", part(5, empties(1, size / 20), text(long.slice(0, 100)))))),
        named(part(1, "m")),
      ),
    ),
    metrics(exported(resource(host, ...large), named(part(1, "m")))),
    metrics(exported(named(part(1, long)))),
    metrics(exported(named(part(1, "m"), part(2, long), part(3, long)))),
    metrics(exported(part(2, part(1, part(1, "s"), part(2, long)), part(2, metric(gauge, sample()))))),
    metrics(point(gauge, sample(part(pointAttributes, attribute("a", text(long)))))),
    logs(Buffer.concat([part(1, resource(part(1, attribute("c", text(long)))), part(2, part(2, part(12, "e"))))])),
    logs(record(part(6, attribute("a", text(long))))),
  ];
}
