import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { LoadRequest } from "../load/load.ts";
import { placed, processCpuMs } from "./machine.ts";
import { labelsOf, metricOf, metricsEach, stepMs, value } from "./points.ts";

/** Another store of points, as Debian installs it. */
export interface PointStore extends AsyncDisposable {
  name: string;
  port: number;
  put(count: number, series: number, baseMs: number): LoadRequest;
  /** Time of processor so far, µs, in steps of 10,000. */
  cpu(): Promise<number>;
}

const installed = (program: string) => spawnSync("which", [program]).status === 0;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

interface Program {
  name: string;
  program: string;
  args(dir: string, port: number): Promise<string[]>;
  /** Asked until it answers. */
  ready: string;
  put: PointStore["put"];
}

const programs: Program[] = [
  {
    name: "VictoriaMetrics (not durable when it answers)",
    program: "victoria-metrics",
    args: async (dir, port) => [`-storageDataPath=${dir}`, `-httpListenAddr=127.0.0.1:${port}`, "-retentionPeriod=12"],
    ready: "/health",
    put: lines("/write?precision=ms"),
  },
  {
    name: "InfluxDB",
    program: "influxd",
    async args(dir, port) {
      const other = await freePort();
      writeFileSync(
        join(dir, "influxdb.conf"),
        `reporting-disabled = true
bind-address = "127.0.0.1:${other}"
[meta]
dir = "${dir}/meta"
[data]
dir = "${dir}/data"
wal-dir = "${dir}/wal"
max-series-per-database = 0
query-log-enabled = false
[http]
bind-address = "127.0.0.1:${port}"
log-enabled = false
[monitor]
store-enabled = false
`,
      );
      return ["run", "-config", join(dir, "influxdb.conf")];
    },
    ready: "/query?q=CREATE+DATABASE+bench",
    put: lines("/write?db=bench&precision=ms"),
  },
  {
    name: "Prometheus, remote write",
    program: "prometheus",
    async args(dir, port) {
      writeFileSync(join(dir, "prometheus.yml"), "storage:\n  tsdb:\n    out_of_order_time_window: 1d\n");
      return [
        `--config.file=${join(dir, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(dir, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--web.enable-remote-write-receiver",
        "--log.level=error",
      ];
    },
    ready: "/-/ready",
    put: remoteWrite,
  },
];

/** Starts those that are installed, with empty stores, on the server's processor. */
export async function pointStores(stack: AsyncDisposableStack): Promise<PointStore[]> {
  const stores: PointStore[] = [];
  for (const each of programs) if (installed(each.program)) stores.push(stack.use(await start(each)));
  return stores;
}

async function start({ name, program, args, ready, put }: Program): Promise<PointStore> {
  const dir = mkdtempSync(join(tmpdir(), "belfry-bench-"));
  const port = await freePort();
  const child = spawn(...placed("server", [program, ...(await args(dir, port))]), { stdio: "ignore" });
  const ended = once(child, "exit");
  for (let i = 0; ; i++) {
    const method = ready.startsWith("/query") ? "POST" : "GET";
    const good = await fetch(`http://127.0.0.1:${port}${ready}`, { method }).then(
      ({ ok }) => ok,
      () => false,
    );
    if (good) break;
    if (i > 300 || child.exitCode !== null) throw new Error(`${program} does not start`);
    await sleep(100);
  }
  return {
    name,
    port,
    put,
    cpu: async () => processCpuMs(child.pid) * 1000,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export const placesOf = (body: Buffer, part: Buffer): number[] => {
  const places: number[] = [];
  for (let at = body.indexOf(part); at >= 0; at = body.indexOf(part, at + part.byteLength)) places.push(at);
  return places;
};

/** InfluxDB's line protocol. */
function lines(path: string): PointStore["put"] {
  return (count, series, baseMs) => {
    const text = Array.from({ length: count }, (_, index) => {
      const labels = Object.entries(labelsOf(Math.floor(index / metricsEach))).map(([key, label]) => `${key}=${label}`);
      return `${metricOf(index % metricsEach)},${labels.join(",")} value=${value} ${baseMs}\n`;
    });
    const body = Buffer.from(text.join(""));
    const vary = {
      times: "digits" as const,
      timesAt: placesOf(body, Buffer.from(String(baseMs))),
      valuesAt: placesOf(body, Buffer.from(String(value))),
      hostsAt: placesOf(body, Buffer.from("web-")).map((at) => at + 4),
      metricsAt: placesOf(body, Buffer.from("metric_")).map((at) => at + 7),
    };
    const rest = { baseMs, hostSets: series / count, stepMs, metricsEach };
    return { http: 1, method: "POST", path, headers: {}, body, vary: { ...vary, ...rest } };
  };
}

/** Prometheus' protobuf; snappy's form has the bytes as they are, so that they can be overwritten. */
export function remoteWrite(count: number, series: number, baseMs: number): LoadRequest {
  const parts: Buffer[] = [];
  let part: Uint8Array[] = [];
  let partBytes = 0;
  let bytes = 0;
  function close() {
    const head = Buffer.from([61 << 2, 0, 0]);
    head.writeUInt16LE(partBytes - 1, 1);
    parts.push(head, ...part.map((each) => Buffer.from(each)));
    part = [];
    partBytes = 0;
  }
  for (let index = 0; index < count; index++) {
    const one = timeSeries(index, baseMs);
    // No number lies across the border of two parts.
    if (partBytes + one.byteLength > 65_536) close();
    part.push(one);
    partBytes += one.byteLength;
    bytes += one.byteLength;
  }
  close();
  parts.unshift(Buffer.from(new BinaryWriter().uint32(bytes).finish()));
  const body = Buffer.concat(parts);
  const double = Buffer.alloc(8);
  double.writeDoubleLE(value);
  const vary = {
    times: "varint" as const,
    timesAt: placesOf(body, Buffer.from(new BinaryWriter().int64(baseMs).finish())),
    valuesAt: placesOf(body, double),
    hostsAt: placesOf(body, Buffer.from("web-")).map((at) => at + 4),
    metricsAt: placesOf(body, Buffer.from("metric_")).map((at) => at + 7),
  };
  const headers = {
    "content-encoding": "snappy",
    "content-type": "application/x-protobuf",
    "x-prometheus-remote-write-version": "0.1.0",
  };
  const rest = { baseMs, hostSets: series / count, stepMs, metricsEach };
  return { http: 1, method: "POST", path: "/api/v1/write", headers, body, vary: { ...vary, ...rest } };
}

function timeSeries(index: number, timeMs: number): Uint8Array {
  const labels = { __name__: metricOf(index % metricsEach), ...labelsOf(Math.floor(index / metricsEach)) };
  const writer = new BinaryWriter().tag(1, WireType.LengthDelimited).fork();
  for (const [key, label] of Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))) {
    writer.tag(1, WireType.LengthDelimited).fork();
    writer.tag(1, WireType.LengthDelimited).string(key).tag(2, WireType.LengthDelimited).string(label).join();
  }
  writer.tag(2, WireType.LengthDelimited).fork();
  return writer.tag(1, WireType.Bit64).double(value).tag(2, WireType.Varint).int64(timeMs).join().join().finish();
}
