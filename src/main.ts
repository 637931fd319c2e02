import cluster from "node:cluster";
import { writeSync } from "node:fs";
import { ConnectError } from "@connectrpc/connect";
import { allCommands, helpOf, troubleWith, type Usage, usageLine } from "./cli/command-line.ts";
import { consoleCommand, consoleUsage } from "./cli/console.ts";
import { credentialCommand, credentialUsage } from "./cli/credentials.ts";
import { distributeCommand, distributeUsage } from "./cli/distribute.ts";
import { entityCommand, entityUsage } from "./cli/entities.ts";
import { lostDatabase } from "./cli/lost-database.ts";
import { type PrometheusWish, prometheusLines, prometheusWish } from "./cli/prometheus.ts";
import { schemaCommand, schemaUsage } from "./cli/schema.ts";
import { tenantCommand, tenantUsage } from "./cli/tenants.ts";
import { transferCommand, transferUsage } from "./cli/transfer.ts";
import { callableUrl, shellQuoted, welcome } from "./cli/welcome.ts";
import { SettingError } from "./config/parsers.ts";
import { keepAddress } from "./config/server-address.ts";
import { type Config, readConfig, settingsHelp } from "./config/settings.ts";
import { connect, type Sql } from "./db/connect.ts";
import { distributedAt } from "./db/distribution.ts";
import { checkMigrated, migrate } from "./db/migrate.ts";
import { StartError } from "./db/start-error.ts";
import { dataDirectoryOf, isCluster } from "./embedded/data-directory.ts";
import { useEmbedded } from "./embedded/embedded.ts";
import { tryPort } from "./http/address.ts";
import type { Log } from "./log.ts";
import { servingMark } from "./processes/messages.ts";
import { startMachine } from "./processes/owner.ts";
import { processCount } from "./processes/process-count.ts";
import { openLog } from "./rpc/log.ts";
import type { Server } from "./server.ts";
import { firstLink } from "./tenants/first-key.ts";
import { type PrometheusKey, prometheusKey } from "./tenants/prometheus-key.ts";
import { didYouMean } from "./transcoding/did-you-mean.ts";
import { program, version } from "./version.ts";

const usage: Usage = [
  [
    "serve [--prometheus] [--tenant <name>]",
    "serve; from a checkout, npm start is the same. --prometheus prints a block for",
  ],
  ["", "prometheus.yml, with a key that may only send; of several tenants, name one"],
  ["migrate", "bring the database's schema up to date, and do nothing else"],
  ...tenantUsage,
  ...entityUsage,
  ...consoleUsage,
  ...credentialUsage,
  ...transferUsage,
  ...distributeUsage,
  ...schemaUsage,
];

const help = `Belfry, the management API of an observability platform

${allCommands(usage)}
${usageLine(`${program} --version`, "print the version")}
${usageLine(`${program} [<command>] --help`, "print this, or how a command is called")}

Settings (environment variables):
  ${"NAME".padEnd(30)}${"DEFAULT".padEnd(12)} MEANING
${settingsHelp()}
`;

/** What a command that a signal has stopped ends with. */
class StoppedBySignal extends StartError {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals, exitCode: number) {
    super(`stopped by ${signal} before it was done`);
    this.exitCode = exitCode;
  }
}

/** As shells number them. */
const signalCodes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
/** How long a copy that is stopped may take to remove what it has made. */
const copyUndoMs = 2500;

async function serve(config: Config, forPrometheus: PrometheusWish | null): Promise<void> {
  // Loaded by what serves alone: the owner of a port needs a fraction of the modules.
  const { SERVES_FOR_ITS_OWNER: marked } = process.env;
  if (marked === servingMark.SERVES_FOR_ITS_OWNER)
    return await (await import("./processes/serving-process.ts")).serveAsProcess(config);
  let signals = 0;
  const stopAsked = Promise.withResolvers<void>();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      signals += 1;
      if (signals > 1) process.exit(130);
      process.stderr.write("stopping; once more to stop at once\n");
      stopAsked.resolve();
    });
  }
  process.on("disconnect", stopAsked.resolve); // start.js was killed
  process.channel?.unref();
  await tryPort(config);
  if (config.databaseUrl === undefined) {
    const first = isCluster(dataDirectoryOf(config.dataDir).data) ? "" : "; the first start there takes some seconds";
    process.stderr.write(`starting on ${shellQuoted(config.dataDir)}${first}\n`);
  }
  const { count, because } = await processCount(config);
  const { NODE_ENV, NODE_OPTIONS = "", KEEPS_SERVING } = process.env;
  // Without start.js one process serves by itself: for development, and below another node:cluster.
  const owns = count > 1 || (KEEPS_SERVING === "1" && !cluster.isWorker);
  const log = openLog(config.logLevel, undefined, owns ? "owner" : undefined);
  const server = owns
    ? await startMachine(config, log, count, NODE_OPTIONS)
    : await (await import("./server.ts")).startServer(config, log, { followSources: NODE_ENV === "development" });
  noteAddress(config, callableUrl(server), log);
  log.info({ processes: count, because }, count > 1 ? "several processes serve" : "one process serves");
  const key = await keyForPrometheus(server, config, forPrometheus);
  const processes = count > 1 ? `${count} processes serve (${because}).` : undefined;
  if (signals === 0) process.stdout.write(await greeting(server, config.host, processes));
  if (signals === 0 && key !== undefined) {
    const managerKey = forPrometheus?.tenant === undefined ? server.firstKey?.file : undefined;
    process.stdout.write(prometheusLines(server, key, managerKey));
  }
  server.buildConsole().catch(() => undefined); // the page itself says what is wrong
  await stopAsked.promise;
  await server.stop();
  await new Promise<void>((resolve) => log.flush(() => resolve()));
  // All is done: no connection that its client has left half open may keep the process.
  process.exit(0);
}

