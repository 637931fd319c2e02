import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import { parseArray } from "./batch.ts";
import { type Gate, gate } from "./gate.ts";
import { guarded } from "./guarded.ts";
import { sockets } from "./sockets.ts";
import { StartError } from "./start-error.ts";

type Types = { bigint: bigint };

/** What statements run on: the pool, or a transaction. `` db`select …` `` */
export type Db = postgres.ISql<Types>;
/** The pool as a client: `Db` that can also begin transactions. */
export type Sql = postgres.Sql<Types>;

/** The connections of this process to one database. */
export interface Pool {
  readonly sql: Sql;
  readonly gate: Gate;
  /** Waits up to 5 s for statements in work, then cuts them. */
  close(): Promise<void>;
}

export interface PoolOptions {
  poolConnectionsMax: number;
  waitingCallsMax: number;
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  /** Sees every statement with its parameters, for tests. */
  debug?: (connection: number, statement: string, parameters: unknown[]) => void;
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

/** Options of every client of ours; the rest of this folder never calls `postgres()` without them. */
export const clientOptions = {
  types,
  // The driver's own look-up of array types runs where nobody catches its failure: a lost connection ended the process.
  fetch_types: false,
  connect_timeout: 5,
  onnotice: () => undefined,
};

/** Makes the pool; connects when the first statement comes. int8 is bigint, bytea Buffer, JSON as above. */
export function connect(url: string, options: PoolOptions): Pool {
  const connections = sockets(() => watch.open);
  const client = postgres(url, {
    ...clientOptions,
    max: options.poolConnectionsMax,
    socket: connections.open,
    backoff: () => 0,
    onclose: () => watch.suspect(),
    debug: options.debug as never,
    connection: {
      application_name: "belfry",
      statement_timeout: options.statementTimeoutMs,
      lock_timeout: options.lockTimeoutMs,
      idle_in_transaction_session_timeout: options.statementTimeoutMs,
    },
  } as never) as unknown as Sql;
  const probing = sockets(() => true);
  const probe = postgres(url, {
    ...clientOptions,
    max: 1,
    max_lifetime: null,
    socket: probing.open,
    backoff: () => 0,
    onclose: () => watch.suspect(),
    connection: { application_name: "belfry probe" },
  } as never) as unknown as Sql;
  const watch = gate({
    callsMax: options.waitingCallsMax,
    probe: async () => {
      await probe`select 1`;
    },
    cut: () => {
      probing.cut();
      connections.cut();
    },
  });
  return {
    sql: guarded(client),
    gate: watch,
    async close() {
      watch.stop();
      await Promise.all([client.end({ timeout: 5 }), probe.end({ timeout: 0 })]);
    },
  };
}

/**
 * Drizzle over the pool or a transaction, for plain CRUD; it opens no transactions of its own. drizzle() rewrites the
 * serializers of the client that it is given, so it gets an empty set to rewrite.
 */
export function orm(db: Db): PostgresJsDatabase {
  const client = { unsafe: db.unsafe, options: { parsers: {}, serializers: {} } };
  return drizzle(client as never);
}

/** @throws StartError when PostgreSQL cannot be reached or is older than 17. */
export async function checkServer(db: Db): Promise<void> {
  let version: number;
  try {
    const [row] = await db`select current_setting('server_version_num')::int4 as version`;
    version = row?.version;
  } catch (error) {
    throw new StartError(`cannot use the database: ${(error as Error).message || String(error)}; check DATABASE_URL`);
  }
  if (version < 170000) {
    throw new StartError(`PostgreSQL ${Math.floor(version / 10000)} is too old; version 17 or newer is needed`);
  }
}
