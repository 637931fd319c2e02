import { and, eq } from "drizzle-orm";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { storedSchedule, type WindowRow } from "./messages.ts";
import type { Rules } from "./progress.ts";
import { windowPlanOf } from "./schedule.ts";
import { maintenanceWindows as table } from "./tables.ts";

/** What decides when a window runs, and what is sent of it; not its clause, which may hold megabytes. */
export const runColumns = {
  id: table.id,
  name: table.name,
  schedule: table.schedule,
  notification: table.notification,
  runMode: table.runMode,
  status: table.status,
  version: table.version,
  runState: table.runState,
  skipNext: table.skipNext,
  handledMs: table.handledMs,
  nextDueMs: table.nextDueMs,
  nextStartMs: table.nextStartMs,
  runStartMs: table.runStartMs,
  runEndMs: table.runEndMs,
};

/** These columns of a window. */
export type RunRow = Pick<WindowRow, keyof typeof runColumns>;

/** Windows by their ids and in the order of these, locked until the transaction ends; unknown ids are left out. */
export async function lockWindows(tx: Db, tenantId: string, ids: readonly string[]): Promise<RunRow[]> {
  // One by one: a list of ids may look dearer than all windows of a tenant by their names (design/statements).
  const lock = async (id: string) =>
    await orm(tx)
      .select(runColumns)
      .from(table)
      .where(and(eq(table.tenantId, tenantId), eq(table.id, id)))
      .for("no key update");
  return (await Promise.all([...new Set(ids)].sort().map(lock))).flat();
}

/** By what a window runs. */
export function rulesOf(row: RunRow): Rules {
  const { runMode, status } = row;
  return { plan: windowPlanOf(storedSchedule(row)), runMode, status };
}

/** One window, not locked; undefined: there is none. */
export async function readWindow(tx: Db, tenantId: string, id: string): Promise<WindowRow | undefined> {
  const [row] = await orm(tx)
    .select()
    .from(table)
    .where(and(eq(table.tenantId, tenantId), eq(table.id, id)));
  return row;
}
