import type { Logger } from "pino";
import type { Config } from "../config/settings.ts";
import type { RequestRecord } from "../rpc/context.ts";
import { lostLines } from "../rpc/log.ts";
import type { Sources } from "./families.ts";
import { metricsPort, metricsText } from "./metrics-port.ts";
import { protocolOf, requestCounts } from "./requests.ts";
import { openTraces, type TracedRequest } from "./traces.ts";

type ListenAddress = NonNullable<Config["metricsAddress"]>;

/** What this server reports of itself to its operators. */
export interface Telemetry {
  /** Where the metrics are; undefined: there is no port of theirs. */
  readonly metricsUrl: string | undefined;
  /** The metrics, where another process has the port. */
  readonly metrics: (() => Promise<string>) | undefined;
  /** A request is over. */
  ended(record: RequestRecord, request: TracedRequest, status: number | undefined): void;
  stop(): Promise<void>;
}

/**
 * Opens the port of metrics and begins to send traces, where they are asked for; without both it costs nothing. A `process` whose port
 * another one owns opens none: its metrics bear its number.
 */
export async function startTelemetry(
  { metricsAddress, tracesUrl }: Pick<Config, "metricsAddress" | "tracesUrl">,
  measured: Omit<Sources, "lostLogLines">,
  log: Logger,
  process?: number,
): Promise<Telemetry> {
  const traces = tracesUrl === undefined ? undefined : await openTraces(tracesUrl);
  const sources: Sources = { ...measured, lostLogLines: () => lostLines(log) };
  const requests = metricsAddress && requestCounts();
  const labels: Record<string, string> = process === undefined ? {} : { process: String(process) };
  const text = requests && (await metricsText({ sources, requests }, labels));
  const metrics = text && process === undefined ? await metricsPort(metricsAddress as ListenAddress, text) : undefined;
  if (metrics !== undefined) log.info({ url: metrics.url }, "metrics are served");
  return {
    metricsUrl: metrics?.url,
    metrics: process === undefined ? undefined : text?.read,
    ended(record, request, status) {
      if (requests !== undefined) {
        const type = request.headers["content-type"] as string | undefined;
        requests.note(record, protocolOf(request.url, type), status ?? 0);
      }
      traces?.note(record, request);
    },
    async stop() {
      await Promise.all([metrics?.close(), traces?.stop()]);
    },
  };
}
