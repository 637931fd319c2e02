import type { Occasion } from "../../notification.ts";

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
export interface Seen {
  /** It waits for the end of its delay, fires, or has ended; `gone`: it ended before its delay did. */
  readonly state: "waiting" | "firing" | "ended" | "gone";
  readonly joinsMs: number;
  /** When it began to match, or its alert to fire. */
  readonly startMs: number;
  readonly acknowledged: boolean;
  readonly sentTo: readonly string[];
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
export const firstFlushMs = ({ joinsMs, startMs }: Pick<Seen, "joinsMs" | "startMs">, waitMs: number) =>
  startMs + waitMs <= joinsMs ? joinsMs : joinsMs + waitMs;

/** The first flush of a group after a moment: each interval after the last one. */
export const nextFlushMs = (flushedMs: number, intervalMs: number, afterMs: number) =>
  flushedMs + Math.max(1, Math.floor((afterMs - flushedMs) / intervalMs) + 1) * intervalMs;

/** Tells whether a member is part of what a destination hears: not while it is held back and was in none of its messages. */
export const isHeard = ({ sentTo, holds }: Seen, destination: string) =>
  sentTo.includes(destination) || !holds.has(destination);

/** Tells whether a message to a destination lists a member as firing. */
export const fires = ({ state, holds }: Seen, destination: string) => state === "firing" && !holds.has(destination);

/** Tells whether a message to a destination lists a member as resolved. */
export const isResolved = (seen: Seen, destination: string) => seen.state === "ended" && isHeard(seen, destination);

/**
 * Decides on a group at one of its flushes: the whole of docs/notifications.md, "Groups", without a clock and without a database.
 * @param dueMs the time for which the flush was planned
 */
export function flush(
  manner: GroupManner,
  before: GroupState,
  members: readonly Seen[],
  dueMs: number,
  nowMs: number,
): Flush {
  const { destinationNames } = manner;
  const first = members.flatMap((each) => (each.state === "gone" ? [] : firstFlushMs(each, manner.waitMs)));
  // Whoever began the wait has never joined: it counts from those who have.
  if (before.flushedMs === undefined && first.length > 0 && Math.min(...first) > nowMs)
    return { sends: new Map(), group: { ...before, dueMs: Math.min(...first) }, isEarly: true };
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

function mayRepeat({ repeatIntervalMs, whileUnacknowledged }: GroupManner, members: readonly Seen[]): boolean {
  if (repeatIntervalMs === undefined) return false;
  return members.some(({ state, acknowledged }) => state === "firing" && !(whileUnacknowledged && acknowledged));
}

/** Why a destination is sent a message; undefined: it is sent none. */
function occasionAt(
  name: string,
  isOpen: boolean,
  { sendUpdates }: GroupManner,
  members: readonly Seen[],
  repeats: boolean,
): Occasion | undefined {
  const firing = members.filter((each) => fires(each, name));
  if (!isOpen) return firing.length > 0 ? "first" : undefined;
  if (firing.some(({ sentTo }) => !sentTo.includes(name))) return "members";
  const ended = members.filter((each) => isResolved(each, name));
  const goesOn = members.some((each) => each.state === "firing" && isHeard(each, name));
  if (!goesOn) return sendUpdates && ended.length > 0 ? "clear" : undefined;
  if (sendUpdates && ended.length > 0) return "members";
  return repeats && firing.length > 0 ? "repeat" : undefined;
}

function after(
  { waitMs, intervalMs, repeatIntervalMs }: GroupManner,
  before: GroupState,
  members: readonly Seen[],
  { open, sends, dueMs, nowMs }: { open: ReadonlySet<string>; sends: Flush["sends"]; dueMs: number; nowMs: number },
): GroupState | undefined {
  const left = members.filter(({ state }) => state === "firing" || state === "waiting");
  if (left.length === 0) return undefined;
  const waiting = left.filter(({ state }) => state === "waiting");
  const heldUntil = left.flatMap(({ state, holds }) => (state === "firing" ? [...holds.values()] : []));
  const held = heldUntil.length > 0;
  if (open.size === 0) {
    // Nothing that anyone has heard of goes on: what joins next begins a new wait.
    const dues = waiting.map((each) => firstFlushMs(each, waitMs));
    // A silence or a window that ends before this is stored does not find what it held: the second look comes soon.
    const lookMs = before.held ? intervalMs : Math.min(intervalMs, settledMs);
    if (held) dues.push(Math.max(nowMs + 1, Math.min(nowMs + lookMs, ...heldUntil)));
    return { flushedMs: undefined, dueMs: Math.min(...dues), repeatMs: undefined, openAt: [], held };
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
