import { availableParallelism } from "node:os";
import postgres from "postgres";
import { statementRan } from "../failpoint.ts";
import type { Holder } from "../limiter.ts";
import { parseArray } from "./batch.ts";
import { type CircuitBreaker, circuitBreaker } from "./circuit-breaker.ts";
import { type DiskSpace, diskSpace } from "./disk-space.ts";
import { type Connections, connections } from "./driver/connections.ts";
import { sockets } from "./driver/sockets.ts";
import { planSettings, usualReplanMs } from "./plans.ts";
import { currentHolder, noHolder } from "./request-scope.ts";
import { sessionName } from "./session-name.ts";
import { StartError } from "./start-error.ts";
import { type WorkerNodes, workerNodes } from "./worker-nodes.ts";

/** What statements run on: the pool, or a transaction. `` db`select …` `` */
export type Db = postgres.ISql<{ bigint: bigint }>;
/** The pool: `Db` on which `transaction` begins a new one. */
export type Sql = Connections;

/** How many connections each kind of work has: none waits for those of another. */
export interface ConnectionCounts {
  /** What the server itself needs: keys, clock, leases, claims, audit. */
  system: number;
  /** Data that comes in. */
  ingest: number;
  /** Calls: searches and changes. */
  questions: number;
  /** Runs of jobs. */
  background: number;
  /** Notifications: matching after the commits, deliveries that are claimed and recorded. */
  sending: number;
}

/** The connections of this process to one database. */
export interface Pool {
  /** Those of calls. */
  readonly sql: Sql;
  readonly system: Sql;
  readonly ingest: Sql;
  readonly background: Sql;
  readonly sending: Sql;
  readonly counts: ConnectionCounts;
  /** The workers, where the tables lie distributed over them. */
  readonly workers: WorkerNodes | undefined;
  readonly gate: CircuitBreaker;
  readonly disk: DiskSpace;
  /** Why nothing can be served; undefined: it can. */
  notReady(): string | undefined;
  /** By kind of work: connections that there may be, are open and are in use, and what waits for one. */
  stats(): [kind: string, stats: { max: number; open: number; busy: number; waiting: number }][];
  /** Waits up to 5 s for statements in work, then cuts them. */
  close(): Promise<void>;
}

export interface PoolOptions {
  /** Of all kinds together; each has one at least. */
  poolConnectionsMax: number;
  /** Counts that differ from `connectionCounts`. */
  counts?: Partial<ConnectionCounts>;
  waitingCallsMax: number;
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  /** Whether the tables lie distributed over nodes (src/db/distribution.ts); false when left out. */
  distributed?: boolean;
  /** How long plans are kept, where they are not kept for good; 10 s when left out. */
  replanMs?: number;
  /** Sees every statement with its parameters, for tests. */
  debug?: (connection: number, statement: string, parameters: unknown[]) => void;
}

/** Longest time of one statement that stores data, of a wait for a lock, and of a pause within a transaction, ms. */
const ingestTimeoutMs = 5000;
/**
 * The wait of such a statement for a lock where tables are distributed, ms. While a tenant is moved its writes wait: shorter than the statement
 * may take, this ends as a lock that others hold, after which the data is stored again.
 */
const movedWaitMs = 4000;
/** Longest time of one statement of a job, ms: no caller waits for it. */
const backgroundTimeoutMs = 300_000;

/** How many connections a kind of work shall have of so many; calls get the rest. */
function wantedCounts(max: number, processors: number): Omit<ConnectionCounts, "questions"> {
  return {
    ingest: Math.min(Math.floor(max / 3), Math.max(4, 2 * processors)),
    // With two, a long run holds back none that is timed.
    background: max < 7 ? 1 : Math.max(2, Math.min(4, Math.floor(max / 5))),
    system: max < 13 ? 1 : max < 17 ? 2 : 3,
    sending: max < 14 ? 1 : max < 19 ? 2 : 3,
  };
}

/**
 * Shares connections out between the kinds of work, one by one: no kind has fewer of more. Data that comes in gets at most two a
 * processor, as if the database had the same ones: more at once would only share them, and each take longer.
 */
