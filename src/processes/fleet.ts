import cluster, { type Worker } from "node:cluster";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import { StartError } from "../db/start-error.ts";
import { takeRequestsInWork } from "../rpc/requests-in-work.ts";
import { type Assignment, type Load, type Order, type Report, servingMark } from "./messages.ts";

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

export interface Options {
  processes: number;
  /** What each gets; until it is there they load. */
  assigned: Promise<Omit<Assignment, "process" | "processes" | "certificate">>;
  /** The certificate of now. */
  certificate(): Assignment["certificate"];
  /** The file in which they note their requests. */
  requestsFd: number | undefined;
  log: Logger;
}

const metricsMs = 2000;

/** A fleet, and what happens in it. */
interface State extends Options {
  readonly members: Map<number, Member>;
  readonly started: PromiseWithResolvers<void>;
  readonly stopped: PromiseWithResolvers<void>;
  readonly deaths: ReturnType<typeof recentDeaths>;
  /** What waits for metrics, by the number of the question. */
  readonly asked: Map<number, (text: string) => void>;
  begun: boolean;
  stopping: boolean;
  machineReady: boolean;
  died: number;
  questions: number;
}

/** Starts the processes, and starts another one for each that dies. */
export function startFleet(options: Options): Fleet {
  const fleet: State = {
    ...options,
    members: new Map(),
    deaths: recentDeaths(),
    asked: new Map(),
    started: Promise.withResolvers(),
    stopped: Promise.withResolvers(),
    begun: false,
    stopping: false,
    machineReady: false,
    died: 0,
    questions: 0,
  };
  for (let number = 1; number <= fleet.processes; number++) start(fleet, number);
  fleet.started.promise.catch(() => undefined);
  return {
    started: fleet.started.promise,
    members: () => [...fleet.members.values()],
    deaths: () => fleet.died,
    order: (order) => orderAll(fleet, order),
    hand,
    async metrics() {
      const texts = await Promise.all(servingOf(fleet).map((member) => metricsOf(fleet, member)));
      return texts.filter((text) => text !== "");
    },
    stop: (ms) => stop(fleet, ms),
  };
}

function start(fleet: State, number: number): void {
  if (fleet.stopping) return;
  const { processes, assigned, log } = fleet;
  let worker: Worker;
  try {
    worker = cluster.fork(servingMark);
  } catch (error) {
    cannotStart(fleet, number, notForked(error as Error));
    return;
  }
  const member: Member = {
    number,
    worker,
    state: "starting",
    failure: undefined,
    sent: 0,
    unsent: new Set(),
    load: { taken: 0, open: 0 },
    reportedMs: performance.now(),
  };
  fleet.members.set(number, member);
  worker.on("message", (message: Report) => hear(fleet, member, message));
  worker.on("error", (error) => {
    if (worker.process.pid !== undefined)
      return log.warn({ member: number, cause: error.message }, "a serving process was not reached");
    // What was never there says no `exit`.
    member.failure ??= notForked(error);
    ended(fleet, member, "error");
  });
  worker.on("exit", (code, signal) => {
    const end = () => ended(fleet, member, signal ?? `exit code ${code}`);
    // What it said last may still be on its way.
    if (worker.isConnected()) worker.once("disconnect", end);
    else end();
  });
  const serve = (given: Awaited<typeof assigned>) => {
    const certificate = fleet.certificate();
    send(member, { order: "serve", assignment: { ...given, certificate, process: number, processes } });
  };
  void assigned.then(serve);
}

const notForked = ({ message }: Error) => `a serving process cannot be started: ${message}`;

const servingOf = ({ members }: State) => [...members.values()].filter(({ state }) => state === "serving");

function send({ worker }: Member, order: Order): void {
  if (worker.isConnected()) worker.send(order);
}

function orderAll(fleet: State, order: Order): void {
  for (const member of servingOf(fleet)) send(member, order);
}

function hear(fleet: State, member: Member, message: Report): void {
  if (message.report === "serving") {
    if (!fleet.stopping) member.state = "serving";
    // It may have been renewed since the assignment.
    const pair = fleet.certificate();
    if (pair !== undefined) send(member, { order: "certificate", pair });
    member.reportedMs = performance.now();
    reportMachine(fleet, true);
    if (servingOf(fleet).length < fleet.processes) return;
    fleet.begun = true;
    fleet.started.resolve();
  } else if (message.report === "failed") member.failure = message.message;
  else if (message.report === "metrics") fleet.asked.get(message.id)?.(message.text);
  else if (message.report === "load") {
    member.load = message.load;
    member.reportedMs = performance.now();
    reportMachine(fleet);
  }
}

