import { setTimeout as sleep } from "node:timers/promises";
import { create, fromBinary, toBinary, toJsonString } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
// @ts-expect-error: the package has no types
import { compress } from "snappyjs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";
import {
  ExportLogsServiceRequestSchema,
  LogsService,
} from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import {
  ExportMetricsServiceRequestSchema,
  MetricsService,
} from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { WriteRequestSchema } from "#gen/prometheus/remote_write_pb.ts";
import { onOnePostgres } from "../support/one-postgres.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { tool } from "./calls.ts";

const server = await testServer(
  { BELFRY_INGEST_WAIT: "500ms" },
  { lockTimeoutMs: 120_000, statementTimeoutMs: 120_000, deadlineMsMax: 120_000 },
);
const { sql } = server.database;
const { headers } = await testTenant(sql);
const call = tool(server, headers);

const now = Date.now();
const timeUnixNano = BigInt(now) * 1_000_000n;
const labels = [
  { name: "__name__", value: "up" },
  { name: "job", value: "node" },
];
const samples = [{ value: 1, timestamp: BigInt(now) }];
const written = Buffer.from(
  compress(toBinary(WriteRequestSchema, create(WriteRequestSchema, { timeseries: [{ labels, samples }] }))),
);
const point = { timeUnixNano, value: { case: "asDouble" as const, value: 1 } };
const data = { case: "gauge" as const, value: { dataPoints: [point] } };
const metrics = create(ExportMetricsServiceRequestSchema, {
  resourceMetrics: [{ scopeMetrics: [{ metrics: [{ name: "m", data }] }] }],
});
const logs = create(ExportLogsServiceRequestSchema, {
  resourceLogs: [{ scopeLogs: [{ logRecords: [{ eventName: "e", timeUnixNano }] }] }],
});

const protobuf = { "content-type": "application/x-protobuf" };
const version2 = { "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" };
const transport = createGrpcTransport({ baseUrl: server.url });

/** What a sender hears: the status over HTTP, the code over gRPC, and when to send again. */
interface Told {
  status: number;
  retrySec: number;
  written?: unknown;
}

async function overHttp(path: string, body: Buffer, more: Record<string, string>): Promise<Told> {
  const answer = await call("POST", path, body, more);
  const told = { status: answer.status, retrySec: Number(answer.headers["retry-after"] ?? 0) };
  if (path === "/api/v1/write")
    return { ...told, written: answer.headers["x-prometheus-remote-write-samples-written"] };
  if (answer.status === 200) return told;
  const type = more["content-type"] ?? "application/json";
  expect(answer.headers["content-type"]).toBe(type);
  const code = type === "application/json" ? answer.body.code : fromBinary(StatusSchema, answer.bytes).code;
  expect(code).toBe(Code.Unavailable);
  return told;
}

async function overGrpc(send: () => Promise<unknown>): Promise<Told> {
  try {
    await send();
    return { status: 200, retrySec: 0 };
  } catch (thrown) {
    const error = ConnectError.from(thrown);
    const [info] = error.findDetails(RetryInfoSchema);
    expect(error.code).toBe(Code.Unavailable);
    return { status: 503, retrySec: Math.ceil(durationMs(info?.retryDelay as never) / 1000) };
  }
}

const ways: Record<string, () => Promise<Told>> = {
  "remote write 1.0": () => overHttp("/api/v1/write", written, { ...protobuf, "content-encoding": "snappy" }),
  // Its message is empty in both versions.
  "remote write 2.0": () => overHttp("/api/v1/write", Buffer.from([0]), { ...version2, "content-encoding": "snappy" }),
  "OTLP metrics over HTTP with Protobuf": () =>
    overHttp("/v1/metrics", Buffer.from(toBinary(ExportMetricsServiceRequestSchema, metrics)), protobuf),
  "OTLP metrics over HTTP with JSON": () =>
    overHttp("/v1/metrics", Buffer.from(toJsonString(ExportMetricsServiceRequestSchema, metrics)), {}),
  "OTLP metrics over gRPC": () => overGrpc(() => createClient(MetricsService, transport).export(metrics, { headers })),
  "OTLP logs over HTTP with Protobuf": () =>
    overHttp("/v1/logs", Buffer.from(toBinary(ExportLogsServiceRequestSchema, logs)), protobuf),
  "OTLP logs over HTTP with JSON": () =>
    overHttp("/v1/logs", Buffer.from(toJsonString(ExportLogsServiceRequestSchema, logs)), {}),
  "OTLP logs over gRPC": () => overGrpc(() => createClient(LogsService, transport).export(logs, { headers })),
};
const all = Object.entries(ways);

