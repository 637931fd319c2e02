import type { RateLimit } from "../kinds/kind.ts";

/** What all servers know of a destination: a row of destination_states. Times are ms since the epoch, 0 for none. */
export interface DestinationState {
  /** Temporary failures in a row. */
  readonly failures: number;
  /** How often in a row its breaker has opened; 0: it is closed. */
  readonly opened: number;
  readonly openUntilMs: number;
  /** The try that is to show whether it answers again is under way until then. */
  readonly probeUntilMs: number;
  /** From when on it may be tried again at its product's pace. */
  readonly allowedMs: number;
  /** Begin of the minute that is counted for `maxPerMinute`, and how many went in it. */
  readonly minuteMs: number;
  readonly minuteCount: number;
  /** When those that were too many are summed up. */
  readonly summaryMs: number;
}

export const freshState: DestinationState = {
  failures: 0,
  opened: 0,
  openUntilMs: 0,
  probeUntilMs: 0,
  allowedMs: 0,
  minuteMs: 0,
  minuteCount: 0,
  summaryMs: 0,
};

/** What bounds a destination besides its breaker. */
export interface DestinationBounds {
  /** Its product's own limit. */
  readonly pace: RateLimit | undefined;
  /** 0: none. */
  readonly maxPerMinute: number;
}

/** How many may be tried now. */
export interface Allowance {
  readonly max: number;
  /** They are to be one: all that wait, summed up. */
  readonly summary: boolean;
  /** When there may be more, where `max` is 0. */
  readonly againMs: number;
  /** Nothing but `maxPerMinute` holds them back. */
  readonly held: boolean;
}

const minuteMs = 60_000;
const failuresMax = 5;
const openMs = 30_000;
const openMsMax = 10 * minuteMs;
/** A probe whose end was not recorded is over after this. */
const probeMs = 60_000;

/*
 * Half of a product's tries at once, the other half spread over its time: so no window of that time, wherever it begins,
 * has more than all of them.
 */
function steps({ tries, perMs }: RateLimit) {
  const burst = Math.max(1, Math.floor(tries / 2));
  return { burst, stepMs: perMs / Math.max(1, tries - burst) };
}

const none = (againMs: number, held = false): Allowance => ({ max: 0, summary: false, againMs, held });

/** How many of those that are due at a destination may be tried now. */
export function allowance(
  state: DestinationState,
  { pace, maxPerMinute }: DestinationBounds,
  nowMs: number,
): Allowance {
  let max = Number.POSITIVE_INFINITY;
  if (state.opened > 0) {
    const untilMs = Math.max(state.openUntilMs, state.probeUntilMs);
    if (untilMs > nowMs) return none(untilMs);
    max = 1;
  }
  if (pace !== undefined) {
    const { burst, stepMs } = steps(pace);
    if (state.allowedMs > nowMs) return none(state.allowedMs);
    max = Math.min(max, Math.floor((nowMs - Math.max(state.allowedMs, nowMs - (burst - 1) * stepMs)) / stepMs) + 1);
  }
  if (maxPerMinute > 0) {
    const endMs = state.minuteMs + minuteMs;
    if (nowMs >= endMs)
      return { max: Math.min(max, maxPerMinute), summary: state.summaryMs > 0, againMs: 0, held: false };
    const left = maxPerMinute - state.minuteCount;
    if (left <= 0) return none(endMs, true);
    max = Math.min(max, left);
  }
  return { max, summary: false, againMs: 0, held: false };
}

/** The state after this many were taken, of those that `allowance` allowed. A summary counts as one. */
export function taken(
  state: DestinationState,
  { pace, maxPerMinute }: DestinationBounds,
  count: number,
  nowMs: number,
) {
  const next = { ...state };
  if (count > 0 && state.opened > 0) next.probeUntilMs = nowMs + probeMs;
  if (pace !== undefined && count > 0) {
    const { burst, stepMs } = steps(pace);
    next.allowedMs = Math.ceil(Math.max(state.allowedMs, nowMs - (burst - 1) * stepMs) + count * stepMs);
  }
  if (maxPerMinute > 0) {
    const over = nowMs >= state.minuteMs + minuteMs;
    if (over) next.summaryMs = 0;
    if (over && count > 0) next.minuteMs = nowMs;
    next.minuteCount = (over ? 0 : state.minuteCount) + count;
  }
  return next;
}

/** The state when this many of those that were taken are not tried after all: what is after them need not wait. */
export function untaken(
  state: DestinationState,
  { pace, maxPerMinute }: DestinationBounds,
  count: number,
): DestinationState {
  const next = { ...state };
  if (state.opened > 0) next.probeUntilMs = 0;
  if (pace !== undefined) next.allowedMs = Math.max(0, Math.ceil(state.allowedMs - count * steps(pace).stepMs));
  if (maxPerMinute > 0) next.minuteCount = Math.max(0, state.minuteCount - count);
  return next;
}

/** The state when some are held back by `maxPerMinute`: they are summed up when the minute ends. */
export const heldBack = (state: DestinationState): DestinationState => ({
  ...state,
  summaryMs: state.minuteMs + minuteMs,
});

/** Whether a receiver took it or refused it for good, or may take it later. */
export type Sign = "alive" | "temporary";

/** The breaker after tries, in the order in which they ended. */
export function judged(state: DestinationState, signs: readonly Sign[], nowMs: number): DestinationState {
  let { failures, opened, openUntilMs, probeUntilMs } = state;
  for (const sign of signs) {
    if (sign === "alive") {
      failures = 0;
      opened = 0;
      openUntilMs = 0;
      probeUntilMs = 0;
      continue;
    }
    failures++;
    // While it is open, those still come in that had begun before.
    const opens = opened > 0 ? nowMs >= openUntilMs : failures >= failuresMax;
    if (!opens) continue;
    openUntilMs = nowMs + Math.min(openMs * 2 ** opened, openMsMax);
    opened++;
    probeUntilMs = 0;
  }
  return { ...state, failures, opened, openUntilMs, probeUntilMs };
}
