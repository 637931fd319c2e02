import { setTimeout as sleep } from "node:timers/promises";
import type { Db, Sql } from "./connect.ts";

const attemptsMax = 6;

const canBegin = (db: Db): db is Sql => "begin" in db;

/**
 * Runs `fn` in a transaction: the caller's when `db` is one already, else a new one that commits when `fn` resolves.
 * A new one runs again, up to 6 times, when PostgreSQL asks for it (40001 serialization failure, 40P01 deadlock), so
 * `fn` must have no other effect than its statements.
 */
export async function transaction<T>(db: Db, fn: (tx: Db) => Promise<T>): Promise<T> {
  if (!canBegin(db)) return await fn(db);
  for (let attempt = 1; ; attempt++) {
    try {
      return (await db.begin(fn)) as T;
    } catch (error) {
      const { code } = error as { code?: string };
      if ((code !== "40001" && code !== "40P01") || attempt === attemptsMax) throw error;
      await sleep(Math.random() * 5 * 2 ** attempt);
    }
  }
}
