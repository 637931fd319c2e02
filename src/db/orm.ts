import { DrizzleQueryError } from "drizzle-orm/errors";
import { PgDatabase, PgDialect } from "drizzle-orm/pg-core";
import { type PgRemoteQueryResultHKT, PgRemoteSession } from "drizzle-orm/pg-proxy";
import type { Db } from "./connect.ts";
import { cancelOn } from "./driver/cancel.ts";

/** Drizzle's typed queries. */
export type Orm = PgDatabase<PgRemoteQueryResultHKT>;

const dialect = new PgDialect();

/**
 * Drizzle's typed queries over the pool or in a transaction, for plain create, read, update and delete (design/statements).
 * They are sent as the tagged templates are: on the same connections, prepared, seen by the log of statements; when `signal`
 * aborts PostgreSQL stops them, and they throw its reason. Drizzle opens no transactions here.
 */
export function orm(db: Db, signal?: AbortSignal): Orm {
  const session = new PgRemoteSession(
    async (text, parameters, method) => {
      const query = db.unsafe(text, parameters, { prepare: true, simple: false } as object);
      return { rows: await cancelOn(method === "all" ? query.values() : query, signal) };
    },
    dialect,
    undefined,
  );
  const { prepareQuery } = session;
  session.prepareQuery = (...query) => {
    const prepared = prepareQuery.apply(session, query);
    const { execute } = prepared;
    prepared.execute = (...values) => execute.apply(prepared, values).catch(unwrapped);
    return prepared as never;
  };
  return new PgDatabase(dialect, session as never, undefined);
}

/** Drizzle wraps the driver's error in one that quotes the parameters, secrets among them, and hides PostgreSQL's code. */
function unwrapped(error: unknown): never {
  throw error instanceof DrizzleQueryError ? error.cause : error;
}
