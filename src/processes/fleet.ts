import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { StartError } from "../db/start-error.ts";
import { recentDeaths } from "./deaths.ts";
import type { Assignment, Load, Order, Report } from "./messages.ts";

/** A serving process, as the owner of the port sees it. */
export interface Member {
  readonly number: number;
  readonly worker: Worker;
  state: "starting" | "serving" | "stopping";
  /** Why it could not start. */
  failure: string | undefined;
  /** Connections that were sent to it. */
  sent: number;
  load: Load;
  /** When it reported last, on the clock of performance.now(). */
  reportedMs: number;
  /** Connections that it has not taken yet. */
  readonly unsent: Set<Socket>;
}

/** The serving processes of a machine. */
export interface Fleet {
  /** Resolves when all serve for the first time. @throws StartError why one cannot */
  started: Promise<void>;
  /** Resolves with the reason when processes have died too often. */
  failed: Promise<string>;
  members(): readonly Member[];
  /** Since the start. */
  deaths(): number;
  /** To all that serve. */
  order(order: Order): void;
  /** Hands a connection to a member. */
  hand(member: Member, socket: Socket): void;
  /** The metrics of all that answer in time. */
  metrics(): Promise<string[]>;
  /** Stops all in order, and by force after `ms`. */
  stop(ms: number): Promise<void>;
}

interface Options {
  processes: number;
  /** What a process gets, of the moment when it starts. */
  assignment(): Omit<Assignment, "process" | "processes">;
  log: Logger;
}

const metricsMs = 2000;
const retryMs = 1000;
const retryMsMax = 10_000;

/** Starts the processes, and starts another one for each that dies. */
export function startFleet({ processes, assignment, log }: Options): Fleet {
  const members = new Map<number, Member>();
  const [started, failed, stopped] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<string>(),
    Promise.withResolvers<void>(),
  ];
  const deaths = recentDeaths();
  const asked = new Map<number, (text: string) => void>();
  let [begun, stopping, machineReady] = [false, false, false];
  let [died, failedStarts, questions] = [0, 0, 0];

  function start(number: number): void {
    if (stopping) return;
    const worker = cluster.fork();
    const member: Member = {
      ...{ number, worker, state: "starting", failure: undefined, sent: 0, unsent: new Set() },
      ...{ load: { taken: 0, open: 0 }, reportedMs: performance.now() },
    };
    members.set(number, member);
    worker.on("message", (message: Report) => hear(member, message));
    worker.on("error", (error) =>
      log.warn({ member: number, cause: error.message }, "a serving process was not reached"),
    );
    worker.on("exit", (code, signal) => {
      const end = () => gone(member, signal ?? `exit code ${code}`);
      // What it said last may still be on its way.
      if (worker.isConnected()) worker.once("disconnect", end);
      else end();
    });
    send(member, { order: "serve", assignment: { ...assignment(), process: number, processes } });
  }

  function send({ worker }: Member, order: Order): void {
    if (worker.isConnected()) worker.send(order);
  }

  function hear(member: Member, message: Report): void {
    if (message.report === "serving") {
      if (!stopping) member.state = "serving";
      member.reportedMs = performance.now();
      failedStarts = 0;
      tellMachine(true);
      if (!begun && serving().length === processes) {
        begun = true;
        started.resolve();
      }
    } else if (message.report === "failed") member.failure = message.message;
    else if (message.report === "metrics") asked.get(message.id)?.(message.text);
    else if (message.report === "load") {
      member.load = message.load;
      member.reportedMs = performance.now();
      tellMachine();
    }
  }

  const serving = () => [...members.values()].filter(({ state }) => state === "serving");
  const orderAll = (order: Order) => serving().forEach((member) => void send(member, order));

  /** What `/readyz` answers at each of them. */
  function tellMachine(again = false): void {
    const ready = serving().some(({ load }) => load.notReady === undefined);
    if (ready === machineReady && !again) return;
    machineReady = ready;
    orderAll({ order: "machine", ready });
  }

  function gone(member: Member, by: string): void {
    const { number, failure, unsent } = member;
    for (const socket of unsent) socket.destroy();
    members.delete(number);
    if (stopping) {
      if (members.size === 0) stopped.resolve();
      return;
    }
    if (!begun) {
      started.reject(new StartError(failure ?? `a serving process has ended (${by}) before it served`));
      return;
    }
    tellMachine();
    // What keeps it from starting, such as a database that is away, may pass.
    if (failure !== undefined) {
      const waitMs = Math.min(retryMs * 2 ** failedStarts++, retryMsMax);
      log.warn({ member: number, cause: failure, waitMs }, "a serving process cannot start; it is tried again");
      setTimeout(start, waitMs, number);
      return;
    }
    died += 1;
    const { waitMs, count, tooMany } = deaths.note(performance.now());
    log.warn({ member: number, by, deaths: count, waitMs }, "a serving process has died; another one takes its place");
    if (tooMany !== undefined) failed.resolve(`${tooMany}, the last one by ${by}: the server ends`);
    else setTimeout(start, waitMs, number);
  }

  async function metricsOf(member: Member): Promise<string> {
    const id = questions++;
    const { promise, resolve } = Promise.withResolvers<string>();
    const late = setTimeout(resolve, metricsMs, "");
    asked.set(id, resolve);
    send(member, { order: "metrics", id });
    return await promise.finally(() => {
      clearTimeout(late);
      asked.delete(id);
    });
  }

  for (let number = 1; number <= processes; number++) start(number);
  started.promise.catch(() => undefined);
  return {
    started: started.promise,
    failed: failed.promise,
    members: () => [...members.values()],
    deaths: () => died,
    order: orderAll,
    hand(member, socket) {
      member.sent += 1;
      member.unsent.add(socket);
      const order: Order = { order: "connection" };
      member.worker.process.send?.(order, socket, { keepOpen: false }, (error) => {
        member.unsent.delete(socket);
        if (error !== null) socket.destroy();
      });
    },
    metrics: async () => (await Promise.all(serving().map(metricsOf))).filter((text) => text !== ""),
    async stop(ms) {
      orderAll({ order: "stop" });
      stopping = true;
      if (members.size === 0) return;
      for (const member of members.values()) {
        if (member.state === "starting") member.worker.process.kill("SIGKILL");
      }
      const late = setTimeout(() => members.forEach(({ worker }) => void worker.process.kill("SIGKILL")), ms);
      await stopped.promise;
      clearTimeout(late);
    },
  };
}
