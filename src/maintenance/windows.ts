import { randomUUIDv7 } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { ErrorReason, FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  type MaintenanceWindow,
  MaintenanceWindowSchema,
  RunState,
  type Schedule,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type { Db } from "../db/connect.ts";
import { orm } from "../db/orm.ts";
import { alreadyExists, failedPrecondition, invalidField, invalidFields, notFound } from "../errors.ts";
import { brokenWindowMessage } from "../notifications/api/window-messages.ts";
import { checkEtag } from "../rpc/etag.ts";
import { normalizedName } from "../rpc/name-rules.ts";
import type { WindowHooks } from "./hooks.ts";
import { isStoredSchedule, progressValues, specificationValues, toProgress, toWindow } from "./messages.ts";
import { notRun, replan, type Step, startNow, stopNow } from "./progress.ts";
import { lockWindows, type RunRow, rulesOf, runColumns } from "./rows.ts";
import { cancelRuns, changeMembers, planNext, storeMoved } from "./run.ts";
import { checkFuture, checkSpecification, rulesOfChecked } from "./specification.ts";
import { maintenanceMembers as members, maintenanceWindows as table, maintenanceWindows as windows } from "./tables.ts";

const kind = "maintenance window";

/** The tenant and the client of a write, its time, and what is reported of it. */
export interface WindowWrite {
  tenant: { id: string; name: string };
  clientName: string;
  nowMs: number;
  hooks: WindowHooks;
}

/** What a write answers: the window's id, and when something happens to it next. */
export interface Written {
  id: string;
  dueMs: number | undefined;
}

/** Creates a window; one whose time has come starts. @throws code 3, and code 6 when the name is taken */
export async function createWindow(tx: Db, sent: MaintenanceWindow, writing: WindowWrite): Promise<Written> {
  const { tenant, clientName, nowMs, hooks } = writing;
  const checked = checkSpecification(sent);
  await checkNotification(tx, tenant.id, sent);
  checkFuture(checked, nowMs);
  const { window, plan } = checked;
  const skipNext = Number(window.schedule?.skipNext ?? 0n);
  const planned = replan({ ...notRun, skipNext }, rulesOfChecked(checked), plan.durationMs, nowMs);
  const now = BigInt(nowMs);
  const [row] = await orm(tx)
    .insert(table)
    .values({
      tenantId: tenant.id,
      id: randomUUIDv7(),
      name: window.name,
      ...specificationValues(window),
      createdMs: now,
      updatedMs: now,
      createdBy: clientName,
      updatedBy: clientName,
      ...progressValues(planned.progress),
      version: 1n,
    })
    .onConflictDoNothing({ target: [table.tenantId, table.name] })
    .returning(runColumns);
  if (row === undefined) throw alreadyExists(kind, window.name);
  await changeMembers(tx, tenant.id, [{ row, ...planned }], nowMs, hooks);
  return { id: row.id, dueMs: await planNext(tx, tenant.id, { row, ...planned }, nowMs) };
}

/** Brings the names of the rules of its notification to form NFC. @throws code 3 for a broken template, and an unknown rule */
export async function checkNotification(
  tx: Db,
  tenantId: string,
  { notification }: MaintenanceWindow,
  stored?: Pick<RunRow, "notification">,
): Promise<void> {
  if (notification === undefined) return;
  notification.rules = notification.rules.map(normalizedName);
  const before = stored?.notification as { rules?: string[]; message?: string } | null | undefined;
  const broken = await brokenWindowMessage(tx, tenantId, notification, "specification.notification", {
    kept: new Set(before?.rules),
    stored: before?.message,
  });
  if (broken.length > 0) throw invalidFields(broken);
}

async function lockWindow(tx: Db, tenantId: string, id: string): Promise<RunRow> {
  const [row] = await lockWindows(tx, tenantId, [id]);
  if (row === undefined) throw notFound(kind, id);
  return row;
}

/** Replaces a window but for its name; a run that goes on takes the new specification over. @throws code 3, 5 */
export async function replaceWindow(
  tx: Db,
  id: string,
  sent: MaintenanceWindow,
  writing: WindowWrite,
): Promise<Written> {
  const { tenant, clientName, nowMs, hooks } = writing;
  const [row] = await lockWindows(tx, tenant.id, [id]);
  const checked = checkSpecification(sent);
  if (row === undefined) throw notFound(kind, id);
  if (sent.etag !== "") {
    const [whole] = await orm(tx)
      .select()
      .from(table)
      .where(and(eq(table.tenantId, tenant.id), eq(table.id, id)));
    if (whole !== undefined) checkEtag(kind, id, sent, MaintenanceWindowSchema, toWindow(whole, tenant.name));
  }
  const { window } = checked;
  await checkNotification(tx, tenant.id, sent, row);
  if (window.name !== row.name) throw invalidField("specification.name", "cannot be changed", FieldRule.IMMUTABLE);
  const values = specificationValues(window);
  // A window that is over may still get another description.
  if (!isStoredSchedule(window.schedule as Schedule, row)) checkFuture(checked, nowMs);
  const [changed] = await orm(tx)
    .update(table)
    .set({ ...values, updatedMs: BigInt(nowMs), updatedBy: clientName })
    .where(and(eq(table.tenantId, tenant.id), eq(table.id, id)))
    .returning(runColumns);
  const before = { ...toProgress(row), skipNext: Number(window.schedule?.skipNext ?? 0n) };
  const planned = replan(before, rulesOfChecked(checked), rulesOf(row).plan.durationMs, nowMs);
  const dueMs = await storeMoved(tx, tenant.id, { row: changed as RunRow, ...planned }, nowMs, hooks);
  return { id, dueMs };
}

/** Deletes windows, all or none; runs that go on end. @throws code 5 for an unknown id, and nothing is deleted */
export async function deleteWindows(
  tx: Db,
  ids: readonly string[],
  { tenant, nowMs, hooks }: WindowWrite,
): Promise<void> {
  const rows = await lockWindows(tx, tenant.id, ids);
  const known = new Set(rows.map(({ id }) => id));
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) throw notFound(kind, unknown);
  const moved = rows.map((row) => {
    const steps: Step[] = row.runState === RunState.IN_PROGRESS ? [{ what: "end", atMs: nowMs }] : [];
    return { row, progress: notRun, steps };
  });
  const remove = async (id: string) =>
    await orm(tx)
      .delete(table)
      .where(and(eq(table.tenantId, tenant.id), eq(table.id, id)));
  await Promise.all([...known].map(remove));
  await changeMembers(tx, tenant.id, moved, nowMs, hooks);
  await Promise.all([...known].map((id) => cancelRuns(tx, tenant.id, id)));
}