export function connectionCounts(max: number, processors = availableParallelism()): ConnectionCounts {
  const counts = { system: 1, ingest: 1, background: 1, sending: 1, questions: 1 };
  for (let size = 6; size <= max; size += 1) {
    const wanted = wantedCounts(size, processors);
    const names = Object.keys(wanted) as (keyof typeof wanted)[];
    counts[names.find((name) => counts[name] < wanted[name]) ?? "questions"] += 1;
  }
  return counts;
}

/*
 * One rule for JSON, on every path: a parameter is JSON text, as in psql; `sql.json(value)` and `jsonArray(values)` make
 * it of any value, strings and null included; answers are parsed values. Drizzle's columns send text too, so both agree.
 */
const json = {
  to: 3802,
  from: [114, 3802],
  serialize: (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)),
  parse: (text: string) => JSON.parse(text),
};

const arrayOf = <T>(oid: number, element: (text: string) => T) => ({
  to: oid,
  from: [oid],
  serialize: (value: unknown) => value,
  parse: (text: string) => parseArray(text, element),
});

const types = {
  bigint: postgres.BigInt,
  json,
  boolArray: arrayOf(1000, (text) => text === "t"),
  int2Array: arrayOf(1005, Number),
  int4Array: arrayOf(1007, Number),
  textArray: arrayOf(1009, String),
  bigintArray: arrayOf(1016, BigInt),
  doubleArray: arrayOf(1022, Number),
  uuidArray: arrayOf(2951, String),
  jsonArray: arrayOf(3807, JSON.parse),
};

/** Options of every client of ours. */
export const clientOptions = {
  types,
  debug: statementRan,
  // The driver's own look-up of array types runs where its failure is not caught: a lost connection ended the process.
  fetch_types: false,
  no_subscribe: true,
  max_lifetime: null,
  connect_timeout: 5,
  backoff: () => 0,
  onnotice: () => undefined,
};

/** Where a URL leads: a socket whose directory is in it with `%2F`, as libpq writes it, or a host and port. */
export function destinationOf(url: string): { path: string } | { host: string; port: number } {
  const { hostname, port } = new URL(url);
  const number = Number(port || 5432);
  if (hostname.startsWith("%2F")) return { path: `${decodeURIComponent(hostname)}/.s.PGSQL.${number}` };
  return { host: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname, port: number };
}

/** The same as options: postgres.js cannot read an address of IPv6, or a path, in a URL. */
export function addressOptions(url: string) {
  const to = destinationOf(url);
  if ("path" in to) return { ...to, host: ["localhost"], port: [5432] };
  return new URL(url).hostname.startsWith("[") ? { host: [to.host], port: [to.port] } : {};
}

interface Watch {
  allowed(): boolean;
  onclose(): void;
  asker(): Holder;
  failed?(error: unknown): void;
  lifetimeMs?: number;
  replanMs?: number | undefined;
  distributed?: boolean | undefined;
  plansWithoutValues?: boolean | undefined;
}

/** Up to `max` connections of one name, with what cuts them. */
function open(url: string, max: number, options: object, watch: Watch) {
  const made = sockets();
  const { sql, refuse, end, stats } = connections({
    ...watch,
    max,
    client(onclose) {
      const socket = onclose ? made.once() : made.open;
      return postgres(url, {
        ...clientOptions,
        ...addressOptions(url),
        ...options,
        max: 1,
        socket,
        onclose,
      } as never) as never;
    },
  });
  const drop = () => {
    refuse();
    made.cut();
  };
  return { sql, drop, end, stats };
}

