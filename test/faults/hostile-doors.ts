import { gzipSync } from "node:zlib";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
// @ts-expect-error: the package has no types
import { compress } from "snappyjs";
import { RequestSchema } from "#gen/io/prometheus/write/v2/request_pb.ts";
import { ExportLogsServiceRequestSchema } from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ExportMetricsServiceRequestSchema } from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { ExportTraceServiceRequestSchema } from "#gen/opentelemetry/proto/collector/trace/v1/trace_service_pb.ts";
import { WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { deep, empties, lying, part, repeated, unknown, varint } from "./hostile-protobuf.ts";

/** A way to pack a body, with the headers that say so. */
interface Packing {
  name: string;
  headers: Readonly<Record<string, string>>;
  pack(bytes: Buffer): Uint8Array;
}

/** What a route takes: messages of Protobuf, JSON that is like a sample, or both, each packed in some ways. */
export interface Door {
  schema?: DescMessage;
  /** Headers of requests in Protobuf. */
  binary?: Readonly<Record<string, string>>;
  sample?: unknown;
  packings: readonly Packing[];
}

/** A body that is cheap to send. */
export interface HostileBody {
  name: string;
  form: "binary" | "json";
  make(): Buffer;
}

const plain: Packing = { name: "plain", headers: {}, pack: (bytes) => bytes };
const gzip: Packing = {
  name: "gzip",
  headers: { "content-encoding": "gzip" },
  pack: (bytes) => gzipSync(bytes, { level: 1 }),
};
const snappy: Packing = { name: "snappy", headers: { "content-encoding": "snappy" }, pack: (bytes) => compress(bytes) };

const protobuf = { "content-type": "application/x-protobuf" };
const alert = {
  labels: { alertname: "a", job: "b" },
  annotations: { summary: "c" },
  startsAt: "2026-01-01T00:00:00Z",
  endsAt: "2026-01-01T00:00:00Z",
  generatorURL: "http://example.com",
};
const attributes = [{ key: "a", value: { arrayValue: { values: [{ stringValue: "b" }] } } }];
const point = { attributes, timeUnixNano: "1", asDouble: 1, bucketCounts: ["1"], explicitBounds: [1] };

/** The doors of other tools, by integration and operation: a test demands that each operation with a body is here. */
export const doors: Readonly<Record<string, readonly Door[]>> = {
  "alertmanager/postAlerts": [{ sample: [alert], packings: [plain, gzip] }],
  "alertmanager/postSilences": [
    {
      sample: {
        id: "97fc3587-58d6-476e-b249-eba16ee45573",
        matchers: [{ name: "alertname", value: "a", isRegex: false, isEqual: true }],
        startsAt: "2026-01-01T00:00:00Z",
        endsAt: "2036-01-01T00:00:00Z",
        createdBy: "a",
        comment: "b",
      },
      packings: [plain, gzip],
    },
  ],
  "alertmanager-webhook/post": [
    {
      sample: { version: "4", groupLabels: { a: "b" }, alerts: [{ ...alert, status: "firing" }] },
      packings: [plain, gzip],
    },
  ],
  "prometheus-remote-write/write": [
    { schema: WriteRequestSchema, binary: protobuf, packings: [snappy] },
    {
      schema: RequestSchema,
      binary: { "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" },
      packings: [snappy],
    },
  ],
  "opentelemetry/exportMetrics": [
    {
      schema: ExportMetricsServiceRequestSchema,
      binary: protobuf,
      sample: {
        resourceMetrics: [
          {
            resource: { attributes },
            scopeMetrics: [
              {
                scope: { name: "s" },
                metrics: [
                  { name: "m", unit: "u", gauge: { dataPoints: [point] } },
                  { name: "h", histogram: { dataPoints: [point] } },
                ],
              },
            ],
          },
        ],
      },
      packings: [plain, gzip],
    },
  ],
  "opentelemetry/exportLogs": [
    {
      schema: ExportLogsServiceRequestSchema,
      binary: protobuf,
      sample: {
        resourceLogs: [
          {
            resource: { attributes },
            scopeLogs: [{ logRecords: [{ eventName: "e", body: { stringValue: "x" }, attributes }] }],
          },
        ],
      },
      packings: [plain, gzip],
    },
  ],
  "opentelemetry/exportTraces": [
    {
      schema: ExportTraceServiceRequestSchema,
      binary: protobuf,
      sample: { resourceSpans: [{ resource: { attributes }, scopeSpans: [{ spans: [{ name: "s", attributes }] }] }] },
      packings: [plain, gzip],
    },
  ],
};

/** Makes the bodies that a door has to withstand, each of up to `size` bytes. */
export function hostileBodies({ schema, sample }: Door, size: number): HostileBody[] {
  return [
    ...(schema === undefined ? [] : binaryBodies(schema, size)),
    ...(sample === undefined ? [] : jsonBodies(sample, size)),
  ];
}

type Wrap = (bytes: Buffer) => Buffer;

/** Walks over the fields of a message, each once: runs of empty elements, long texts, unknown fields, depth, false lengths. */
function binaryBodies(schema: DescMessage, size: number): HostileBody[] {
  const bodies: HostileBody[] = [];
  const body = (name: string, make: () => Buffer) => bodies.push({ name, form: "binary", make });
  const walked = new Set<string>();

  function message(desc: DescMessage, path: string, wrap: Wrap) {
    if (walked.has(desc.typeName)) return;
    walked.add(desc.typeName);
    body(`${path}: unknown fields`, () => wrap(unknown(Math.floor(size / 4))));
    for (const field of desc.fields) ofField(field, `${path}.${field.name}`, wrap);
  }

  function ofField(field: DescField, path: string, wrap: Wrap) {
    const { number } = field;
    if (field.message !== undefined) {
      body(`${path}: empty values`, () => wrap(empties(number, Math.floor(size / 3))));
      body(`${path}: a false length`, () => wrap(lying(number)));
      body(`${path}: depth`, () => wrap(deep(5000, [number])));
      message(field.message, path, (bytes) => wrap(part(number, bytes)));
    } else if (field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES) {
      body(`${path}: a long text`, () => wrap(part(number, Buffer.alloc(size, 0x78))));
      body(`${path}: empty texts`, () => wrap(empties(number, Math.floor(size / 3))));
    } else {
      const eight = field.scalar === ScalarType.DOUBLE || field.scalar === ScalarType.FIXED64;
      const one = Buffer.from([...varint(number * 8 + (eight ? 1 : 0)), ...(eight ? Buffer.alloc(8) : [1])]);
      body(`${path}: again and again`, () => wrap(repeated(Math.floor(size / one.length), one)));
      if (field.fieldKind === "list") body(`${path}: packed`, () => wrap(part(number, Buffer.alloc(size & ~7))));
    }
  }

  message(schema, schema.name, (bytes) => bytes);
  return bodies;
}

/** Replaces each part of a sample by what is costly there. */
function jsonBodies(sample: unknown, size: number): HostileBody[] {
  const bodies: HostileBody[] = [];
  const times = (text: string, share = 1) => text.repeat(Math.floor(size / share / text.length));
  const body = (path: string, name: string, inside: () => string) =>
    bodies.push({ name: `${path}: ${name}`, form: "json", make: () => Buffer.from(withPart(sample, path, inside())) });

  function walk(value: unknown, path: string) {
    body(path, "lists in lists", () => times("["));
    if (typeof value === "string") {
      body(path, "a long text", () => `"${times("x")}"`);
      body(path, "escapes", () => `"${times("\\u0041")}"`);
    } else if (Array.isArray(value)) {
      body(path, "empty objects", () => `[${times("{},")}{}]`);
      body(path, "numbers", () => `[${times("1,")}1]`);
      for (const [i, each] of value.entries()) walk(each, `${path}/${i}`);
    } else if (typeof value === "object" && value !== null) {
      const entries = () => Array.from({ length: size / 16 }, (_, i) => `"k${i}":"v"`).join(",");
      body(path, "many members", () => `{${entries()}}`);
      body(path, "one member again and again", () => `{${times('"x":[],')}"x":1}`);
      for (const [key, each] of Object.entries(value)) walk(each, `${path}/${key}`);
    }
  }

  walk(sample, "");
  return bodies;
}

/** The sample as JSON, with other text in the place of one part. */
function withPart(sample: unknown, path: string, text: string): string {
  const hole = "\u0000hole";
  const [, ...keys] = path.split("/");
  const copy = structuredClone({ root: sample }) as Record<string, unknown>;
  let parent = copy;
  for (const key of ["root", ...keys].slice(0, -1)) parent = parent[key] as Record<string, unknown>;
  parent[keys.at(-1) ?? "root"] = hole;
  return JSON.stringify(copy.root).replace(JSON.stringify(hole), () => text);
}
