import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import type { Match, Signature } from "../rules/match-store.ts";
import type { Manner } from "../rules/tenant-rules.ts";
import type { Due } from "../subject/notice.ts";
import type { Occasion } from "../subject/notification.ts";
import type { Reason } from "../subject/reason.ts";

/** How a subject is seen. */
export interface SubjectView {
  /** Whether any trigger of the rule matches. */
  readonly matches: boolean;
  /** Whether it was reported once more: repetitions follow reports. */
  readonly again: boolean;
  readonly inMaintenance: boolean;
  /** Undefined for what is no occurrence. */
  readonly now: Signature | undefined;
  /** Whether it is looked at because the delay of a first notification has ended. */
  readonly delayEnds?: boolean;
}

/** What follows from a sight. */
export interface Decision {
  readonly match: Match;
  readonly due: readonly Due[];
  /** The condition is over: what of it still waits is not needed any more. */
  readonly over: boolean;
}

/**
 * What a rule does about a subject: the whole of docs/rules.md, "When it notifies", without a clock and without
 * a database. Undefined: nothing, and nothing to note.
 */
export function decide(
  manner: Manner,
  before: Match | undefined,
  seen: SubjectView,
  nowMs: number,
): Decision | undefined {
  if (!seen.matches) return before?.standing ? ended(manner, before, seen, nowMs) : undefined;
  if (!before?.standing || reopened(before, seen)) return begun(manner, before, seen, nowMs);
  return goesOn(manner, before, seen, nowMs);
}

/** An occurrence whose end was reported, and which is no longer closed. */
const reopened = ({ told }: Match, { now }: SubjectView) =>
  told?.status === Status.CLOSED && now !== undefined && now.status !== Status.CLOSED;

const mutedNow = (manner: Manner, seen: SubjectView) => manner.muteDuringMaintenance && seen.inMaintenance;

const nextMs = (before: Match | undefined, nowMs: number) =>
  before === undefined ? nowMs : Math.max(nowMs, before.lastMs + 1);

function begun(manner: Manner, before: Match | undefined, seen: SubjectView, nowMs: number): Decision {
  const createdMs = nextMs(before, nowMs);
  if (mutedNow(manner, seen)) {
    const silent = { firstDueMs: undefined, notifiedMs: undefined, lastMs: createdMs };
    return unspoken({ standing: true, muted: true, told: seen.now, matchedMs: createdMs, ...silent });
  }
  return first(seen, createdMs, nowMs, Math.max(nowMs + manner.delayMs, repeatMs(manner, before) ?? nowMs));
}

/** When a match that was notified may notify once more; undefined: at any time. */
export function repeatMs({ repeat, repeatIntervalMs }: Manner, match: Match | undefined): number | undefined {
  return repeat && match?.notifiedMs !== undefined ? match.notifiedMs + repeatIntervalMs : undefined;
}

const unspoken = (match: Match): Decision => ({ match, due: [], over: false });

function first({ now }: SubjectView, createdMs: number, nowMs: number, dueMs: number): Decision {
  const firstDueMs = dueMs > nowMs ? dueMs : undefined;
  return {
    match: {
      standing: true,
      muted: false,
      told: now,
      matchedMs: createdMs,
      firstDueMs,
      notifiedMs: dueMs,
      lastMs: createdMs,
    },
    due: [{ occasion: "first", createdMs, dueMs }],
    over: false,
  };
}

