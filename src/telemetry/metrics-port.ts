import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { StartError } from "../db/start-error.ts";
import type { Histogram } from "../histogram.ts";
import { type Family, families, type Sources } from "./families.ts";
import type { RequestCounts } from "./requests.ts";

/** The port of Prometheus' metrics. */
export interface MetricsPort {
  /** For example `http://127.0.0.1:9464/metrics`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Gauges of prom-client whose names end as those of counters do. */
const misnamed = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

/** What the port answers. */
export interface MetricsText {
  readonly contentType: string;
  read(): Promise<string>;
  stop(): void;
}

/** The metrics of this process, its own and those of `sources`, all with these labels. */
export async function metricsText(
  own: { sources: Sources; requests: RequestCounts } | undefined,
  labels: Readonly<Record<string, string>> = {},
): Promise<MetricsText> {
  // Loaded where there is such a port only.
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  collectDefaultMetrics({ register: registry });
  for (const name of misnamed) registry.removeSingleMetric(name);
  for (const family of own ? families(own.sources, own.requests) : []) {
    registry.registerMetric(metricOf(family) as never);
  }
  return { contentType: registry.contentType, read: () => registry.metrics(), stop: () => registry.clear() };
}

/** Opens the port. @throws StartError when it cannot listen */
export async function metricsPort(
  { host, port }: { host: string; port: number },
  { contentType, read, stop }: MetricsText,
): Promise<MetricsPort> {
  let reading: Promise<string> | undefined;
  const server = createServer({ headersTimeout: 5000, requestTimeout: 5000 }, async (request, response) => {
    if (request.url?.split("?", 1)[0] !== "/metrics" || !/^(GET|HEAD)$/.test(request.method ?? "")) {
      return response.writeHead(404, { "content-type": "text/plain" }).end("metrics are at GET /metrics\n");
    }
    try {
      reading ??= read().finally(() => (reading = undefined));
      const text = await reading;
      response.writeHead(200, { "content-type": contentType }).end(text);
    } catch (error) {
      response.writeHead(500, { "content-type": "text/plain" }).end(`${(error as Error).message}\n`);
    }
  });
  server.maxConnections = 32;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(notOpened(error, host, port)));
    server.listen(port, host, resolve);
  });
  server.on("error", () => {}); // a connection that could not be taken, for want of file descriptors
  const { address, port: taken } = server.address() as AddressInfo;
  return {
    url: `http://${address.includes(":") ? `[${address}]` : address}:${taken}/metrics`,
    async close() {
      server.close();
      server.closeAllConnections();
      stop();
    },
  };
}

function notOpened(error: NodeJS.ErrnoException, host: string, port: number) {
  return new StartError(`port ${port} on ${host} cannot be opened (${error.code}); set BELFRY_METRICS_ADDRESS`);
}

interface Value {
  metricName?: string;
  labels: Readonly<Record<string, string | number>>;
  value: number;
}

/** A metric as prom-client's registry reads it. */
function metricOf({ name, type, help, read }: Family) {
  const get = async () => ({
    name,
    type,
    help,
    values: [...read()].flatMap(([labels, value]) => valuesOf(name, labels, value)),
  });
  return { name, type, help, get };
}

function valuesOf(name: string, labels: Value["labels"], value: number | Histogram): Value[] {
  if (typeof value === "number") return [{ labels, value }];
  let count = 0;
  const buckets = value.counts.map((inRange, i): Value => {
    count += inRange;
    return { metricName: `${name}_bucket`, labels: { ...labels, le: value.bounds[i] ?? "+Inf" }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: value.sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

/** Several texts in Prometheus' format as one: each metric is described once, with the samples of all. */
export function mergedMetrics(texts: readonly string[]): string {
  const merged = new Map<string, { head: string; samples: string }>();
  for (const text of texts) {
    for (const metric of text.split(/^(?=# HELP )/m)) {
      const [, head = "", samples = ""] = /^((?:#[^\n]*\n)*)(.*?)\n*$/s.exec(metric) ?? [];
      if (head === "") continue;
      const name = head.split(" ", 3)[2] as string;
      const known = merged.get(name);
      if (known === undefined) merged.set(name, { head, samples });
      else if (samples !== "") known.samples += known.samples === "" ? samples : `\n${samples}`;
    }
  }
  return `${Array.from(merged.values(), ({ head, samples }) => head + samples + (samples && "\n")).join("\n")}`;
}
