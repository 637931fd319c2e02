import { setTimeout as sleep } from "node:timers/promises";
import { failpoint } from "../failpoint.ts";
import type { Db, Sql } from "./connect.ts";

const usualAttempts = 6;
/** A serialization failure, a deadlock; or what the connection has prepared is out of date, after a migration. */
const asksAgain = ({ code, routine }: { code?: string; routine?: string }) =>
  code === "40001" || code === "40P01" || routine === "RevalidateCachedQuery";

const canBegin = (db: Db): db is Sql => "begin" in db;

interface Running {
  /** What is to happen after its commit. */
  then: (() => void)[];
  /** The connections that it is one of. */
  sql: Sql;
}
const running = new WeakMap<Db, Running>();

/**
 * Runs `fn` in a transaction: the caller's when `db` is one already, else a new one that commits when `fn` resolves.
 * A new one runs again, up to 6 times, when PostgreSQL asks for it (serialization failure, deadlock, a table that has
 * changed), so `fn` must have no other effect than its statements; what is to happen afterwards goes to `afterCommit`.
 * `fn` need not wait for statements that it has sent: what the first of them fails with is what the transaction fails with.
 */
export async function transaction<T>(
  db: Db,
  fn: (tx: Db) => Promise<T>,
  { attemptsMax = usualAttempts }: { attemptsMax?: number } = {},
): Promise<T> {
  if (!canBegin(db)) return await fn(db);
  for (let attempt = 1; ; attempt++) {
    const then: (() => void)[] = [];
    try {
      const answer = await db.begin(async (tx) => {
        running.set(tx, { then, sql: db });
        failpoint("transaction:begun");
        const done = await fn(tx);
        failpoint("transaction:before-commit");
        return done;
      });
      failpoint("transaction:committed");
      for (const each of then) each();
      return answer;
    } catch (error) {
      if (attempt === attemptsMax || !asksAgain(error as object)) throw error;
      await sleep(Math.random() * 5 * 2 ** attempt);
    }
  }
}

/**
 * Calls `fn` once the transaction is committed, and only then: never when it fails, runs again, or when it is
 * unknown how its commit ended. For hints to others, which must find out by themselves as well. `fn` must not throw.
 * @throws Error when `tx` is no transaction that `transaction` has begun.
 */
export function afterCommit(tx: Db, fn: () => void): void {
  const then = running.get(tx)?.then;
  if (then === undefined) throw new Error("what is to happen after a commit needs a transaction");
  then.push(fn);
}

/** Returns the connections that statements go to; undefined in a transaction that `transaction` has not begun. */
const connectionsOf = (db: Db): Sql | undefined => (canBegin(db) ? db : running.get(db)?.sql);

/** Reports whether the tables lie distributed over nodes; false in a transaction that `transaction` has not begun. */
export const inDistributed = (db: Db): boolean => connectionsOf(db)?.distributed ?? false;

/** Reports whether the connection plans without values by itself; false in a transaction that `transaction` has not begun. */
export const isPlannedWithoutValues = (db: Db): boolean => connectionsOf(db)?.plansWithoutValues ?? false;

/** An error that makes `transaction` run again, from its beginning. */
export function again(message: string): Error {
  return Object.assign(new Error(message), { code: "40001" });
}