/** Starts a run by hand, for the schedule's duration. @throws code 5; code 9 when one goes on, or the window is disabled */
export async function startWindow(tx: Db, id: string, { tenant, nowMs, hooks }: WindowWrite): Promise<Written> {
  const row = await lockWindow(tx, tenant.id, id);
  const rules = rulesOf(row);
  if (rules.status === WindowStatus.DISABLED)
    throw failedPrecondition(`${kind} "${id}" is disabled`, ErrorReason.DISABLED);
  if (row.runState === RunState.IN_PROGRESS) throw failedPrecondition(`${kind} "${id}" is running already`);
  const moved = { row, ...startNow(toProgress(row), rules, nowMs) };
  return { id, dueMs: await storeMoved(tx, tenant.id, moved, nowMs, hooks) };
}

/** Ends the run that goes on. @throws code 5; code 9 when none does */
export async function stopWindow(tx: Db, id: string, { tenant, nowMs, hooks }: WindowWrite): Promise<Written> {
  const row = await lockWindow(tx, tenant.id, id);
  if (row.runState !== RunState.IN_PROGRESS) throw failedPrecondition(`${kind} "${id}" is not running`);
  const moved = { row, ...stopNow(toProgress(row), rulesOf(row), nowMs) };
  return { id, dueMs: await storeMoved(tx, tenant.id, moved, nowMs, hooks) };
}

/** A window that an entity is in, and when its run ends, ms; null: by hand. */
export interface OpenWindow {
  readonly name: string;
  readonly untilMs: bigint | null;
}

/** The open windows that an entity is in. */
export async function openWindows(db: Db, tenantId: string, entityId: Buffer): Promise<OpenWindow[]> {
  const entered = await orm(db)
    .select({ id: members.windowId })
    .from(members)
    .where(and(eq(members.tenantId, tenantId), eq(members.entityId, entityId)));
  // One id at a time: of several, what PostgreSQL reads depends on what it knows of the windows.
  const found = await Promise.all(
    entered.map(({ id }) =>
      orm(db)
        .select({ name: windows.name, untilMs: windows.runEndMs })
        .from(windows)
        .where(and(eq(windows.tenantId, tenantId), eq(windows.id, id))),
    ),
  );
  return found.flat().sort((one, other) => (one.name < other.name ? -1 : 1));
}
