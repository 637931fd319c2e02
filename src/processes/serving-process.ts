import type { Socket } from "node:net";
import type { Config } from "../config/settings.ts";
import { checkMigrated } from "../db/migrate.ts";
import { StartError } from "../db/start-error.ts";
import { every } from "../every.ts";
import { type HandedCertificate, handedCertificate } from "../http/live-certificate.ts";
import type { Incoming } from "../http/port.ts";
import { openLog } from "../rpc/log.ts";
import { type Server, startServer } from "../server.ts";
import type { Assignment, Load, Order, Report } from "./messages.ts";
import { limitShares } from "./process-count.ts";

const reportMs = 200;
/** A report that says nothing new shows that the process lives. */
const sameReports = 5;
/** The owner of the port may have died, or be busy. */
const lastConnectionMs = 1000;

function report(message: Report, sent?: () => void): void {
  // Without its owner it ends: `node:cluster` sees to that.
  if (process.connected) process.send?.(message, undefined, undefined, sent);
  else sent?.();
}

/** What the owner of the port has handed over. */
interface Handed extends Incoming {
  give(socket: Socket | undefined): void;
  last(): void;
  readonly taken: number;
}

function handedConnections(address: Incoming["address"]): Handed {
  let take: (socket: Socket) => void = (socket) => socket.destroy();
  let taken = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    address,
    each(taker) {
      take = taker;
    },
    end() {
      setTimeout(resolve, lastConnectionMs).unref();
      return promise;
    },
    give(socket) {
      taken += 1;
      // Without one its client left on the way.
      if (socket !== undefined) take(socket);
    },
    last: resolve,
    get taken() {
      return taken;
    },
  };
}

/** One server of a machine, and what its owner orders. */
interface Serving {
  readonly server: Server;
  readonly handed: Handed;
  readonly tls: HandedCertificate | undefined;
  /** Whether any process of the machine is ready, as far as is known. */
  machineReady: boolean;
}

/**
 * Serves what the owner of the port hands over, until it orders the end. Signals are for the owner: a terminal sends them to all of a group.
 * Ends the process.
 */
export async function serveAsProcess(config: Config): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) process.on(signal, () => undefined);
  process.channel?.ref();
  const { promise, resolve } = Promise.withResolvers<Assignment>();
  const stopAsked = Promise.withResolvers<void>();
  let serving: Serving | undefined;
  process.on("message", (message: Order, socket: Socket | undefined) => {
    if (message.order === "serve") resolve(message.assignment);
    else if (message.order === "stop") stopAsked.resolve();
    else if (serving !== undefined) obey(serving, message, socket);
    else socket?.destroy();
  });
  const assignment = await promise;
  const log = openLog(config.logLevel, undefined, assignment.process);
  const begun = await begin(config, assignment, log, () => serving?.machineReady ?? false).catch(
    (error: Error) => error,
  );
  if (begun instanceof Error) {
    if (!(begun instanceof StartError)) throw begun;
    return report({ report: "failed", message: begun.message }, () => process.exit(1));
  }
  serving = begun;
  report({ report: "serving" });
  const reporting = reportLoad(begun);
  await stopAsked.promise;
  await begun.server.stop();
  await reporting.stop();
  log.flush(() => process.exit(0));
}

async function begin(
  config: Config,
  { process: number, processes, database, certificate, caFile, requestsFd }: Assignment,
  log: ReturnType<typeof openLog>,
  machineReady: () => boolean,
): Promise<Serving> {
  await checkMigrated(database.url);
  const tls = certificate && handedCertificate(certificate, caFile);
  const handed = handedConnections({ host: config.host, port: config.port });
  const given = { process: number, database, tls, incoming: handed, requestsFd, machineReady };
  const server = await startServer(limitShares(config, processes), log, { given });
  return { server, handed, tls, machineReady: false };
}

function obey(serving: Serving, message: Order, socket: Socket | undefined): void {
  const { server, handed, tls } = serving;
  if (message.order === "connection") handed.give(socket);
  else if (message.order === "certificate") tls?.replace(message.pair);
  else if (message.order === "machine") serving.machineReady = message.ready;
  else if (message.order === "last-connection") handed.last();
  else if (message.order === "metrics") {
    const { id } = message;
    const send = (text: string) => report({ report: "metrics", id, text });
    server.metrics?.().then(send, () => send(""));
  }
}

/** Reports each change to the owner of the port, and now and then that there is none. */
function reportLoad({ server, handed }: Serving) {
  let before = "";
  let same = 0;
  return every(reportMs, () => {
    const load: Load = { taken: handed.taken, open: server.connections(), notReady: server.notReady() };
    const now = JSON.stringify(load);
    same = now === before ? same + 1 : 0;
    if (same % sameReports !== 0) return;
    before = now;
    report({ report: "load", load });
  });
}
