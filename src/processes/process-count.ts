import cluster from "node:cluster";
import { availableParallelism, totalmem } from "node:os";
import type { Config } from "../config/settings.ts";
import { checkServer, connectOnce, type Db } from "../db/connect.ts";
import { sessionName } from "../db/session-name.ts";
import { extraConnections } from "../prepared-database.ts";

/** How many processes serve, and what has decided it. */
export interface ProcessCount {
  readonly count: number;
  /** For example "half of the 8 processors". */
  readonly because: string;
}

/** What a machine grants. */
export interface Grants {
  /** Processors, with the quota of a cgroup. */
  readonly processors: number;
  readonly memoryBytes: number;
  /** Connections that the database has left; undefined: they are no bound. */
  readonly freeConnections?: number | undefined;
  /** Connections that one process may have. */
  readonly connectionsEach: number;
}

const GiB = 1024 ** 3;

/**
 * The least of what processors, memory and connections allow, at least 1. Half of the processors are PostgreSQL's; with fewer than four,
 * a second process costs more than it brings (design/processes-and-start).
 */
export function automaticCount({ processors, memoryBytes, freeConnections, connectionsEach }: Grants): ProcessCount {
  const bounds: ProcessCount[] = [
    { count: Math.floor(processors / 2), because: `half of ${processors} processors` },
    { count: Math.floor(memoryBytes / GiB), because: `1 GiB for each of ${(memoryBytes / GiB).toFixed(1)} GiB` },
  ];
  if (freeConnections !== undefined) {
    const because = `${connectionsEach} for each of ${freeConnections} free database connections`;
    bounds.push({ count: Math.floor(freeConnections / connectionsEach), because });
  }
  const least = bounds.reduce((one, other) => (other.count < one.count ? other : one));
  return { ...least, count: Math.max(1, least.count) };
}

/** The number that is set, or what suits this machine. @throws StartError when the database cannot be asked */
export async function processCount({
  processes,
  databaseUrl,
  poolConnectionsMax,
}: Pick<Config, "processes" | "databaseUrl" | "poolConnectionsMax">): Promise<ProcessCount> {
  // A worker cannot start any.
  if (cluster.isWorker) return { count: 1, because: "another node:cluster has started it" };
  if (processes !== "auto") return { count: processes, because: "BELFRY_PROCESSES" };
  const grants = {
    processors: availableParallelism(),
    memoryBytes: grantedMemory(),
    connectionsEach: poolConnectionsMax + extraConnections,
  };
  const here = automaticCount(grants);
  // The embedded database is started with as many as are needed.
  if (here.count === 1 || databaseUrl === undefined) return here;
  const { sql, close } = connectOnce(databaseUrl, sessionName("start"));
  try {
    await checkServer(sql);
    return automaticCount({ ...grants, freeConnections: await freeConnections(sql) });
  } finally {
    await close();
  }
}

/** Connections that the server, this database and this role have left. */
export async function freeConnections(db: Db): Promise<number> {
  const [row] = await db<[{ free: number }]>`
    select least(
      current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4
        - current_setting('reserved_connections')::int4 - (select count(*) from pg_stat_activity where backend_type = 'client backend'),
      (select nullif(datconnlimit, -1) - (select count(*) from pg_stat_activity where datname = current_database())
        from pg_database where datname = current_database()),
      (select nullif(rolconnlimit, -1) - (select count(*) from pg_stat_activity where usename = current_user)
        from pg_roles where rolname = current_user)
    )::int4 as free`;
  return Math.max(0, row.free);
}

const MiB = 1024 * 1024;

/** Twice the largest message, and connections that read slowly beside others: less would refuse what one server takes. */
const [bodyBytesMin, answerBytesMin] = [32 * MiB, 64 * MiB];

/**
 * Bounds of a machine, divided between the processes that serve its port. The pool stays that of a process, and so do lookups of sessions,
 * which take of it; sessions of a key are counted in the database.
 */
export function limitShares(config: Config, processes: number): Config {
  const share = (bound: number) => Math.ceil(bound / processes);
  return {
    ...config,
    waitingCallsMax: share(config.waitingCallsMax),
    bodyBytesMax: Math.max(share(config.bodyBytesMax), Math.min(bodyBytesMin, config.bodyBytesMax)),
    answerBytesMax: Math.max(share(config.answerBytesMax), Math.min(answerBytesMin, config.answerBytesMax)),
    streamsMax: share(config.streamsMax),
    connectionsMax: share(config.connectionsMax),
  };
}

const [leastMiB, mostMiB] = [256, 1024];
/** The rest is for what V8 does not count (bodies, answers, sockets), and for the embedded PostgreSQL. */
const heapShare = 0.4;

/** Memory that the machine, or the cgroup of this process, grants, bytes. */
export function grantedMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

/**
 * Returns the argument of Node that bounds the heap of each of `processes`: one that runs away dies in seconds, where V8's own bound of up to
 * 4 GiB has a server stand still for long, or the kernel end PostgreSQL first. `granted`: bytes.
 */
export function heapLimit(granted: number, processes: number): string {
  const share = Math.floor((granted * heapShare) / MiB / processes);
  return `--max-old-space-size=${Math.min(Math.max(share, leastMiB), mostMiB)}`;
}

/** Returns whether arguments of Node, as one text, bound its heap. */
export const isHeapLimit = (args: string): boolean => /--max[-_]old[-_]space[-_]size/.test(args);
