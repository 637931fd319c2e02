import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { TimeRange } from "#gen/belfry/clause/v1/clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  type ClockChangeSchema,
  type MaintenanceRunSchema,
  type MaintenanceRuns,
  MaintenanceRunsSchema,
} from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import type { MaintenanceWindow, Schedule } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import type {
  ListMaintenanceRunsRequest,
  PreviewMaintenanceWindowRequest,
  PreviewMaintenanceWindowResponseSchema,
} from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { invalidField, notFound } from "../errors.ts";
import { paced } from "../event-loop.ts";
import { unmutedRules } from "../notifications/api/window-messages.ts";
import { heldCount, heldEntities, targetsOf } from "./entities.ts";
import { clauseOf, isStoredSchedule, storedClause, toProgress, type WindowRow } from "./messages.ts";
import { advance, notRun, type Rules, replan, type WindowProgress } from "./progress.ts";
import { readWindow, rulesOf } from "./rows.ts";
import { checkFuture, checkSpecification, rulesOfChecked } from "./specification.ts";
import { progressBy, type RunsAroundChange, runsAroundChange, type UpcomingRun, upcomingRuns } from "./upcoming.ts";
import { checkNotification } from "./windows.ts";

/** Whose windows, at which moment, and what ends the work. */
export interface Viewing {
  tenant: { id: string; name: string };
  nowMs: number;
  signal: AbortSignal;
}

/** How a window stands, and by what it runs. */
interface Course {
  progress: WindowProgress;
  rules: Rules;
}

interface Bounds {
  timeRange?: TimeRange | undefined;
  runsMax: number;
}

/** Where runs overlap without end, each one before the range is played: so far ahead may the range begin. */
const aheadMaxMs = 1000 * 86_400_000;
/** Runs that an answer holds, of all windows together. */
const answeredRunsMax = 10_000;
const namedRulesMax = 100;

type RunInit = MessageInitShape<typeof MaintenanceRunSchema>;

/** The runs to come of windows, and how many entities each holds now. Unknown ids are left out. */
export async function listRuns(
  db: Db,
  { ids, ...bounds }: ListMaintenanceRunsRequest,
  viewing: Viewing,
): Promise<MaintenanceRuns[]> {
  const { id: tenantId } = viewing.tenant;
  const answers: MaintenanceRuns[] = [];
  let left = answeredRunsMax;
  for (const id of new Set(ids)) {
    const row = await readWindow(db, tenantId, id);
    if (row === undefined) continue;
    const { runs, more, zone } = await runsOf(courseOf(row, viewing.nowMs), bounds, viewing, left);
    left -= runs.length;
    const count = await heldCount(db, tenantId, id);
    answers.push(create(MaintenanceRunsSchema, { id, runs: runs.map(messageIn(zone)), more, heldCount: count }));
  }
  return answers;
}

/**
 * What a window does and would do, by the functions that run it. @throws code 3 for a specification that would be refused,
 * code 5 for an unknown id
 */
export async function previewWindow(
  db: Db,
  request: PreviewMaintenanceWindowRequest,
  viewing: Viewing,
): Promise<MessageInitShape<typeof PreviewMaintenanceWindowResponseSchema>> {
  const { tenant, nowMs, signal } = viewing;
  const { id, specification } = request;
  const row = id === "" ? undefined : await readWindow(db, tenant.id, id);
  if (id !== "" && row === undefined) throw notFound("maintenance window", id);
  if (row === undefined && specification === undefined)
    throw invalidField("specification", "is required", FieldRule.REQUIRED);
  const course = specification
    ? await plannedCourse(db, specification, row, viewing)
    : courseOf(row as WindowRow, nowMs);
  const { runs, more, zone } = await runsOf(course, request, viewing);
  const [next] = runs;
  const pace = paced(() => signal.throwIfAborted(), tenant.id);
  const change = next && (await runsAroundChange(course.progress, course.rules, next, pace));
  const target = specification ?? (row as WindowRow);
  const clause = specification ? clauseOf(specification) : storedClause(row as WindowRow);
  const [targets, held, unmuted] = await Promise.all([
    transaction(db, (tx) => targetsOf(tx, tenant, { ...target, id, clause }, signal)),
    row && heldEntities(db, tenant.id, id),
    unmutedRules(db, tenant.id, namedRulesMax + 1),
  ]);
  return {
    runs: runs.map(messageIn(zone)),
    moreRuns: more,
    ...(change && { clockChange: changeMessage(change, zone) }),
    targets,
    ...held,
    unmutedRules: unmuted.slice(0, namedRulesMax),
    moreUnmutedRules: unmuted.length > namedRulesMax,
  };
}