/** What `/readyz` answers at each of them. */
function reportMachine(fleet: State, again = false): void {
  const ready = servingOf(fleet).some(({ load }) => load.notReady === undefined);
  if (ready === fleet.machineReady && !again) return;
  fleet.machineReady = ready;
  orderAll(fleet, { order: "machine", ready });
}

function ended(fleet: State, member: Member, by: string): void {
  const { members, log } = fleet;
  const { number, failure, unsent } = member;
  if (members.get(number) !== member) return;
  for (const socket of unsent) socket.destroy();
  members.delete(number);
  if (fleet.stopping) {
    if (members.size === 0) fleet.stopped.resolve();
    return;
  }
  reportMachine(fleet);
  if (failure !== undefined || !fleet.begun) {
    cannotStart(fleet, number, failure ?? `a serving process has ended (${by}) before it served`);
    return;
  }
  fleet.died += 1;
  const inWork = takeRequestsInWork(fleet.requestsFd, number, Date.now());
  const { waitMs, count } = fleet.deaths.note(performance.now());
  const deaths = { member: number, by, deaths: count, waitMs, inWork };
  log.warn(deaths, "a serving process has died; another one takes its place");
  setTimeout(start, waitMs, fleet, number);
}

/** What keeps it from starting, such as a database that is away, may pass: it counts as a death. The first start waits for nothing. */
function cannotStart(fleet: State, number: number, cause: string): void {
  if (!fleet.begun) {
    fleet.started.reject(new StartError(cause));
    return;
  }
  const { waitMs } = fleet.deaths.note(performance.now());
  fleet.log.warn({ member: number, cause, waitMs }, "a serving process cannot start; it is tried again");
  setTimeout(start, waitMs, fleet, number);
}

function hand(member: Member, socket: Socket): void {
  const order: Order = { order: "connection" };
  member.sent += 1;
  member.unsent.add(socket);
  member.worker.process.send?.(order, socket, { keepOpen: false }, (error) => {
    member.unsent.delete(socket);
    if (error !== null) socket.destroy();
  });
}

async function metricsOf(fleet: State, member: Member): Promise<string> {
  const id = fleet.questions++;
  const { promise, resolve } = Promise.withResolvers<string>();
  const late = setTimeout(resolve, metricsMs, "");
  fleet.asked.set(id, resolve);
  send(member, { order: "metrics", id });
  return await promise.finally(() => {
    clearTimeout(late);
    fleet.asked.delete(id);
  });
}

async function stop(fleet: State, ms: number): Promise<void> {
  orderAll(fleet, { order: "stop" });
  fleet.stopping = true;
  const { members, stopped } = fleet;
  if (members.size === 0) return;
  for (const { state, worker } of members.values()) if (state === "starting") worker.process.kill("SIGKILL");
  const late = setTimeout(() => {
    for (const { worker } of members.values()) worker.process.kill("SIGKILL");
  }, ms);
  await stopped.promise;
  clearTimeout(late);
}

const withinMs = 600_000;
const freely = 5;
const pauseMs = 1000;
const pauseMsMax = 60_000;

/**
 * Counts the deaths of processes that had served, and their starts that failed. The first is followed by a start at once, the next
 * ones after a pause that doubles; from the fifth within ten minutes on a start comes a minute after it, without end: an unattended
 * server must come back.
 */
export function recentDeaths() {
  const timesMs: number[] = [];
  return {
    /** Counts a death; returns how many there were within ten minutes, and how long the next start waits. */
    note(nowMs: number): { count: number; waitMs: number } {
      timesMs.push(nowMs);
      while (nowMs - (timesMs[0] ?? nowMs) > withinMs) timesMs.shift();
      const count = timesMs.length;
      if (count >= freely) return { count, waitMs: pauseMsMax };
      return { count, waitMs: count === 1 ? 0 : pauseMs * 2 ** (count - 2) };
    },
  };
}