/** Keeps where the server is, for commands and agents beside it; one without a directory to write in serves all the same. */
function noteAddress({ dataDir }: Config, url: string, log: Log): void {
  try {
    keepAddress(dataDir, url);
  } catch (error) {
    log.warn({ reason: (error as Error).message }, "the address could not be kept in the data directory");
  }
}

/** Returns the key that was asked for; a server that cannot have it is stopped. */
async function keyForPrometheus(
  server: Pick<Server, "withDatabase" | "stop">,
  { dataDir }: Config,
  wish: PrometheusWish | null,
): Promise<PrometheusKey | undefined> {
  if (wish === null) return undefined;
  try {
    return await server.withDatabase((sql) => prometheusKey(sql, dataDir, wish.tenant));
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** What is printed when the server serves. The link that logs in is for a terminal alone: what goes elsewhere is kept. */
async function greeting(
  server: Pick<Server, "url" | "caFile" | "names" | "firstKey" | "withDatabase" | "tenantless">,
  host: string,
  processes: string | undefined,
): Promise<string> {
  const toTerminal = process.stdout.isTTY;
  const token = toTerminal ? await server.withDatabase(firstLink).catch(() => undefined) : undefined;
  return welcome(server, host, { toTerminal, token, processes });
}

/**
 * Runs a command until it is done or a signal stops it: then it has `undoMs` to undo what it has begun, and the embedded database that was
 * started for it is stopped.
 */
async function onDatabase<T>(
  config: Config,
  work: (url: string, signal: AbortSignal) => Promise<T>,
  undoMs = 0,
): Promise<T> {
  const stop = new AbortController();
  const stopped = Promise.withResolvers<never>();
  stopped.promise.catch(() => undefined);
  for (const [signal, exitCode] of Object.entries(signalCodes) as [NodeJS.Signals, number][]) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(exitCode);
      const reason = new StoppedBySignal(signal, exitCode);
      stop.abort(reason);
      setTimeout(stopped.reject, undoMs, reason);
    });
  }
  const stoppable = (url: string) => Promise.race([work(url, stop.signal), stopped.promise]);
  if (config.databaseUrl !== undefined) return await stoppable(config.databaseUrl);
  return await useEmbedded({ dataDir: config.dataDir, log: openLog("silent") }, stoppable);
}

async function onPool<T>(config: Config, url: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  await checkMigrated(url);
  const pool = connect(url, { ...config, distributed: await distributedAt(url) });
  try {
    return await work(pool.sql);
  } finally {
    await pool.close();
  }
}

/** Runs one command line; returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  const asksHelp = command === "help" || args.some((arg) => arg === "--help" || arg === "-h");
  if (asksHelp) {
    const words = (command === "help" ? rest : args).filter((arg) => arg !== "--help" && arg !== "-h");
    const about = words.length === 0 || words[0] === "serve" ? help : helpOf(usage, words);
    if (about === undefined) return misread(words);
    process.stdout.write(`${about.trimEnd()}\n`);
    return 0;
  }
  if (command === "--version") {
    process.stdout.write(`belfry ${version}\n`);
    return 0;
  }
  const exported = schemaCommand(args);
  if (exported !== undefined) {
    process.stdout.write(exported);
    return 0;
  }
  const config = readConfig(process.env, didYouMean);
  const work =
    tenantCommand(args) ?? entityCommand(args) ?? consoleCommand(args, config) ?? credentialCommand(args, config);
  const transfer = transferCommand(args, config);
  const distribution = distributeCommand(args, config);
  const forPrometheus = command === "serve" ? prometheusWish(rest) : undefined;
  if (forPrometheus !== undefined) {
    await serve(config, forPrometheus);
  } else if (command === "migrate" && rest.length === 0) {
    const log = { info: (message: string) => void process.stderr.write(`${message}\n`) };
    const applied = await onDatabase(config, (url) => migrate(url, { log }));
    process.stdout.write(applied.length === 0 ? "the schema is up to date\n" : `applied ${applied.join(", ")}\n`);
  } else if (transfer !== undefined) {
    process.stdout.write(await onDatabase(config, transfer, copyUndoMs));
  } else if (distribution !== undefined) {
    process.stdout.write(await onDatabase(config, distribution));
  } else if (work !== undefined) {
    process.stdout.write(await onDatabase(config, (url) => onPool(config, url, work)));
  } else {
    return misread(args);
  }
  return 0;
}

function misread(args: readonly string[]): number {
  process.stderr.write(`belfry: ${troubleWith(usage, args)}\n`);
  return 2;
}

// A command that waits for what can no longer come would end with code 13 and no word.
process.on("exit", (code) => {
  if (code === 13) writeSync(2, "belfry: the process ended before its work was done, for an unknown reason\n");
});
process.stdout.on("error", (error) => {
  // A server serves on, whether its log and its welcome can be written or not.
  if (process.argv[2] === "serve") return;
  process.stderr.write(`belfry: cannot write to standard output (${error.message})\n`);
  process.exit(1);
});
process.stderr.on("error", () => undefined);

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  // One clear line for what the operator can mend; anything else is a fault of ours and shows where.
  const { message, stack } = error as Error;
  const refused = error instanceof ConnectError ? error.rawMessage : undefined;
  const mendable =
    error instanceof SettingError || error instanceof StartError ? message : (refused ?? lostDatabase(error));
  process.stderr.write(`belfry: ${mendable ?? stack}\n`);
  process.exitCode = 1;
  // What it was doing may still wait for something.
  if (error instanceof StoppedBySignal) process.exit(error.exitCode);
  // The channel of a worker would keep it.
  if (cluster.isWorker) process.exit(1);
}