/** As a job would move it on now. */
function courseOf(row: WindowRow, nowMs: number): Course {
  const rules = rulesOf(row);
  return { rules, progress: advance(toProgress(row), rules, nowMs).progress };
}

/** The course of a window once this specification is stored, as a new one or in place of what is stored. */
async function plannedCourse(
  db: Db,
  sent: MaintenanceWindow,
  row: WindowRow | undefined,
  { tenant, nowMs }: Viewing,
): Promise<Course> {
  const checked = checkSpecification(sent);
  await checkNotification(db, tenant.id, sent, row);
  if (row !== undefined && checked.window.name !== row.name) {
    throw invalidField("specification.name", "cannot be changed", FieldRule.IMMUTABLE);
  }
  if (row === undefined || !isStoredSchedule(sent.schedule as Schedule, row)) checkFuture(checked, nowMs);
  const rules = rulesOfChecked(checked);
  const before = row === undefined ? notRun : toProgress(row);
  const durationMs = row === undefined ? checked.plan.durationMs : rulesOf(row).plan.durationMs;
  const skipNext = Number(sent.schedule?.skipNext ?? 0n);
  return { rules, progress: replan({ ...before, skipNext }, rules, durationMs, nowMs).progress };
}

async function runsOf(
  { progress, rules }: Course,
  { timeRange, runsMax }: Bounds,
  { tenant, nowMs, signal }: Viewing,
  left = answeredRunsMax,
) {
  if (Number(timeRange?.start ?? 0n) > nowMs + aheadMaxMs) {
    throw invalidField("timeRange.start", "must be at most 1000 days ahead", FieldRule.RANGE);
  }
  const fromMs = Math.max(nowMs, Number(timeRange?.start ?? 0n));
  const untilMs = timeRange?.end === undefined ? Number.POSITIVE_INFINITY : Number(timeRange.end);
  const max = Math.min(runsMax || 100, 1000, left);
  const pace = paced(() => signal.throwIfAborted(), tenant.id);
  const runs: UpcomingRun[] = [];
  let more = false;
  for (const run of upcomingRuns(progressBy(progress, rules, fromMs), rules)) {
    await pace();
    if (run === undefined) continue;
    if (run.startMs >= untilMs) break;
    if (run.endMs !== undefined && run.endMs <= fromMs) continue;
    more = runs.length === max;
    if (more) break;
    runs.push(run);
  }
  return { runs, more, zone: rules.plan.timeZone };
}

const localText = (ms: number, timeZone: string) => Temporal.Instant.fromEpochMilliseconds(ms).toString({ timeZone });

function messageIn(timeZone: string): (run: UpcomingRun) => RunInit {
  return ({ startMs, endMs }) => ({
    start: BigInt(startMs),
    localStart: localText(startMs, timeZone),
    ...(endMs !== undefined && { end: BigInt(endMs), localEnd: localText(endMs, timeZone) }),
  });
}

function changeMessage(
  { at, before, after }: RunsAroundChange,
  zone: string,
): MessageInitShape<typeof ClockChangeSchema> {
  const { offset } = at.subtract({ milliseconds: 1 });
  const without = at.toInstant().toZonedDateTimeISO(offset);
  return {
    time: BigInt(at.epochMilliseconds),
    localBefore: without.toString({ timeZoneName: "never" }),
    localAfter: at.toString({ timeZoneName: "never" }),
    ...(before && { before: messageIn(zone)(before) }),
    after: after.map(messageIn(zone)),
  };
}
