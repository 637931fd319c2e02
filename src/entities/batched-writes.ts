import type { Matching } from "../clause/to-sql.ts";
import { byteaArray } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { transaction } from "../db/transaction.ts";
import { ID_BYTES } from "./identity.ts";
import { livingEntities } from "./matching.ts";

/** A write of however many entities: when it happens, what cuts it short, and what belongs to it. */
export interface BatchedWrite {
  nowMs: number;
  signal: AbortSignal;
  /** Whether there are no more than `portionMax` for sure, so that one transaction does. */
  few: boolean;
  /** How many names of fields of a tenant are known. */
  fieldsMax: number;
  /** Called once, in the first transaction, with the number of entities. */
  audit(tx: Db, count: number): Promise<void>;
}

/** Entities a transaction: few, so that other transactions wait only briefly for their locks. */
export const portionMax = 1000;

// The statement that finds many entities takes longer than others may. The deadline of its call ends it all the same.
const statementMsMax = 600_000;

async function withLongTimeout<T>(tx: Db, find: (tx: Db) => Promise<T>): Promise<T> {
  await tx.unsafe(`set local statement_timeout = ${statementMsMax}`);
  return await find(tx);
}

/**
 * Runs `write` over the living entities that `matching` holds for at one moment: a thousand a transaction in the order of
 * their ids, so that no row stays locked for long, and a few in one, which then finds them by itself. What is written when
 * it is cut off stays. Returns what each transaction answered.
 * @param find finds them all, in portions; throws when nothing may be written
 */
export async function inPortions<T>(
  db: Db,
  { few, signal, audit }: BatchedWrite,
  matching: Matching,
  find: (tx: Db) => Promise<Buffer[]>,
  write: (tx: Db, matching: Matching) => Promise<{ answer: T; count: number }>,
): Promise<T[]> {
  const found = few ? undefined : await transaction(db, (tx) => withLongTimeout(tx, find));
  if (found === undefined || found.length <= 1) {
    const one = await transaction(db, async (tx) => {
      const { answer, count } = await write(tx, matching);
      await audit(tx, count);
      return answer;
    });
    return [one];
  }
  const total = found.reduce((sum, ids) => sum + ids.byteLength / ID_BYTES, 0);
  const answers: T[] = [];
  for (const [i, ids] of found.entries()) {
    signal.throwIfAborted();
    const some = await transaction(db, async (tx) => {
      if (i === 0) await audit(tx, total);
      const { answer } = await write(tx, withIds(tx, splitIds(ids)));
      return answer;
    });
    answers.push(some);
  }
  return answers;
}

/** The rows of these ids. */
export const withIds = (db: Db, ids: readonly Buffer[]): Matching => ({
  sql: db`id = any(${byteaArray(ids)}::bytea[])`,
  sources: [],
});

/** Ids that were put one after the other. */
export function splitIds(bytes: Buffer): Buffer[] {
  const ids: Buffer[] = [];
  for (let at = 0; at < bytes.byteLength; at += ID_BYTES) ids.push(bytes.subarray(at, at + ID_BYTES));
  return ids;
}

/**
 * The ids of the living entities that `matching` holds for, in their order, in portions of at most this many, each put one
 * behind the other.
 */
export async function matchingIds(
  db: Db,
  tenantId: string,
  matching: Matching,
  portion: number,
  signal?: AbortSignal,
): Promise<Buffer[]> {
  const { from, sql } = livingEntities(db, tenantId, matching);
  // Put together in SQL: a row for each of a million ids would hold the process up.
  const query = db<{ ids: Buffer }[]>`
    select string_agg(id, ''::bytea order by id) as ids
    from (
      select id, (row_number() over (order by id) - 1) / ${portion}::int4 as portion
      from ${from} where ${sql}
    ) as matching
    group by portion order by portion`;
  return (await cancelOn(query, signal)).map(({ ids }) => ids);
}
