import type { Db } from "../../../db/connect.ts";
import { isConnectionLost } from "../../../db/driver/connection-errors.ts";
import { afterCommit } from "../../../db/transaction.ts";
import { lockEvents } from "../../../events/lock.ts";
import { type Histogram, histogram, secondsBounds } from "../../../histogram.ts";
import type { Again, Job } from "../../../jobs/queue.ts";
import type { JobKind } from "../../../jobs/worker.ts";
import type { Log } from "../../../log.ts";
import { readNoted, type SeenChange, seenChange } from "../match.ts";
import { effort } from "../matcher/effort.ts";
import { findMatches } from "../matcher/find-matches.ts";
import type { Deciding } from "../on-changes.ts";
import { passFrom } from "../stages.ts";
import { changesOf } from "./snapshot.ts";
import { endUnmatched, lockOldest, matchKind, type Unmatched } from "./unmatched-changes.ts";

/** What this process has matched after the commit. */
export interface LateStats {
  changes: number;
  /** Changes that were set aside: matching them failed again and again. */
  setAside: number;
  /** How long after they were stored, s. */
  readonly lateSec: Histogram;
}

/** One run takes at most this many rows, works for about this long, ms, and decides on about this many matches. */
const rowsMax = 50;
const workMs = 500;
const matchesMax = 5000;
const charsMax = 512 * 1024;
/** A row that has failed alone this often, for this time, ms, is set aside. */
const triesMax = 8;
const failingMs = 60_000;
/** Another server has the oldest changes: the job runs again after this time, ms. */
const busyMs = 100;

/** A row with its changes that are still to be matched. */
interface Portion {
  readonly row: Unmatched;
  readonly all: readonly SeenChange[];
}

/**
 * Matches what was stored unmatched, in its order, on one server at a time for each tenant, by the rules as they are by then. Each
 * row has left a job: a run that ends a job has ended a row, or found that none is left.
 */
export function lateMatching(deciding: Deciding, log?: Pick<Log, "error">): { kind: JobKind; stats(): LateStats } {
  const stats: LateStats = { changes: 0, setAside: 0, lateSec: histogram([...secondsBounds, 60, 300, 1800]) };

  const failing = failingRows();

  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number): Promise<readonly Again[]> {
    const again = (from: number, dueMs: number) => jobs.slice(from).map(({ id, payload }) => ({ id, dueMs, payload }));
    const portions = await lockPortions(tx, tenantId, jobs.length, log);
    if (portions.length === 0) {
      const others = await tx`select from unmatched_changes where tenant_id = ${tenantId} limit 1`;
      return others.count === 0 ? [] : again(0, nowMs + busyMs);
    }
    const [oldest] = portions;
    if (oldest !== undefined && failing.always(tenantId, oldest.row, nowMs)) {
      await setAside(tx, tenantId, oldest);
      return again(1, nowMs);
    }
    const done = await match(tx, tenantId, portions, nowMs).catch((error: Error) => {
      if (portions.length === 1 && oldest !== undefined) failing.note(tenantId, oldest.row, error, nowMs);
      throw error;
    });
    failing.forget(tenantId);
    const whole = portions.filter((_, i) => endOf(portions, i) <= done);
    const begun = portions[whole.length];
    const left = begun && { row: begun.row, done: begun.row.done + done - endOf(portions, whole.length - 1) };
    await endUnmatched(
      tx,
      tenantId,
      whole.map(({ row }) => row),
      left,
    );
    afterCommit(tx, () => {
      stats.changes += done;
      for (const { row } of whole) stats.lateSec.note(Math.max(0, nowMs - row.createdMs) / 1000);
    });
    return again(whole.length, nowMs);
  }

  /** What always fails would keep everything that follows from being matched. Its events stay as they are. */
  async function setAside(tx: Db, tenantId: string, { row, all }: Portion) {
    await endUnmatched(tx, tenantId, [row], undefined);
    const cause = failing.causeOf(tenantId);
    const events = [...new Set(all.map(({ change: { event } }) => event.id.toString("base64url")))].slice(0, 10);
    afterCommit(tx, () => {
      stats.setAside += all.length;
      failing.forget(tenantId);
      log?.error(
        { tenant: tenantId, row: row.id, changes: all.length, events, cause },
        "changes of events are set aside: matching them with rules failed again and again",
      );
    });
  }

  /** Matches changes until the effort ends, and decides on them; returns how many. */
  async function match(tx: Db, tenantId: string, portions: readonly Portion[], nowMs: number): Promise<number> {
    const rules = await deciding.memory.now(tx, tenantId);
    const all = portions.flatMap((portion) => portion.all);
    // At least one, however long it takes: else nothing would ever end.
    const first = await findMatches(tx, tenantId, rules, all.slice(0, 1), effort(tenantId));
    const others = await findMatches(tx, tenantId, rules, all.slice(1), effort(tenantId, workMs), matchesMax);
    const some = all.slice(0, first + others);
    const events = new Map(some.map(({ change: { event } }) => [event.id.toString("latin1"), event.id]));
    const { ids } = await lockEvents(tx, tenantId, [...events.values()]);
    const there = new Set(ids.map((id) => id.toString("latin1")));
    const known = some.filter(({ change }) => there.has(change.event.id.toString("latin1")));
    const reported = known.flatMap(({ change }) => (change.reported ? [change.event] : []));
    deciding.onEvents(tx, tenantId, rules, reported, portions[0]?.row.createdMs ?? nowMs);
    const noted = await readNoted(tx, tenantId, known);
    await passFrom("match", { tx, tenantId, nowMs, wake: deciding.wake, noted, changes: { rules, all: known } });
    return some.length;
  }

  return { kind: { name: matchKind, sizeMax: rowsMax, share: 1, run }, stats: () => stats };
}

