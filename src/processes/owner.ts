import cluster from "node:cluster";
import type { Logger } from "pino";
import type { Config } from "../config/settings.ts";
import { builtConsole } from "../console/built-files.ts";
import { connectOnce } from "../db/connect.ts";
import { sessionName } from "../db/session-name.ts";
import { calledUrl } from "../http/address.ts";
import { certifiedNames } from "../http/certificate.ts";
import { liveCertificate } from "../http/live-certificate.ts";
import { preparedDatabase } from "../prepared-database.ts";
import { openRequestsInWork, requestsFd } from "../rpc/requests-in-work.ts";
import type { Server } from "../server.ts";
import { type MetricsPort, mergedMetrics, metricsPort, metricsText } from "../telemetry/metrics-port.ts";
import { version } from "../version.ts";
import { type Fleet, type Options, startFleet } from "./fleet.ts";
import type { Assignment } from "./messages.ts";
import { openDispatch } from "./port-dispatch.ts";
import { grantedMemory, heapLimit, isHeapLimit } from "./process-count.ts";

/** What serving processes serve. */
export type Machine = Omit<Server, "connections" | "notReady" | "metrics">;

/** Beyond leaving and draining: the pools close, and the last lines are written. */
const stopMs = 30_000;

/** Of those that serve: fewer collections of young objects, each of them longer (design/processes-and-start). */
const youngObjects = "--max-semi-space-size=16";
/** Of this process, from start.js. */
const ownYoungObjects = "--max-semi-space-size=1";

/**
 * Starts what a machine has once (the embedded database, the schema, the certificate, the port), and the processes that serve the
 * port, which are started again when they die. Each of these is what a server of its own would be: they share the database and nothing
 * else. `nodeOptions`: those of the environment. @throws StartError in one clear line for what the operator can mend
 */
export async function startMachine(
  config: Config,
  log: Logger,
  processes: number,
  nodeOptions: string,
): Promise<Machine> {
  await using starting = new AsyncDisposableStack();
  const requests = openRequestsInWork();
  // An operator's own bound stays.
  const isBounded = isHeapLimit(`${nodeOptions} ${process.execArgv.join(" ")}`);
  const limits = isBounded ? [] : [heapLimit(grantedMemory(), processes)];
  cluster.setupPrimary({
    stdio: ["inherit", "inherit", "inherit", "ipc", requests ?? "ignore"],
    execArgv: [youngObjects, ...limits, ...process.execArgv.filter((each) => each !== ownYoungObjects)],
  });
  let pair: Assignment["certificate"];
  const { promise: assigned, resolve: assign } = Promise.withResolvers<Awaited<Options["assigned"]>>();
  const fleet = startFleet({ processes, requestsFd: requests, assigned, certificate: () => pair, log });
  const database = await preparedDatabase(config, log, starting, processes).catch(async (error) => {
    await fleet.stop(0);
    throw error;
  });
  starting.defer(() => fleet.stop(config.leaveMs + config.drainMs + stopMs));
  const tls = config.plaintext ? undefined : await liveCertificate(config, log);
  starting.defer(() => tls?.stop());
  pair = tls && { cert: tls.cert, certByName: tls.certByName, key: tls.key };
  assign({ database, caFile: tls?.caFile, requestsFd: requests === undefined ? undefined : requestsFd });
  let metrics: MetricsPort | undefined;
  starting.defer(() => metrics?.close());
  await fleet.started;
  if (config.metricsAddress !== undefined) {
    metrics = await metricsPort(config.metricsAddress, await ofAll(fleet));
    log.info({ url: metrics.url }, "metrics are served");
  }
  const stopping = new AbortController();
  starting.defer(() => stopping.abort());
  const dispatch = await openDispatch(config, fleet, () => {
    const renewed = tls?.renewed();
    if (renewed === undefined) return;
    pair = { cert: renewed.cert, certByName: renewed.certByName, key: renewed.key };
    fleet.order({ order: "certificate", pair });
  });
  starting.defer(() => {
    // While it leaves, the port is open as ever; then each process hears that no further connection comes.
    setTimeout(() => {
      dispatch.close();
      fleet.order({ order: "last-connection" });
    }, config.leaveMs);
  });
  log.info({ version, node: process.version, processes }, "serving");
  const running = starting.move();
  let stopped: Promise<void> | undefined;
  return {
    url: calledUrl(config.host, dispatch.port, tls !== undefined),
    caFile: tls?.caFile,
    metricsUrl: metrics?.url,
    names: tls === undefined ? [] : certifiedNames(tls.cert),
    firstKey: database.firstKey,
    tenantless: database.tenantless,
    async withDatabase(work) {
      const { sql, close } = connectOnce(database.url, sessionName("start"));
      return await work(sql).finally(close);
    },
    // Here once, before each process reads it.
    buildConsole: builtConsole({ dataDir: config.dataDir, follow: false, signal: stopping.signal }).files,
    stop() {
      stopped ??= running.disposeAsync();
      return stopped;
    },
  };
}

/** The metrics of each process under its number, and those of this one. */
async function ofAll(fleet: Fleet) {
  const own = await metricsText(undefined, { process: "owner" });
  const texts = async () => mergedMetrics([counted(fleet), ...(await fleet.metrics()), await own.read()]);
  return { ...own, read: texts };
}

function counted(fleet: Fleet): string {
  const serving = fleet.members().filter(({ state }) => state === "serving").length;
  return [
    "# HELP belfry_processes Processes that serve the port.",
    "# TYPE belfry_processes gauge",
    `belfry_processes ${serving}`,
    "",
    "# HELP belfry_process_deaths_total Serving processes that have died, and were replaced.",
    "# TYPE belfry_process_deaths_total counter",
    `belfry_process_deaths_total ${fleet.deaths()}`,
    "",
  ].join("\n");
}
