import { and, eq, inArray } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { paced } from "../event-loop.ts";
import { cancel, enqueue, type Job } from "../jobs/queue.ts";
import type { JobKind } from "../jobs/worker.ts";
import type { WindowNotice } from "../notifications/deciding/windows.ts";
import type { WindowHooks } from "./hooks.ts";
import { membersJob, membersKind } from "./members.ts";
import { progressValues, toProgress } from "./messages.ts";
import { advance, nextChangeMs, type Step, type WindowProgress } from "./progress.ts";
import { lockWindows, type RunRow, rulesOf } from "./rows.ts";
import { maintenanceTargets, maintenanceWindows as table } from "./tables.ts";

/** What has happened to a window. */
export interface Moved {
  row: RunRow;
  progress: WindowProgress;
  steps: readonly Step[];
}

/** The jobs of windows, by the windows' ids: due at the next start or end. */
const runsKind = "maintenance.runs";
/** Windows whose time has come in one transaction. */
const windowsMax = 100;

/** Writes what has happened to windows, whose rows are locked, and leaves the work that follows from it. */
async function store(
  tx: Db,
  tenantId: string,
  moved: readonly Moved[],
  nowMs: number,
  hooks: WindowHooks,
): Promise<void> {
  await Promise.all(
    moved.map(({ row, progress, steps }) =>
      orm(tx)
        .update(table)
        .set({ ...progressValues(progress), version: row.version + (steps.length > 0 ? 1n : 0n) })
        .where(and(eq(table.tenantId, tenantId), eq(table.id, row.id))),
    ),
  );
  await changeMembers(tx, tenantId, moved, nowMs, hooks);
}

/** Leaves the work that follows from what has happened to windows: their entities change, and it is reported. */
export async function changeMembers(
  tx: Db,
  tenantId: string,
  moved: readonly Moved[],
  nowMs: number,
  hooks: WindowHooks,
): Promise<void> {
  const notices = moved.flatMap(noticesOf);
  if (notices.length > 0) await hooks.onRuns?.(tx, tenantId, notices);
  const ids = moved.flatMap(({ row, steps }) => (steps.length > 0 ? [row.id] : []));
  if (ids.length === 0) return;
  await orm(tx)
    .delete(maintenanceTargets)
    .where(and(eq(maintenanceTargets.tenantId, tenantId), inArray(maintenanceTargets.windowId, ids)));
  // A job that is at work on the entities of an earlier version loses its lease by this, and is undone.
  await enqueue(
    tx,
    { tenantId, kind: membersKind },
    ids.map((id) => ({ id, payload: {} })),
    nowMs,
  );
}

function noticesOf({ row, progress, steps }: Moved): WindowNotice[] {
  if (row.notification === null) return [];
  const { message = "", rules = [] } = row.notification as { message?: string; rules?: string[] };
  const lastStart = steps.findLast(({ what }) => what === "start");
  let runMs = Number(row.runStartMs ?? 0n);
  return steps.flatMap((step): WindowNotice[] => {
    const { what, atMs } = step;
    if (what === "renewal") return [];
    // Two runs never begin at the same moment: the last one is known by when it was made to begin.
    if (what === "start") runMs = (step === lastStart ? progress.runStartMs : undefined) ?? atMs;
    return [{ windowId: row.id, windowName: row.name, what, atMs, runMs, message, rules }];
  });
}

/**
 * Stores what a call has done to a window, in its transaction, and when something happens next; answers that time, so
 * that the worker can be woken after the commit.
 */
export async function storeMoved(
  tx: Db,
  tenantId: string,
  moved: Moved,
  nowMs: number,
  hooks: WindowHooks,
): Promise<number | undefined> {
  await store(tx, tenantId, [moved], nowMs, hooks);
  return await planNext(tx, tenantId, moved, nowMs);
}

/** Leaves the job for the next start or end of a window, in place of the one before. */
export async function planNext(
  tx: Db,
  tenantId: string,
  { row, progress }: Pick<Moved, "row" | "progress">,
  nowMs: number,
): Promise<number | undefined> {
  const dueMs = nextChangeMs(progress);
  const lane = { tenantId, kind: runsKind };
  if (dueMs === undefined) await cancel(tx, lane, row.id);
  else await enqueue(tx, lane, [{ id: row.id, payload: {}, dueMs }], nowMs);
  return dueMs;
}

/** Takes back what a window that is being deleted has left to do. */
export async function cancelRuns(tx: Db, tenantId: string, id: string): Promise<void> {
  await cancel(tx, { tenantId, kind: runsKind }, id);
}

/** Starts and ends runs when it is time. */
export function runsJob(hooks: WindowHooks, wake: () => void): JobKind {
  async function run(tx: Db, tenantId: string, jobs: readonly Job[], nowMs: number) {
    const rows = await lockWindows(
      tx,
      tenantId,
      jobs.map(({ id }) => id),
    );
    const all: Moved[] = [];
    const pace = paced(undefined, tenantId);
    for (const row of rows) {
      await pace();
      all.push({ row, ...advance(toProgress(row), rulesOf(row), nowMs) });
    }
    await store(tx, tenantId, all, nowMs, hooks);
    if (all.some(({ steps }) => steps.length > 0)) wake();
    return all.flatMap(({ row, progress }) => {
      const dueMs = nextChangeMs(progress);
      return dueMs === undefined ? [] : [{ id: row.id, dueMs, payload: {} }];
    });
  }
  return { name: runsKind, sizeMax: windowsMax, timed: true, run };
}

/** The background work of windows. `wake` informs the worker that something is due at once. */
export function windowKinds(hooks: WindowHooks, wake: () => void): JobKind[] {
  return [runsJob(hooks, wake), membersJob(hooks)];
}
