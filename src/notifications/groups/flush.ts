import type { Occasion } from "../subject/notification.ts";

/** What of a rule decides when its groups are sent. Times are ms. */
export interface GroupManner {
  readonly waitMs: number;
  readonly intervalMs: number;
  readonly sendUpdates: boolean;
  /** Undefined: it does not repeat. */
  readonly repeatIntervalMs: number | undefined;
  /** Whether it repeats only while a member is not acknowledged. */
  readonly whileUnacknowledged: boolean;
  readonly destinationNames: readonly string[];
}

/** A group as it is stored. Times are ms since the epoch; undefined: there is none. */
export interface GroupState {
  readonly flushedMs: number | undefined;
  readonly dueMs: number | undefined;
  readonly repeatMs: number | undefined;
  readonly openAt: readonly string[];
  readonly held: boolean;
}

/** A member as a flush sees it. */
export interface MemberView {
  /** It waits for the end of its delay, fires, or has ended; `gone`: it ended before its delay did. */
  readonly state: "waiting" | "firing" | "ended" | "gone";
  readonly joinsMs: number;
  /** When it began to match, or its alert to fire. */
  readonly startMs: number;
  readonly acknowledged: boolean;
  readonly sentTo: readonly string[];
  /** Where it is sent as firing once more when nothing holds it back: a message said that all others had ended. */
  readonly againAt: readonly string[];
  /** By destination: until when something holds it back. */
  readonly holds: ReadonlyMap<string, number>;
}

/** What follows from a flush. */
export interface Flush {
  /** By destination. */
  readonly sends: ReadonlyMap<string, Occasion>;
  /** Undefined: the group is over. */
  readonly group: GroupState | undefined;
  /** Whether the wait is not over: what has ended counts on. */
  readonly isEarly: boolean;
}

/** After this time a transaction that began before has ended. */
const settledMs = 1000;

/** When a member that joins has its group flushed first; one that is old already has it flushed at once. */
export const firstFlushMs = ({ joinsMs, startMs }: Pick<MemberView, "joinsMs" | "startMs">, waitMs: number) =>
  startMs + waitMs <= joinsMs ? joinsMs : joinsMs + waitMs;

/** The first flush of a group after a moment: each interval after the last one. */
export const nextFlushMs = (flushedMs: number, intervalMs: number, afterMs: number) =>
  flushedMs + Math.max(1, Math.floor((afterMs - flushedMs) / intervalMs) + 1) * intervalMs;

/** Tells whether a member is part of what a destination hears: not while it is held back and was in none of its messages. */
export const isHeard = ({ sentTo, holds }: MemberView, destination: string) =>
  sentTo.includes(destination) || !holds.has(destination);

/** Tells whether a message to a destination lists a member as firing. */
export const fires = ({ state, holds }: MemberView, destination: string) =>
  state === "firing" && !holds.has(destination);

/** Tells whether a message to a destination lists a member as resolved. */
export const isResolved = (seen: MemberView, destination: string) =>
  seen.state === "ended" && isHeard(seen, destination);

/** Tells whether a member fires on that a destination was sent as firing, and that something holds back there now. */
export const isSilenced = ({ state, sentTo, holds }: MemberView, destination: string) =>
  state === "firing" && sentTo.includes(destination) && holds.has(destination);

/** Tells whether something holds a member back everywhere: it is no member until nothing does. */
export const isHeldEverywhere = (
  { destinationNames }: Pick<GroupManner, "destinationNames">,
  holds: MemberView["holds"],
) => destinationNames.every((name) => holds.has(name));

/**
 * Decides on a group at one of its flushes: the whole of docs/rules.md, "Groups", without a clock and without a database.
 * @param dueMs the time for which the flush was planned
 */
export function flush(
  manner: GroupManner,
  before: GroupState,
  members: readonly MemberView[],
  dueMs: number,
  nowMs: number,
): Flush {
  const { destinationNames } = manner;
  const first = members
    .filter(({ state, holds }) => state !== "gone" && !isHeldEverywhere(manner, holds))
    .map((each) => firstFlushMs(each, manner.waitMs));
  // Whoever began the wait has never joined, or is held: it counts from those who have.
  if (before.flushedMs === undefined && first.length > 0 && Math.min(...first) > nowMs) {
    const { held, lookMs } = lookAtHeld(manner, before, members, nowMs);
    return { sends: new Map(), group: { ...before, dueMs: Math.min(...first, lookMs), held }, isEarly: true };
  }
  const repeats = before.repeatMs !== undefined && before.repeatMs <= nowMs && mayRepeat(manner, members);
  const sends = new Map<string, Occasion>();
  const openAt = before.openAt.filter((name) => destinationNames.includes(name));
  const open = new Set(openAt);
  for (const name of destinationNames) {
    const occasion = occasionAt(name, open.has(name), manner, members, repeats);
    if (occasion !== undefined) sends.set(name, occasion);
    if (occasion === "first") open.add(name);
    else if (!members.some((each) => each.state === "firing" && isHeard(each, name))) open.delete(name);
  }
  return { sends, group: after(manner, before, members, { open, sends, dueMs, nowMs }), isEarly: false };
}

