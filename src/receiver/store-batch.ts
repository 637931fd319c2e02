import { ConnectError } from "@connectrpc/connect";
import type { Sql } from "../db/connect.ts";
import { isFull } from "../db/disk-space.ts";
import { isConnectionLost } from "../db/driver/connection-errors.ts";
import { isContent } from "../db/refused-content.ts";
import { transaction } from "../db/transaction.ts";
import { unavailable } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import type { IngestPart, LaneKind, Refused } from "./ingest-queue.ts";

/** A part that is being stored, and how its sender hears of it. */
export interface WaitingPart extends IngestPart<unknown> {
  /** Stored, but for the items at these places. */
  done(refused: Map<number, string>): void;
  fail(error: unknown): void;
}

/** Where and what is stored. */
export interface Storing {
  sql: Sql;
  kind: LaneKind<unknown>;
  tenantId: string;
  /** Hears of an item that was checked and that PostgreSQL did not take all the same, and of batches that failed. */
  report(error: unknown): void;
}

/** Parts that PostgreSQL asks to be stored again, and its last words. */
export interface Repeat<P> {
  parts: P[];
  error: unknown;
}

const sqlState = (error: unknown): string | undefined => {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
};

// Serialization failure, deadlock, a lock that others held for too long.
const repeatable = new Set(["40001", "40P01", "55P03"]);

/** Stored, but for some items; or what keeps all of them from being stored. */
type Attempt = { refused: Refused } | { error: unknown };

async function attempt({ sql, kind, tenantId }: Storing, items: readonly unknown[]): Promise<Attempt> {
  try {
    failpoint("batch:taken");
    const refused = await transaction(sql, (tx) => kind.store(tx, tenantId, items), { attemptsMax: 1 });
    failpoint("batch:stored");
    return { refused: refused ?? new Map() };
  } catch (error) {
    return { error: error ?? new Error("it failed") };
  }
}

/** Notifies each part that it is stored, but for those of its items that were refused. */
function tellStored(parts: readonly WaitingPart[], refused: Refused): void {
  let from = 0;
  for (const part of parts) {
    const own = new Map<number, string>();
    if (refused.size > 0) {
      for (let i = 0; i < part.items.length; i++) {
        const reason = refused.get(from + i);
        if (reason !== undefined) own.set(i, reason);
      }
    }
    from += part.items.length;
    part.done(own);
  }
}

/**
 * Stores parts in one transaction, and reports to each how it ended. When something of their items cannot be stored they are split, by
 * parts, then by items, until those stand alone that are at fault. Answers those that are to be stored again.
 */
export async function storeParts<P extends WaitingPart>(storing: Storing, parts: P[]): Promise<Repeat<P>[]> {
  const [only, ...others] = parts;
  if (only === undefined) return [];
  const done = await attempt(storing, others.length === 0 ? only.items : parts.flatMap(({ items }) => items));
  if ("refused" in done) {
    tellStored(parts, done.refused);
    return [];
  }
  const { error } = done;
  if (repeatable.has(sqlState(error) ?? "")) return [{ parts, error }];
  if (!isContent(error)) {
    const told = toldAs(error);
    if (!isConnectionLost(error)) storing.report(error);
    for (const part of parts) part.fail(told);
    return [];
  }
  if (others.length === 0) return await storeItems(storing, only, error);
  const middle = parts.length >> 1;
  const first = await storeParts(storing, parts.slice(0, middle));
  return [...first, ...(await storeParts(storing, parts.slice(middle)))];
}

/** The error of a batch that failed as a whole: it is unknown whether it is stored, and sending again is safe. */
function toldAs(error: unknown): unknown {
  if (error instanceof ConnectError) return error;
  if (isFull(error)) return unavailable("the database's disk is full; send the request again when it has room");
  if (isConnectionLost(error) || sqlState(error) !== undefined) {
    return unavailable("the database did not store it in time; send the request again");
  }
  return error;
}

/** Stores the items of a part that cannot be stored as a whole, in halves, in their order. */
async function storeItems<P extends WaitingPart>(storing: Storing, part: P, failed: unknown): Promise<Repeat<P>[]> {
  const refused = new Map<number, string>();
  /** Answers what keeps the rest from being stored. */
  async function range(from: number, to: number, error: unknown): Promise<unknown> {
    if (to - from === 1) {
      storing.report(error);
      // The driver's own words stay in the log.
      refused.set(from, sqlState(error)?.startsWith("54") ? tooLarge : notTaken);
      return undefined;
    }
    const middle = (from + to) >> 1;
    for (const [start, end] of [
      [from, middle],
      [middle, to],
    ] as const) {
      const done = await attempt(storing, part.items.slice(start, end));
      if ("refused" in done) {
        for (const [place, reason] of done.refused) refused.set(start + place, reason);
        continue;
      }
      const again = done.error;
      const stops = isContent(again) ? await range(start, end, again) : again;
      if (stops !== undefined) return stops;
    }
    return undefined;
  }
  const stops = await range(0, part.items.length, failed);
  if (stops === undefined) part.done(refused);
  else if (repeatable.has(sqlState(stops) ?? "")) return [{ parts: [part], error: stops }];
  else part.fail(toldAs(stops));
  return [];
}

const tooLarge = "cannot be stored: a value of it is too large";
const notTaken = "cannot be stored: the database does not take one of its values";

/** The error of a part whose attempts are used up. */
export const givenUp = () => unavailable("other requests change the same rows; send the request again");
