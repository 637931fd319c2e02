import type postgres from "postgres";
import { isLost } from "./lost.ts";

type Sql = postgres.Sql<{ bigint: bigint }>;
type Tx = postgres.TransactionSql<{ bigint: bigint }>;
type Tagged = postgres.ISql<{ bigint: bigint }>;

/** The parts of the driver's query and connection that are used here (3.4.9, pinned; test/db/guarded.test.ts watches). */
interface Query {
  options: { onexecute?: (connection: Connection) => unknown };
  handler: (query: Query) => void;
  reject: (error: unknown) => void;
  canceller: ((query: Query) => Promise<void>) | null;
  active: boolean;
}
interface Connection {
  onclose?: ((error: unknown) => void) | null;
}

/** What is known of a transaction's connection. */
interface Life {
  connection?: Connection;
  lost: unknown;
  end(error: unknown): void;
}

const isQuery = (value: unknown): value is Query => value instanceof Promise;

/** Whether PostgreSQL was asked to cancel the statement, which it also says of one that came after the one meant. */
export function isCancelled(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: string };
  return code === "57014" && message === "canceling statement due to user request";
}

/*
 * One statement at a time on a connection: the driver would otherwise send further ones behind a slow statement, and
 * when one of those is cancelled it hands answers to the wrong statements. A statement that a late cancellation of its
 * predecessor hit runs once more.
 */
function alone(query: Query): Query {
  const { reject } = query;
  let runs = 1;
  query.options.onexecute ??= () => false;
  query.reject = (error) => {
    if (query.canceller === null || runs > 1 || !isCancelled(error)) return reject(error);
    runs++;
    query.handler(query);
  };
  return query;
}

/** Stops a statement, and resolves when PostgreSQL has been told. Never rejects. */
export async function cancelQuery(pending: object): Promise<void> {
  const query = pending as Query;
  const { canceller } = query;
  if (canceller === null) return;
  query.canceller = null;
  try {
    await canceller(query);
  } catch {
    // The server is away, and the statement ends with its connection.
  }
}

/*
 * A statement sent after its transaction's connection broke makes the driver write to a socket that is null, outside
 * of any promise: the process would die. So nothing reaches it any more once the connection is known to be lost.
 */
function within(query: Query, life: Life): Query {
  const { handler, reject, canceller } = query;
  query.options.onexecute ??= () => false;
  // One that still waits behind another of its transaction cannot be taken back: the driver would wait for it for ever.
  query.canceller = async (self) => (self.active ? await canceller?.(self) : undefined);
  query.handler = (self) => (life.lost === undefined ? handler(self) : self.reject(life.lost));
  query.reject = (error) => {
    if (isLost(error)) life.end(error);
    reject(error);
  };
  return query;
}

function tagged(inner: Tagged, wrap: (query: Query) => Query): Tagged {
  const call = inner as unknown as (...args: unknown[]) => unknown;
  const unsafe = inner.unsafe as unknown as (...args: unknown[]) => Query;
  const outer = (...args: unknown[]) => {
    const made = call(...args);
    return isQuery(made) ? wrap(made) : made;
  };
  return Object.assign(outer, inner, {
    unsafe: (...args: unknown[]) => wrap(unsafe(...args)),
    json: (value: unknown) => inner.typed(JSON.stringify(value) as never, 3802),
  }) as unknown as Tagged;
}

/** The driver's client, made safe: one statement at a time a connection, transactions that survive a lost connection. */
export function guarded(client: Sql): Sql {
  const safe = tagged(client, alone);
  // The driver's begin() sends "begin" through this, before it first waits; only here is the connection to be had.
  let beginning: Life | undefined;
  const unsafe = client.unsafe as unknown as (text: string, args: unknown[], options: Query["options"]) => unknown;
  client.unsafe = ((text: string, args: unknown[], options: Query["options"]) => {
    const life = beginning;
    const { onexecute } = options;
    options.onexecute = (connection) => {
      if (life) life.connection = connection;
      return onexecute?.(connection);
    };
    return unsafe(text, args, options);
  }) as never;

  async function begin(fn: (tx: Tagged) => unknown) {
    const { promise: ended, reject } = Promise.withResolvers<never>();
    ended.catch(() => undefined);
    const life: Life = {
      lost: undefined,
      end(error) {
        life.lost ??= error;
        reject(life.lost);
      },
    };
    async function work(tx: Tx) {
      // By now the driver has put its own listener there.
      await undefined;
      const { connection } = life;
      const onclose = connection?.onclose;
      if (connection) {
        connection.onclose = (error) => {
          life.end(error);
          onclose?.(error);
        };
      }
      try {
        return await fn(tagged(tx, (query) => within(query, life)));
      } finally {
        // The driver would now send commit or rollback; on a lost connection it must never get there.
        if (life.lost !== undefined) await new Promise(() => undefined);
      }
    }
    beginning = life;
    const working = client.begin(work);
    beginning = undefined;
    return await Promise.race([working, ended]);
  }
  return Object.assign(safe, { begin }) as unknown as Sql;
}
