import type { Db, Sql } from "../../db/connect.ts";
import { isConnectionLost } from "../../db/driver/connection-errors.ts";
import { afterCommit, transaction } from "../../db/transaction.ts";
import { paced } from "../../event-loop.ts";
import { failpoint } from "../../failpoint.ts";
import type { Histogram } from "../../histogram.ts";
import type { Log } from "../../log.ts";
import { decodeFacts, type Fact } from "../facts.ts";
import type { Consumer } from "./consumer.ts";
import { type Cursor, endCursor, factsAfter, hasCursor, lockCursor, moveCursor } from "./cursors.ts";
import { factsNow } from "./facts-now.ts";

/** Counts what this process has consumed. */
export interface ConsumerStats {
  facts: number;
  /** Facts that were set aside: consuming them failed again and again. */
  setAside: number;
  /** Delays between storing and consuming, s. */
  readonly lateSec: Histogram;
}

/** Holds what the transactions of a consumer share. */
export interface Consuming {
  readonly db: Sql;
  readonly consumer: Consumer;
  readonly stats: ConsumerStats;
  readonly log?: Pick<Log, "error"> | undefined;
  nowMs(): number;
  /** Tells whether a server of 0.3 may read what is set aside. Absent: none may. */
  oldForm?(): boolean;
}

/** A row of the feed in memory. */
export interface Row {
  readonly position: bigint;
  readonly createdMs: number;
  readonly facts: readonly Fact[];
}

/** Facts that one transaction shows to a consumer. */
export interface Shown {
  readonly first: Fact | undefined;
  readonly count: number;
  readonly place: Cursor;
  /** When the first was stored, ms. */
  readonly storedMs: number;
}

/** The feed of a tenant, as far as this process has it in memory. */
export interface Feed {
  /** Rows that wait, mostly one after the other. */
  rows: Row[];
  /** How many facts one transaction shows: fewer after one that has failed. */
  factsMax: number;
  /** What the latest transaction has shown; undefined: it came to no facts. */
  shown: Shown | undefined;
}

/** Result of a transaction: the tenant's feed may have more, is at its end, or another transaction is at work. */
export type Slice = "more" | "end" | "busy";

/** A collision, want of room or memory, a lock, an end of the server, its files: what PostgreSQL refuses whatever the facts. */
export const isOfNoFact = (error: unknown) =>
  isConnectionLost(error) || /^(40|53|55|57P|58)/.test(String((error as { code?: unknown }).code));

/** Shows the next facts of a tenant to the consumer, and moves its cursor behind those that it takes, in one transaction. */
export async function consumeNext(consuming: Consuming, tenantId: string, feed: Feed): Promise<Slice> {
  const { db, consumer, stats, nowMs } = consuming;
  const { name } = consumer;
  feed.shown = undefined;
  const moved = await transaction(db, async (tx) => {
    // Those alone are older than what the cursor's statement says of the rules.
    const before = [...feed.rows];
    const cursor = await lockCursor(tx, tenantId, name);
    if (cursor === undefined) {
      if (await hasCursor(tx, tenantId, name)) return "busy";
      feed.rows = [];
      return "end";
    }
    const kept = nextOf(before, cursor);
    const rows = kept.length > 0 ? kept : await readAfter(tx, tenantId, feed, cursor, consuming.log);
    if (rows.length === 0) return "end";
    failpoint("consumer:read");
    const facts = rows.flatMap((row) => row.facts).slice(cursor.done, cursor.done + feed.factsMax);
    const storedMs = rows[0]?.createdMs ?? 0;
    feed.shown = { first: facts[0], count: facts.length, place: cursor, storedMs };
    const now = nowMs();
    const moment = { storedMs, nowMs: now, ...(kept.length > 0 && { rulesVersion: cursor.rulesVersion }) };
    const nothing = { taken: 0, idleAt: undefined };
    const { taken, idleAt } = facts.length === 0 ? nothing : await consumer.batch(tx, tenantId, facts, moment);
    if (taken === 0 && facts.length > 0) return "busy";
    const { place, ended } = advanced(cursor, rows, taken);
    failpoint("consumer:consumed");
    const end = moveCursor(tx, tenantId, name, place);
    end.catch(() => undefined); // the transaction fails with it
    if (idleAt !== undefined && (await end) === place.position) await endCursor(tx, tenantId, name, idleAt);
    afterCommit(tx, () => {
      stats.facts += taken;
      for (const { createdMs } of ended) stats.lateSec.note(Math.max(0, now - createdMs) / 1000);
      feed.rows = feed.rows.filter(({ position }) => position > place.position);
    });
    return { end, position: place.position };
  });
  if (typeof moved === "string") return moved;
  return (await moved.end) === moved.position ? "end" : "more";
}

/** Returns the rows right after a cursor: they come in the order of the answers to their commits, some twice, some after a gap. */
function nextOf(rows: readonly Row[], { position }: Cursor): readonly Row[] {
  const byPosition = new Map(rows.map((row) => [row.position, row]));
  const next: Row[] = [];
  for (let row = byPosition.get(position + 1n); row !== undefined; row = byPosition.get(row.position + 1n))
    next.push(row);
  return next;
}

/** Reads the rows after a cursor from the feed. */
async function readAfter(
  tx: Db,
  tenantId: string,
  feed: Feed,
  { position }: Cursor,
  log: Consuming["log"],
): Promise<readonly Row[]> {
  const pace = paced(undefined, tenantId);
  const rows: Row[] = [];
  for (const { facts, changes, ...row } of await factsAfter(tx, tenantId, position)) {
    // A row that cannot be read is passed over: as long as it stood, nothing of the tenant would be consumed again.
    const readable = (read: Promise<Fact[]>) =>
      read.catch((error) => {
        if (isOfNoFact(error) || "query" in error) throw error;
        const place = { tenant: tenantId, position: `${row.position}`, cause: error.message };
        log?.error(place, "facts of the feed cannot be read");
        return [];
      });
    if (facts !== null) rows.push({ ...row, facts: await readable(decodeFacts(facts, changes, pace)) });
    else {
      // Alone, and never kept: its facts hold under the locks of this transaction.
      if (rows.length === 0) return [{ ...row, facts: await readable(factsNow(tx, tenantId, changes)) }];
      break;
    }
  }
  const last = rows.at(-1)?.position ?? position;
  feed.rows = [...rows, ...feed.rows.filter((row) => row.position > last)];
  return rows;
}

/** The place behind facts that were taken, and the rows of which all are. */
function advanced(cursor: Cursor, rows: readonly Row[], taken: number): { place: Cursor; ended: Row[] } {
  let [{ position }, done] = [cursor, cursor.done + taken];
  const ended: Row[] = [];
  for (const row of rows) {
    if (done < row.facts.length) break;
    done -= row.facts.length;
    position = row.position;
    ended.push(row);
  }
  return { place: { position, done }, ended };
}
