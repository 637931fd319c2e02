import type postgres from "postgres";
import { isLost } from "./lost.ts";

type Sql = postgres.Sql<{ bigint: bigint }>;
type Tx = postgres.TransactionSql<{ bigint: bigint }>;
type Tagged = postgres.ISql<{ bigint: bigint }>;

/** The parts of the driver's query and connection that are used here (3.4.9, pinned; test/db/connect.test.ts watches). */
interface Query {
  options: { onexecute?: (connection: Connection) => unknown };
  handler: (query: Query) => void;
  reject: (error: unknown) => void;
}
interface Connection {
  onclose?: ((error: unknown) => void) | null;
}

/** What is known of a transaction's connection. */
interface Life {
  lost: unknown;
  end(error: unknown): void;
}

const isQuery = (value: unknown): value is Query => value instanceof Promise;

/*
 * One statement at a time on a connection. The driver would otherwise send further ones behind a slow statement, and
 * when one of those is cancelled it hands answers to the wrong statements.
 */
function alone(query: Query): Query {
  query.options.onexecute ??= () => false;
  return query;
}

/*
 * A statement sent after its transaction's connection broke makes the driver write to a socket that is null, outside
 * of any promise: the process would die. So nothing reaches it any more once the connection is known to be lost.
 */
function within(query: Query, life: Life): Query {
  const { handler, reject } = query;
  query.handler = (self) => (life.lost === undefined ? handler(self) : self.reject(life.lost));
  query.reject = (error) => {
    if (isLost(error)) life.end(error);
    reject(error);
  };
  query.options.onexecute = (connection) => {
    const { onclose } = connection;
    if (onclose && !("life" in onclose)) {
      connection.onclose = Object.assign(
        (error: unknown) => {
          life.end(error);
          onclose(error);
        },
        { life },
      );
    }
    return false;
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
  async function begin(first: unknown, second?: unknown) {
    const [options, fn] = (second === undefined ? ["", first] : [first, second]) as [string, (tx: Tagged) => unknown];
    const { promise: ended, reject } = Promise.withResolvers<never>();
    ended.catch(() => undefined);
    const life: Life = {
      lost: undefined,
      end(error) {
        life.lost ??= error;
        reject(life.lost);
      },
    };
    const work = client.begin(options, async (tx: Tx) => {
      try {
        return await fn(tagged(tx, (query) => within(query, life)));
      } finally {
        // The driver would now send commit or rollback; on a lost connection it must never get there.
        if (life.lost !== undefined) await new Promise(() => undefined);
      }
    });
    return await Promise.race([work, ended]);
  }
  return Object.assign(tagged(client, alone), { begin }) as unknown as Sql;
}
