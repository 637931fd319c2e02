import { RunMode, RunState, WindowStatus } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { lastStartMs, nextStartMs } from "./recurrence.ts";
import type { WindowPlan } from "./schedule.ts";

/** What decides when a window runs. */
export interface Rules {
  plan: WindowPlan;
  runMode: RunMode;
  status: WindowStatus;
}

/** How far a window has come; times in ms since the epoch. */
export interface WindowProgress {
  runState: RunState;
  /** How many of the next runs are still to be skipped. */
  skipNext: number;
  /** The last start by the schedule whose run has begun or was skipped. */
  handledMs: number | undefined;
  /** The next start by the schedule, skipped or not. */
  nextDueMs: number | undefined;
  /** The next start by the schedule that is not skipped. */
  nextStartMs: number | undefined;
  /** Of the run that goes on, or of the last one. */
  runStartMs: number | undefined;
  runEndMs: number | undefined;
}

/** What happens to a window: a run begins, goes on with new entities, or ends. */
export interface Step {
  what: "start" | "renewal" | "end";
  /** When it was to happen. */
  atMs: number;
}

/** The progress of a window that has never run. */
export const notRun: WindowProgress = {
  runState: RunState.SCHEDULED,
  skipNext: 0,
  handledMs: undefined,
  nextDueMs: undefined,
  nextStartMs: undefined,
  runStartMs: undefined,
  runEndMs: undefined,
};

const isRunning = ({ runState }: WindowProgress) => runState === RunState.IN_PROGRESS;
const runsByItself = ({ runMode, status }: Rules) => runMode === RunMode.AUTO && status === WindowStatus.ENABLED;

/** The next thing that the schedule or the end of a run brings, ms; undefined: nothing. */
export function nextChangeMs({ nextDueMs, runEndMs }: WindowProgress): number | undefined {
  if (nextDueMs === undefined || runEndMs === undefined) return nextDueMs ?? runEndMs;
  return Math.min(nextDueMs, runEndMs);
}

/**
 * Does all that is due by now, in the order of its times. A run whose time is over before it could begin is left out. A
 * run that is due while the one before it goes on makes it longer. An end comes before a start at the same moment.
 */
export function advance(
  progress: WindowProgress,
  rules: Rules,
  nowMs: number,
): { progress: WindowProgress; steps: Step[] } {
  const { plan } = rules;
  const steps: Step[] = [];
  let now = progress;
  for (;;) {
    const atMs = nextChangeMs(now);
    if (atMs === undefined || atMs > nowMs) break;
    if (atMs === now.runEndMs) {
      now = ended(now);
      steps.push({ what: "end", atMs });
      continue;
    }
    const skipped = now.skipNext > 0;
    const endMs = atMs + plan.durationMs;
    const late = !skipped && endMs <= nowMs;
    // What came too late is not behind: a longer duration may still make a run of it.
    now = { ...now, handledMs: late ? now.handledMs : atMs, skipNext: skipped ? now.skipNext - 1 : 0 };
    let doneMs = atMs;
    if (!skipped && !late) {
      steps.push({ what: isRunning(now) ? "renewal" : "start", atMs });
      now = isRunning(now) ? { ...now, runEndMs: Math.max(now.runEndMs ?? 0, endMs) } : begun(now, atMs, endMs);
      // Those that were due since, which may be millions, only make the run longer: the last one reports how long.
      doneMs = lastStartMs(plan, atMs, nowMs);
      if (doneMs > atMs) {
        steps.push({ what: "renewal", atMs: doneMs });
        now = { ...now, handledMs: doneMs, runEndMs: Math.max(now.runEndMs ?? 0, doneMs + plan.durationMs) };
      }
    }
    // Where nothing is to be skipped, what is over long ago need not be gone through.
    const nextMs = now.skipNext > 0 ? atMs + 1 : Math.max(doneMs + 1, nowMs - plan.durationMs + 1);
    now = { ...now, nextDueMs: nextStartMs(plan, nextMs) };
  }
  return { progress: { ...now, ...shown(now, rules, nowMs) }, steps };
}

/** The progress after the rules have changed: what goes on goes on, unless the window is disabled now. */
export function replan(progress: WindowProgress, rules: Rules, durationBeforeMs: number, nowMs: number) {
  const { plan, status } = rules;
  const steps: Step[] = [];
  let now = progress;
  if (isRunning(now)) {
    if (status === WindowStatus.DISABLED) {
      now = ended(now);
      steps.push({ what: "end", atMs: nowMs });
    } else {
      // A run keeps its start; a duration that has changed is measured from there.
      if (plan.durationMs !== durationBeforeMs) {
        now = { ...now, runEndMs: Math.max(nowMs, (now.runStartMs ?? nowMs) + plan.durationMs) };
      }
      steps.push({ what: "renewal", atMs: nowMs });
    }
  }
  const fromMs = Math.max(nowMs - plan.durationMs, now.handledMs ?? 0) + 1;
  const nextDueMs = runsByItself(rules) ? nextStartMs(plan, fromMs) : undefined;
  const then = advance({ ...now, nextDueMs, nextStartMs: undefined }, rules, nowMs);
  return { progress: then.progress, steps: [...steps, ...then.steps] };
}

/** Starts a run by hand. */
export function startNow(
  progress: WindowProgress,
  rules: Rules,
  nowMs: number,
): { progress: WindowProgress; steps: Step[] } {
  const startMs = Math.max(nowMs, (progress.runStartMs ?? 0) + 1);
  const now = begun(progress, startMs, startMs + rules.plan.durationMs);
  return { progress: { ...now, ...shown(now, rules, nowMs) }, steps: [{ what: "start", atMs: startMs }] };
}

/** Ends a run by hand. */
export function stopNow(
  progress: WindowProgress,
  rules: Rules,
  nowMs: number,
): { progress: WindowProgress; steps: Step[] } {
  const now = ended(progress);
  return { progress: { ...now, ...shown(now, rules, nowMs) }, steps: [{ what: "end", atMs: nowMs }] };
}

function begun(progress: WindowProgress, startMs: number, endMs: number): WindowProgress {
  // Of two runs of a window none has the same start, by which the entities of a run are known.
  const runStartMs = Math.max(startMs, (progress.runStartMs ?? -1) + 1);
  return { ...progress, runState: RunState.IN_PROGRESS, runStartMs, runEndMs: endMs };
}

const ended = (progress: WindowProgress): WindowProgress => ({
  ...progress,
  runState: RunState.COMPLETED,
  runEndMs: undefined,
});

/** The start after those that are skipped. While they pass, it stays the same: a thousand need not be gone through each time. */
function nextNotSkipped(
  { skipNext, nextDueMs, nextStartMs: known }: WindowProgress,
  { plan }: Rules,
): number | undefined {
  if (skipNext > 0 && nextDueMs !== undefined && known !== undefined) return known;
  let next = nextDueMs;
  for (let i = 0; i < skipNext && next !== undefined; i++) next = nextStartMs(plan, next + 1);
  return next;
}

/** What is shown of a window beside what it is doing. */
function shown(
  progress: WindowProgress,
  rules: Rules,
  nowMs: number,
): Pick<WindowProgress, "runState" | "nextStartMs"> {
  const next = nextNotSkipped(progress, rules);
  if (isRunning(progress)) return { runState: RunState.IN_PROGRESS, nextStartMs: next };
  const more =
    rules.runMode === RunMode.MANUAL ? progress.runStartMs === undefined : nextStartMs(rules.plan, nowMs) !== undefined;
  return { runState: more ? RunState.SCHEDULED : RunState.COMPLETED, nextStartMs: next };
}
