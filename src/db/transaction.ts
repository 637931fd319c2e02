import { setTimeout as sleep } from "node:timers/promises";
import { failpoint } from "../failpoint.ts";
import type { Db, Sql } from "./connect.ts";

const attemptsMax = 6;
// Serialization failure, deadlock.
const asked = new Set(["40001", "40P01"]);

const canBegin = (db: Db): db is Sql => "begin" in db;

/**
 * Runs `fn` in a transaction: the caller's when `db` is one already, else a new one that commits when `fn` resolves.
 * A new one runs again, up to 6 times, when PostgreSQL asks for it (serialization failure, deadlock), so `fn` must have
 * no other effect than its statements.
 */
export async function transaction<T>(db: Db, fn: (tx: Db) => Promise<T>): Promise<T> {
  if (!canBegin(db)) return await fn(db);
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await db.begin(async (tx) => {
        failpoint("transaction:begun");
        const done = await fn(tx);
        failpoint("transaction:before-commit");
        return done;
      });
      failpoint("transaction:committed");
      return answer;
    } catch (error) {
      if (attempt === attemptsMax || !asked.has((error as { code?: string }).code ?? "")) throw error;
      await sleep(Math.random() * 5 * 2 ** attempt);
    }
  }
}