function mayRepeat({ repeatIntervalMs, whileUnacknowledged }: GroupManner, members: readonly MemberView[]): boolean {
  if (repeatIntervalMs === undefined) return false;
  return members.some(({ state, acknowledged }) => state === "firing" && !(whileUnacknowledged && acknowledged));
}

/** Why a destination is sent a message; undefined: it is sent none. */
function occasionAt(
  name: string,
  isOpen: boolean,
  { sendUpdates }: GroupManner,
  members: readonly MemberView[],
  repeats: boolean,
): Occasion | undefined {
  const firing = members.filter((each) => fires(each, name));
  if (!isOpen) return firing.length > 0 ? "first" : undefined;
  if (firing.some(({ sentTo, againAt }) => !sentTo.includes(name) || againAt.includes(name))) return "members";
  const ended = members.filter((each) => isResolved(each, name));
  const goesOn = members.some((each) => each.state === "firing" && isHeard(each, name));
  if (!goesOn) return sendUpdates && ended.length > 0 ? "clear" : undefined;
  if (sendUpdates && ended.length > 0) return "members";
  return repeats && firing.length > 0 ? "repeat" : undefined;
}

/** Where members were sent as firing after these messages, and where they are sent so once more. */
export function sentAfter<T extends MemberView>(members: readonly T[], sends: Flush["sends"]): T[] {
  const reporting = [...sends].flatMap(([name, occasion]) => (occasion === "clear" ? [] : [name]));
  const listsNone = new Set(reporting.filter((name) => !members.some((each) => fires(each, name))));
  return members.map((each) => {
    const firing = reporting.filter((name) => fires(each, name));
    const again = reporting.filter((name) => listsNone.has(name) && isSilenced(each, name));
    return {
      ...each,
      sentTo: [...new Set([...each.sentTo, ...firing])],
      againAt: [...new Set([...each.againAt.filter((name) => !firing.includes(name)), ...again])],
    };
  });
}

/** When a group that nobody has heard of is looked at again because something is held; Infinity: nothing is. */
function lookAtHeld({ intervalMs }: GroupManner, before: GroupState, members: readonly MemberView[], nowMs: number) {
  const untilMs = members.flatMap(({ state, holds }) => (state === "firing" ? [...holds.values()] : []));
  if (untilMs.length === 0) return { held: false, lookMs: Infinity };
  // A silence or a window that ends before this is stored does not find what it held: the second look comes soon.
  const soonMs = before.held ? intervalMs : Math.min(intervalMs, settledMs);
  return { held: true, lookMs: Math.max(nowMs + 1, Math.min(nowMs + soonMs, ...untilMs)) };
}

function after(
  manner: GroupManner,
  before: GroupState,
  members: readonly MemberView[],
  { open, sends, dueMs, nowMs }: { open: ReadonlySet<string>; sends: Flush["sends"]; dueMs: number; nowMs: number },
): GroupState | undefined {
  const { waitMs, intervalMs, repeatIntervalMs } = manner;
  const left = members.filter(({ state }) => state === "firing" || state === "waiting");
  if (left.length === 0) return undefined;
  const waiting = left.filter(({ state }) => state === "waiting");
  const { held, lookMs } = lookAtHeld(manner, before, left, nowMs);
  if (open.size === 0) {
    // Nothing that anyone has heard of goes on: what joins next begins a new wait.
    const dues = waiting.map((each) => firstFlushMs(each, waitMs));
    return { flushedMs: undefined, dueMs: Math.min(...dues, lookMs), repeatMs: undefined, openAt: [], held };
  }
  const isSent = [...sends.values()].some((occasion) => occasion !== "clear");
  const repeatMs = repeatOf(before, repeatIntervalMs, isSent ? dueMs : undefined, nowMs);
  const dues = waiting.map(({ joinsMs }) => nextFlushMs(dueMs, intervalMs, Math.max(nowMs, joinsMs - 1)));
  if (held) dues.push(nextFlushMs(dueMs, intervalMs, nowMs));
  if (repeatMs !== undefined) dues.push(repeatMs);
  const next = Math.min(...dues);
  return { flushedMs: dueMs, dueMs: next === Infinity ? undefined : next, repeatMs, openAt: [...open], held };
}

/** The next repetition: an interval after the last message, or after the repetition that was not made. */
function repeatOf(
  { repeatMs }: GroupState,
  intervalMs: number | undefined,
  sentMs: number | undefined,
  nowMs: number,
): number | undefined {
  if (intervalMs === undefined) return undefined;
  const base = sentMs ?? (repeatMs === undefined ? nowMs : repeatMs - intervalMs);
  return sentMs === undefined && repeatMs !== undefined && repeatMs > nowMs
    ? repeatMs
    : nextFlushMs(base, intervalMs, nowMs);
}
