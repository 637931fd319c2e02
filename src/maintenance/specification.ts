import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import { type MaintenanceWindow, RunMode, type Schedule } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { checkClause } from "../clause/check.ts";
import { invalidFields } from "../errors.ts";
import type { Broken } from "../rpc/constraint-rules.ts";
import { brokenMs } from "../rpc/times.ts";
import { clauseOf } from "./messages.ts";
import type { Rules } from "./progress.ts";
import { nextStartMs } from "./recurrence.ts";
import { readSchedule, type WindowPlan } from "./schedule.ts";

const SKIP_MAX = 1000n;
const IDS_MAX = 100_000;
const path = "specification";

/** A specification that can be run. */
export interface CheckedSpecification {
  window: MaintenanceWindow;
  plan: WindowPlan;
}

/**
 * Checks what the proto file cannot say of a specification.
 * @throws code 3 that names every broken rule, or the one of the query's language
 */
export function checkSpecification(window: MaintenanceWindow): CheckedSpecification {
  const broken: Broken[] = [];
  const refuse = (field: string, rule: string) =>
    void broken.push({ path: `${path}.${field}`, rule, id: FieldRule.SCHEDULE });
  if (window.overrideExitState && window.exitState === 0) refuse("exitState", "is required with overrideExitState");
  const { target } = window;
  if (target.case === "withIds" && target.value.ids.length > IDS_MAX) {
    refuse("withIds.ids", `must contain no more than ${IDS_MAX} items`);
  }
  const schedule = window.schedule as Schedule;
  if (schedule.skipNext > SKIP_MAX) refuse("schedule.skipNext", `must be at most ${SKIP_MAX}`);
  // Not among the rules of schedules: windows are stored whose first run lies before.
  const inSeconds = schedule.start < 0n ? undefined : brokenMs(schedule.start, `${path}.schedule.start`);
  if (inSeconds !== undefined) broken.push(inSeconds);
  const read = readSchedule(schedule, `${path}.schedule`);
  if ("broken" in read) broken.push(...read.broken);
  if (broken.length > 0 || "broken" in read) throw invalidFields(broken);
  // Refuses what the language does not take.
  checkClause(clauseOf(window), `${path}.query.clause`);
  return { window, plan: read.plan };
}

/** By what a window with this specification runs. */
export const rulesOfChecked = ({ window: { runMode, status }, plan }: CheckedSpecification): Rules => ({
  plan,
  runMode,
  status,
});

/** @throws code 3 when a window that shall run by itself has no run that is not over */
export function checkFuture({ window, plan }: CheckedSpecification, nowMs: number): void {
  if (window.runMode !== RunMode.AUTO || nextStartMs(plan, nowMs - plan.durationMs + 1) !== undefined) return;
  throw invalidFields([{ path: `${path}.schedule`, rule: "must not lie wholly in the past", id: FieldRule.SCHEDULE }]);
}
