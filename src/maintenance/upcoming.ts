import type { Pace } from "../event-loop.ts";
import { advance, notRun, type Rules, type WindowProgress } from "./progress.ts";
import { lastStartMs, nextStartMs } from "./recurrence.ts";

/** A run to come, or the one that goes on; times in ms since the epoch. */
export interface UpcomingRun {
  startMs: number;
  /** Undefined: no end is in sight, since each start comes before the end of the run before it. */
  endMs: number | undefined;
}

/** How often one run may be made longer before it is said to have no end. */
const renewalsMax = 1000;

/**
 * The runs that `advance`, called at each of their moments, begins and ends: with the one that goes on, without those that are
 * skipped. Undefined in between: time may pass to other work there.
 */
export function* upcomingRuns(progress: WindowProgress, rules: Rules): Generator<UpcomingRun | undefined, void> {
  let now = progress;
  let renewals = 0;
  for (;;) {
    const { runStartMs: startMs, runEndMs: endMs, nextDueMs } = now;
    if (startMs === undefined || endMs === undefined) {
      if (nextDueMs === undefined) return;
      now = advance(now, rules, nextDueMs).progress;
      yield;
      continue;
    }
    // What is due before its end makes it longer; what is due at its end is a run of its own.
    const then = advance(now, rules, endMs - 1).progress;
    if (then.runEndMs !== endMs) {
      now = then;
      renewals += 1;
      if (renewals > renewalsMax) return void (yield { startMs, endMs: undefined });
      yield;
      continue;
    }
    yield { startMs, endMs };
    renewals = 0;
    now = advance(then, rules, endMs).progress;
  }
}

/**
 * Where to begin so that the runs that are over by a moment need not be played: the others are the same. It stays as it
 * is while runs are to be skipped, and where a run before the moment makes the one after it longer.
 */
export function progressBy(progress: WindowProgress, { plan }: Rules, fromMs: number): WindowProgress {
  const { nextDueMs, runEndMs = 0, skipNext } = progress;
  if (nextDueMs === undefined || skipNext > 0) return progress;
  const startMs = nextStartMs(plan, fromMs - plan.durationMs + 1);
  if (startMs === undefined || startMs <= nextDueMs || runEndMs > Math.min(fromMs, startMs)) return progress;
  const lastEndMs = lastStartMs(plan, nextDueMs, startMs - 1) + plan.durationMs;
  return lastEndMs <= startMs ? { ...notRun, nextDueMs: startMs } : progress;
}

/** A change of the clock, and runs around it. */
export interface RunsAroundChange {
  /** As the zone's clock shows it. */
  at: Temporal.ZonedDateTime;
  before: UpcomingRun | undefined;
  after: UpcomingRun[];
}

const aroundMax = 3;

/** The first change of the clock after the start of this run, the next one; undefined: the zone has none. `pace` lets others work. */
export async function runsAroundChange(
  progress: WindowProgress,
  rules: Rules,
  { startMs }: UpcomingRun,
  pace: Pace,
): Promise<RunsAroundChange | undefined> {
  const { plan } = rules;
  const at = Temporal.Instant.fromEpochMilliseconds(startMs)
    .toZonedDateTimeISO(plan.timeZone)
    .getTimeZoneTransition("next");
  if (at === null) return undefined;
  const lastMs = lastStartMs(plan, startMs, at.epochMilliseconds - 1);
  // A run that goes on may have been begun by hand, at no time of the schedule.
  const bySchedule = progress.nextDueMs !== undefined && (lastMs > startMs || startMs !== progress.runStartMs);
  const from = bySchedule ? { ...notRun, nextDueMs: lastMs } : progress;
  const found: UpcomingRun[] = [];
  for (const run of upcomingRuns(from, rules)) {
    await pace();
    if (run !== undefined) found.push(run);
    if (found.length === aroundMax) break;
  }
  const isBefore = (run: UpcomingRun) => run.startMs < at.epochMilliseconds;
  return { at, before: found.findLast(isBefore), after: found.filter((run) => !isBefore(run)).slice(0, aroundMax - 1) };
}