function goesOn(manner: Manner, before: Match, seen: SubjectView, nowMs: number): Decision | undefined {
  // An end is never held back.
  const silent = mutedNow(manner, seen) && !closes(manner, before, seen);
  if (before.muted) {
    if (silent) return undefined;
    const createdMs = nextMs(before, nowMs);
    if (before.notifiedMs === undefined) return first(seen, createdMs, nowMs, nowMs);
    const caughtUp = { ...before, muted: false };
    return told(manner, caughtUp, { ...seen, again: true }, nowMs) ?? unspoken(caughtUp);
  }
  if (before.firstDueMs !== undefined) {
    // The first notification reports how it is when it is sent.
    if (!seen.delayEnds)
      return changesOf(before, seen).length > 0 ? unspoken({ ...before, told: seen.now }) : undefined;
    const looked = { ...before, firstDueMs: undefined };
    return unspoken(silent ? { ...looked, muted: true, notifiedMs: undefined } : { ...looked, told: seen.now });
  }
  const decision = told(manner, before, seen, nowMs);
  if (silent && decision !== undefined && decision.due.length > 0) return unspoken({ ...before, muted: true });
  return decision;
}

/** Updates of what was reported, else a repetition when it is time. */
function told(manner: Manner, before: Match, seen: SubjectView, nowMs: number): Decision | undefined {
  const changes = manner.sendUpdates ? changesOf(before, seen) : [];
  const repeats = repeatReason(manner, before, seen, nowMs) === undefined;
  const occasions: Occasion[] = changes.length > 0 ? changes : repeats ? ["repeat"] : [];
  if (occasions.length === 0) return undefined;
  const firstMs = nextMs(before, nowMs);
  const due = occasions.map((occasion, i) => ({ occasion, createdMs: firstMs + i, dueMs: nowMs }));
  const notifiedMs = repeats ? nowMs : before.notifiedMs;
  return { match: { ...before, told: seen.now, notifiedMs, lastMs: firstMs + due.length - 1 }, due, over: false };
}

/** Tells whether a match that was notified goes on with a closed occurrence: its trigger names the status. */
const closes = ({ sendUpdates }: Manner, before: Match, seen: SubjectView) =>
  sendUpdates &&
  before.notifiedMs !== undefined &&
  before.firstDueMs === undefined &&
  changesOf(before, seen)[0] === "clear";

/** Says why a match that was notified is not repeated now; undefined: it is. */
export function repeatReason(
  manner: Manner,
  match: Match,
  { again, now }: Pick<SubjectView, "again" | "now">,
  nowMs: number,
): Reason | undefined {
  const dueMs = repeatMs(manner, match);
  if (dueMs === undefined) return "noRepetition";
  const byClock = manner.repeatWhile !== RepeatWhile.UNSPECIFIED;
  if (byClock && now?.status === Status.CLOSED) return "closed";
  if (manner.repeatWhile === RepeatWhile.UNACKNOWLEDGED && now?.acknowledged) return "acknowledged";
  if (nowMs < dueMs) return "tooEarly";
  return byClock || again ? undefined : "unreported";
}

/** What differs from what was reported. Its end says the rest. */
function changesOf({ told }: Match, { now }: SubjectView): Occasion[] {
  if (told === undefined || now === undefined) return [];
  if (now.status === Status.CLOSED && told.status !== Status.CLOSED) return ["clear"];
  const changes: Occasion[] = [];
  if (now.severity !== told.severity) changes.push("severity");
  if (now.acknowledged !== told.acknowledged) changes.push(now.acknowledged ? "acknowledged" : "unacknowledged");
  return changes;
}

function ended(manner: Manner, before: Match, seen: SubjectView, nowMs: number): Decision {
  const { notifiedMs, firstDueMs, told } = before;
  const match = {
    ...before,
    standing: false,
    muted: false,
    firstDueMs: undefined,
    // Of what was not notified the next match does not wait longer than this one did.
    notifiedMs: firstDueMs === undefined ? notifiedMs : firstDueMs - manner.repeatIntervalMs,
  };
  const wasTold = notifiedMs !== undefined && firstDueMs === undefined;
  const over = notifiedMs !== undefined;
  const closingTold = told?.status === Status.CLOSED && seen.now?.status === Status.CLOSED;
  if (!manner.sendUpdates || !wasTold || closingTold) return { match, due: [], over };
  const createdMs = nextMs(before, nowMs);
  return { match: { ...match, lastMs: createdMs }, due: [{ occasion: "clear", createdMs, dueMs: nowMs }], over };
}