/**
 * The row that fails now, of each tenant of which one does. Jobs that have failed are claimed alone, so that the row at fault is;
 * only the oldest row of a tenant can be at fault.
 */
function failingRows() {
  const rows = new Map<string, { id: string; sinceMs: number; tries: number; cause: string }>();
  return {
    note(tenantId: string, { id }: Unmatched, error: Error, nowMs: number): void {
      if (isConnectionLost(error) || isOfNoRow(error)) return;
      const before = rows.get(tenantId);
      const same = before?.id === id ? before : { id, sinceMs: nowMs, tries: 0 };
      rows.set(tenantId, { ...same, tries: same.tries + 1, cause: error.message });
    },
    always(tenantId: string, { id }: Unmatched, nowMs: number): boolean {
      const known = rows.get(tenantId);
      return known?.id === id && known.tries >= triesMax && nowMs - known.sinceMs >= failingMs;
    },
    causeOf: (tenantId: string) => rows.get(tenantId)?.cause,
    forget: (tenantId: string) => void rows.delete(tenantId),
  };
}

/** A collision, want of room or memory, a lock, an end of the server, its files: what PostgreSQL refuses whatever the row. */
const isOfNoRow = ({ code }: Error & { code?: unknown }) => /^(40|53|55|57P|58)/.test(String(code));

/** How many changes the portions up to this one hold. */
const endOf = (portions: readonly Portion[], last: number) =>
  portions.slice(0, last + 1).reduce((sum, { all }) => sum + all.length, 0);

/** Takes the oldest rows, until there are enough, or another server has the next one. */
async function lockPortions(
  tx: Db,
  tenantId: string,
  rowsMax: number,
  log: Pick<Log, "error"> | undefined,
): Promise<Portion[]> {
  const portions: Portion[] = [];
  for (let chars = 0; portions.length < rowsMax && chars < charsMax; ) {
    const row = await lockOldest(
      tx,
      tenantId,
      portions.map(({ row }) => row),
    );
    if (row === undefined) break;
    chars += row.changes.length;
    portions.push({ row, all: changesLeft(tenantId, row, log) });
  }
  return portions;
}

/** A row that cannot be read is passed over: as long as it stood, nothing of the tenant would be matched again. */
function changesLeft(tenantId: string, { id, changes, done }: Unmatched, log: Pick<Log, "error"> | undefined) {
  try {
    return changesOf(changes).slice(done).map(seenChange);
  } catch (error) {
    log?.error({ tenant: tenantId, row: id, cause: (error as Error).message }, "unmatched changes cannot be read");
    return [];
  }
}