describe("while more comes than can be stored", () => {
  let release = () => {};
  let waiting: Promise<unknown>[] = [];

  beforeAll(async () => {
    for (const [, send] of all) expect(await send()).toMatchObject({ retrySec: 0 });
    const locked = Promise.withResolvers<void>();
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    void sql.begin(async (tx) => {
      await tx`lock table events, metric_heads in access exclusive mode`;
      locked.resolve();
      await released;
    });
    await locked.promise;
    // A batch of each kind waits for the lock, and the rest waits longer than it may.
    for (const name of ["remote write 1.0", "OTLP logs over gRPC"]) {
      const send = ways[name] as () => Promise<Told>;
      waiting.push(send());
      await sleep(200);
      waiting.push(...Array.from({ length: 8 }, send));
      await sleep(300);
      for (let answer: unknown = "waits"; answer === "waits"; )
        answer = await Promise.race([send(), sleep(500, "waits")]);
    }
  });
  afterAll(() => release());

  test.each(all)("%s is told to come again, and when", async (name, send) => {
    const told = await send();
    expect(told).toMatchObject({ status: 503 });
    expect(told.retrySec).toBeGreaterThan(0);
    // Also of a request whose body was not read.
    if (name === "remote write 2.0") expect(told.written).toBe("0");
  });

  test("what was let in is stored, and all are taken again", async () => {
    release();
    await Promise.all(waiting);
    waiting = [];
    for (const [, send] of all) expect(await send()).toMatchObject({ retrySec: 0 });
  });
});

describe("when the server fails", () => {
  beforeAll(async () => {
    await sql`alter table metric_heads rename to metric_heads_away`;
    await sql`alter table instances rename to instances_away`;
  });
  afterAll(async () => {
    await sql`alter table metric_heads_away rename to metric_heads`;
    await sql`alter table instances_away rename to instances`;
  });

  test.each(all.filter(([name]) => name !== "remote write 2.0"))("%s is told to come again", async (_, send) => {
    expect(await send()).toMatchObject({ status: 503, retrySec: 1 });
  });
});

describe("when what a resource says cannot be stored", () => {
  const text = (key: string, value: string) => ({ key, value: { value: { case: "stringValue" as const, value } } });
  const resource = { attributes: [text("host.name", "web-1"), text("os.type", "linux")] };
  const rows = {
    logs: {
      body: toJsonString(
        ExportLogsServiceRequestSchema,
        create(ExportLogsServiceRequestSchema, {
          resourceLogs: [{ resource, scopeLogs: [{ logRecords: [{ eventName: "e" }] }] }],
        }),
      ),
      stored: (tenantId: string) => sql`select tenant_id from instances where tenant_id = ${tenantId}`,
    },
    metrics: {
      body: toJsonString(
        ExportMetricsServiceRequestSchema,
        create(ExportMetricsServiceRequestSchema, {
          resourceMetrics: [{ resource, scopeMetrics: [{ metrics: [{ name: "m", data }] }] }],
        }),
      ),
      stored: (tenantId: string) => sql`select metric from series where tenant_id = ${tenantId}`,
    },
  };
  beforeAll(async () => {
    await sql`
      create function refused() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`;
  });

  onOnePostgres("triggers").each(["logs", "metrics"] as const)(
    "%s are told to come again, and are not stored twice then",
    async (signal) => {
      const tenant = await testTenant(sql);
      const { body, stored } = rows[signal];
      const send = () => tool(server, tenant.headers)("POST", `/v1/${signal}`, Buffer.from(body));
      await sql`
      create or replace trigger refused before insert or update on entities
      for each row when (new.metadata <> '{}') execute function refused()`;
      expect((await send()).status).toBe(503);
      expect(await stored(tenant.id)).toHaveLength(0);
      await sql`drop trigger refused on entities`;
      expect((await send()).status).toBe(200);
      expect(await stored(tenant.id)).toHaveLength(1);
      const [entity] = await sql`select metadata from entities where tenant_id = ${tenant.id}`;
      expect(entity).toEqual({ metadata: { "os.type": "linux" } });
    },
  );
});