/** Makes the pool; connects when the first statement comes. int8 is bigint, bytea Buffer, JSON as above. */
export function connect(url: string, options: PoolOptions): Pool {
  const counts = { ...connectionCounts(options.poolConnectionsMax), ...options.counts };
  const onclose = () => watch.probeNow();
  function kind(name: keyof ConnectionCounts, timeoutMs = options.statementTimeoutMs, planned?: "once") {
    const { debug, distributed } = options;
    const connection = {
      application_name: sessionName(name === "questions" ? undefined : name),
      statement_timeout: timeoutMs,
      lock_timeout: name !== "ingest" ? options.lockTimeoutMs : distributed ? movedWaitMs : ingestTimeoutMs,
      idle_in_transaction_session_timeout: timeoutMs,
      // Statements are short and come many at once: what they would wait for workers or a compiler helps none of them.
      // The driver leaves out a 0 that is a number.
      max_parallel_workers_per_gather: "0",
      jit: "off",
      ...planSettings(planned, distributed),
    };
    const { note: failed } = disk;
    const plansWithoutValues = planned === "once";
    const replan = plansWithoutValues ? undefined : (options.replanMs ?? usualReplanMs);
    const holder = name === "system" ? noHolder : currentHolder;
    const watched = { allowed: () => watch.open, onclose, failed, asker: holder, replanMs: replan };
    const own = { ...watched, distributed, plansWithoutValues };
    return open(url, counts[name], { connection, ...(debug && { debug }) }, own);
  }
  // Sorts of 64 kB go to the disk.
  const probeConnection = { application_name: sessionName("probe"), work_mem: "64kB" };
  // The driver's time limit also runs out while this process is busy; the circuit breaker limits the probe by turns of the process.
  const probe = open(url, 1, { connection: probeConnection, connect_timeout: 0 }, always(onclose));
  const disk = diskSpace({ probe: () => writeAway(probe.sql) });
  const kinds = {
    system: kind("system"),
    ingest: kind("ingest", Math.min(options.statementTimeoutMs, ingestTimeoutMs), "once"),
    background: kind("background", Math.max(options.statementTimeoutMs, backgroundTimeoutMs)),
    sending: kind("sending", options.statementTimeoutMs, "once"),
    questions: kind("questions"),
  };
  const names = Object.keys(kinds) as (keyof ConnectionCounts)[];
  const all = [probe, ...Object.values(kinds)];
  const watch = circuitBreaker({
    callsMax: options.waitingCallsMax,
    probe: () => checkPrimary(probe.sql),
    cut: () => {
      for (const each of all) each.drop();
    },
  });
  const workers = options.distributed
    ? workerNodes(url, (each) => connectOnce(each, sessionName("workers")))
    : undefined;
  return {
    sql: kinds.questions.sql,
    system: kinds.system.sql,
    ingest: kinds.ingest.sql,
    background: kinds.background.sql,
    sending: kinds.sending.sql,
    counts,
    workers,
    gate: watch,
    disk,
    notReady() {
      if (!watch.open) return "the database is away";
      return disk.full ? "nothing can be stored: the database's disk is full" : undefined;
    },
    stats: () => names.map((name) => [name, { max: counts[name], ...kinds[name].stats() }]),
    async close() {
      watch.stop();
      disk.stop();
      await Promise.all([workers?.close(), ...all.map((each) => each.end(each === probe ? 0 : 5))]);
    },
  };
}

/** @throws where the database is a standby: it answers, but takes no changes. */
async function checkPrimary(db: Db): Promise<void> {
  const [row] = await db<[{ standby: boolean }]>`select pg_is_in_recovery() as standby`;
  if (row.standby) throw new Error("the database is a standby");
}

/** Writes a megabyte that is gone at once. @throws where there is no room for it */
async function writeAway(db: Db): Promise<void> {
  await db`
    select count(*) from (
      select repeat('x', 100) || n as text from generate_series(1, 10000) as n order by 1 offset 0
    ) as sorted`;
}

const always = (onclose: () => void): Watch => ({ allowed: () => true, onclose, asker: noHolder });

/** One connection, the same as long as it does not break, without limits of time and without a gate: for acts of an operator. */
export function connectOnce(url: string, name: string): { sql: Sql; close(): Promise<void> } {
  const connection = { application_name: name };
  const { sql, end, drop } = open(
    url,
    1,
    { connection },
    { ...always(() => undefined), lifetimeMs: Number.POSITIVE_INFINITY },
  );
  return {
    sql,
    async close() {
      await end(1);
      // The driver only says good-bye: a socket whose bytes are not read would stay, and with it what PostgreSQL does for it.
      drop();
    },
  };
}

/** @throws StartError when PostgreSQL cannot be reached or is older than 17. */
export async function checkServer(db: Db): Promise<void> {
  let version: number;
  try {
    const [row] = await db`select current_setting('server_version_num')::int4 as version`;
    version = row?.version;
  } catch (error) {
    // A name with several addresses fails with an error for each.
    const { message } = error instanceof AggregateError ? (error.errors[0] as Error) : (error as Error);
    throw new StartError(`cannot use the database (${message}); is PostgreSQL running, and DATABASE_URL right?`);
  }
  if (version < 170000) {
    throw new StartError(`PostgreSQL ${Math.floor(version / 10000)} is too old; version 17 or newer is needed`);
  }
}
