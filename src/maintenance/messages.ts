import { isDeepStrictEqual } from "node:util";
import { create, fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import type { InferInsertModel, InferSelectModel } from "drizzle-orm";
import { type Clause, ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import {
  type MaintenanceWindow,
  MaintenanceWindowSchema,
  type Schedule,
  ScheduleSchema,
  WindowNotificationSchema,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { etagOf } from "../rpc/etag.ts";
import type { WindowProgress } from "./progress.ts";
import type { maintenanceWindows } from "./tables.ts";

/** A window as it is stored. */
export type WindowRow = InferSelectModel<typeof maintenanceWindows>;

type Values = InferInsertModel<typeof maintenanceWindows>;
type ProgressColumn = "runState" | "skipNext" | "handledMs" | "nextDueMs" | "nextStartMs" | "runStartMs" | "runEndMs";

/** The columns of a specification that has been checked. */
export function specificationValues(window: MaintenanceWindow) {
  const { schedule, notification } = window;
  return {
    description: window.description,
    owner: window.owner,
    tags: window.tags,
    clause: toJson(ClauseSchema, clauseOf(window)),
    schedule: scheduleJson(schedule as Schedule),
    notification: notification === undefined ? null : toJson(WindowNotificationSchema, notification),
    runMode: window.runMode,
    status: window.status,
    maintenanceState: window.maintenanceState ?? 0,
    exitState: window.exitState,
    overrideExitState: window.overrideExitState,
    force: window.force,
    doNotPropagateToChildren: window.doNotPropagateToChildren,
  } satisfies Partial<Values>;
}

/** A schedule as it is stored: what is still to be skipped is a column of its own. */
export function scheduleJson(schedule: Schedule): JsonObject {
  return toJson(ScheduleSchema, { ...schedule, timeZone: schedule.timeZone || "UTC", skipNext: 0n }) as JsonObject;
}

/** Whether a schedule that is sent is the stored one. Answers hold nulls for what was not sent. */
export function isStoredSchedule(schedule: Schedule, row: Pick<WindowRow, "schedule">): boolean {
  const [sent, stored] = [scheduleJson(schedule), scheduleJson(storedSchedule(row))].map((json) => {
    const given = Object.entries(json.recurrence ?? {}).filter(([, value]) => value !== null);
    return { ...json, recurrence: Object.fromEntries(given) };
  });
  return isDeepStrictEqual(sent, stored);
}

/** The clause of a window's entities; ids are a clause, too. */
export function clauseOf({ target }: MaintenanceWindow): Clause {
  if (target.case === "withIds") return create(ClauseSchema, { withIds: { ids: target.value.ids } });
  return target.value?.clause ?? create(ClauseSchema);
}

export const storedClause = ({ clause }: WindowRow) => fromJson(ClauseSchema, clause as JsonValue);
export const storedSchedule = ({ schedule }: Pick<WindowRow, "schedule">) =>
  fromJson(ScheduleSchema, schedule as JsonValue);

const column = (ms: number | undefined) => (ms === undefined ? null : BigInt(ms));
const time = (ms: bigint | null) => (ms === null ? undefined : Number(ms));

/** The columns of a window's progress. */
export function progressValues(progress: WindowProgress): Pick<WindowRow, ProgressColumn> {
  return {
    runState: progress.runState,
    skipNext: progress.skipNext,
    handledMs: column(progress.handledMs),
    nextDueMs: column(progress.nextDueMs),
    nextStartMs: column(progress.nextStartMs),
    runStartMs: column(progress.runStartMs),
    runEndMs: column(progress.runEndMs),
  };
}

/** A window's progress, as it is stored. */
export function toProgress(row: Pick<WindowRow, ProgressColumn>): WindowProgress {
  return {
    runState: row.runState,
    skipNext: row.skipNext,
    handledMs: time(row.handledMs),
    nextDueMs: time(row.nextDueMs),
    nextStartMs: time(row.nextStartMs),
    runStartMs: time(row.runStartMs),
    runEndMs: time(row.runEndMs),
  };
}

/** A window as the API shows it. */
export function toWindow(row: WindowRow, tenantName: string): MaintenanceWindow {
  const { notification } = row;
  const schedule = storedSchedule(row);
  const etag = etagOf([
    row.description,
    row.owner,
    row.tags,
    row.clause,
    row.schedule,
    row.skipNext,
    row.notification,
    row.runMode,
    row.status,
    row.maintenanceState,
    row.exitState,
    row.overrideExitState,
    row.force,
    row.doNotPropagateToChildren,
  ]);
  return create(MaintenanceWindowSchema, {
    id: row.id,
    etag,
    tenant: tenantName,
    target: { case: "query", value: { type: "ENTITY", clause: storedClause(row) } },
    runMode: row.runMode,
    schedule: { ...schedule, skipNext: BigInt(row.skipNext) },
    maintenanceState: row.maintenanceState,
    exitState: row.exitState,
    status: row.status,
    createTime: row.createdMs,
    updateTime: row.updatedMs,
    createdBy: row.createdBy,
    updatedBy: row.updatedBy,
    name: row.name,
    description: row.description,
    owner: row.owner,
    ...(notification !== null && { notification: fromJson(WindowNotificationSchema, notification as JsonValue) }),
    tags: row.tags,
    doNotPropagateToChildren: row.doNotPropagateToChildren,
    overrideExitState: row.overrideExitState,
    force: row.force,
    runState: row.runState,
    ...(row.nextStartMs !== null && { nextStart: row.nextStartMs }),
  });
}
