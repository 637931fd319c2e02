import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import type { occurrences } from "./tables.ts";

/** Numbers of the API's enum EventStatus that change what happens; see design/events. */
const DEFAULT = 0;
export const CLOSED = 3;

/** One report of an event, as it was sent. */
export interface Instance {
  timeMs: bigint;
  severity: number;
  status: number;
  /** undefined: not said. */
  acknowledged: boolean | undefined;
  type: string;
  summary: string;
  body: string;
  metadata: Record<string, unknown>;
  /** When the occurrence expires; absent: not said. */
  expiresAtMs?: bigint;
  /** It is the end of an alert: it closes the occurrence that is open, whatever its time. */
  closesOpen?: true;
  /** The names of the rules that made it, the latest last; absent: none, it came from outside. */
  chain?: readonly string[];
  /** What set these rules off: a UUID, the same for all that it leads to; absent: it came from outside. */
  root?: string;
}

/** What an event was like from one first sight to its closing. Numbers run from 1. */
export type Occurrence = Omit<typeof occurrences.$inferSelect, "tenantId" | "eventId" | "seenSlot">;

/** Names what a report that only keeps an occurrence open may change of it. */
export type Texts = Pick<Occurrence, "summary" | "body" | "metadata">;

/** Whether an occurrence was closed because it had expired. A server of before expiry leaves the time of what it closes. */
export const isExpired = ({ status, expiresMs, endMs }: Occurrence): boolean =>
  status === CLOSED && expiresMs !== null && endMs !== null && endMs >= expiresMs;

/**
 * Who closed an occurrence; undefined while it is not closed. A process of 0.3 writes no value, and leaves one that is there: the times
 * alone say whether an occurrence has expired.
 */
export function closerOf(occurrence: Occurrence): ClosedBy | undefined {
  const { status, closedBy, metadata } = occurrence;
  if (status !== CLOSED) return undefined;
  if (isExpired(occurrence)) return ClosedBy.EXPIRY;
  if (closedBy !== null && closedBy !== ClosedBy.EXPIRY) return closedBy;
  return metadata.reason === "Aged" ? ClosedBy.AGEING : ClosedBy.PERSON;
}

/** An occurrence that is closed at a time, or at its last report when that is later. One that expires keeps when it did. */
export function closed(before: Occurrence, atMs: bigint, closedBy: ClosedBy): Occurrence {
  const endMs = atMs > before.lastSeenMs ? atMs : before.lastSeenMs;
  const expiresMs = closedBy === ClosedBy.EXPIRY ? before.expiresMs : null;
  return { ...before, status: CLOSED, endMs, expiresMs, closedBy };
}

/** A closed occurrence that people open again: it does not expire until a report says so. */
export const reopened = (before: Occurrence, status: number): Occurrence => ({
  ...before,
  status,
  endMs: null,
  expiresMs: null,
  closedBy: null,
});

const closerBy = ({ closesOpen }: Instance) => (closesOpen ? ClosedBy.ALERT : ClosedBy.EVENT);

/**
 * Occurrences of an event by number, ascending: the latest, and of the earlier ones at least those in which late instances
 * count. Occurrences are never changed, they are replaced.
 */
export type History = Occurrence[];

/** What happened to an occurrence: what it was like before, undefined when this opened it, and what it is like now. */
export interface Transition {
  before: Occurrence | undefined;
  after: Occurrence;
}

function opened(number: number, instance: Instance): Occurrence {
  return {
    number,
    severity: instance.severity,
    status: instance.status,
    acknowledged: instance.acknowledged ?? false,
    type: instance.type,
    summary: instance.summary,
    body: instance.body,
    metadata: instance.metadata,
    startMs: instance.timeMs,
    lastSeenMs: instance.timeMs,
    endMs: instance.status === CLOSED ? instance.timeMs : null,
    instanceCount: 1n,
    expiresMs: instance.status === CLOSED ? null : (instance.expiresAtMs ?? null),
    keptOpenMs: null,
    closedBy: instance.status === CLOSED ? closerBy(instance) : null,
  };
}

/** The place of the occurrence that had begun at a time; of the first one when none had. */
function begunAt(history: History, timeMs: bigint): number {
  for (let i = history.length - 1; i > 0; i--) if ((history[i] as Occurrence).startMs <= timeMs) return i;
  return 0;
}

/** What is older than this is late: the event's last report, or the end of its latest occurrence when that came after it. */
export function lateBeforeMs({ lastSeenMs, endMs }: Occurrence): bigint {
  return endMs !== null && endMs > lastSeenMs ? endMs : lastSeenMs;
}

/** In the latest occurrence a report from between the last one and the end is the last one: no report of the event is newer. */
function countedLate(occurrence: Occurrence, { timeMs }: Instance, isLatest: boolean): Occurrence {
  const startMs = timeMs < occurrence.startMs ? timeMs : occurrence.startMs;
  const lastSeenMs = isLatest && timeMs > occurrence.lastSeenMs ? timeMs : occurrence.lastSeenMs;
  return { ...occurrence, startMs, lastSeenMs, instanceCount: occurrence.instanceCount + 1n };
}

function seenAgain(before: Occurrence, instance: Instance): Occurrence {
  const after = { ...before, instanceCount: before.instanceCount + 1n, lastSeenMs: instance.timeMs };
  if (instance.status === CLOSED) {
    after.expiresMs = null;
    if (before.status !== CLOSED || isExpired(before)) after.closedBy = closerBy(instance);
  } else if (instance.expiresAtMs !== undefined && before.status !== CLOSED) after.expiresMs = instance.expiresAtMs;
  if (before.status === CLOSED) return after;
  if (instance.severity !== DEFAULT) after.severity = instance.severity;
  if (instance.status !== DEFAULT) after.status = instance.status;
  if (instance.acknowledged !== undefined) after.acknowledged = instance.acknowledged;
  if (instance.type !== "") after.type = instance.type;
  if (instance.summary !== "") after.summary = instance.summary;
  if (instance.body !== "") after.body = instance.body;
  for (const _ in instance.metadata) {
    after.metadata = instance.metadata;
    break;
  }
  if (instance.status === CLOSED) after.endMs = instance.timeMs;
  return after;
}

/** When it was last reported that an occurrence goes on, by an instance or by a report that only kept it open. */
export const lastReportMs = ({ lastSeenMs, keptOpenMs }: Occurrence): bigint =>
  keptOpenMs !== null && keptOpenMs > lastSeenMs ? keptOpenMs : lastSeenMs;

/**
 * Closes the occurrence that is open by a report of its end, whatever the clocks say: at the time of that report, or at the last
 * report that it goes on when that is later. The caller has sorted out ends that were there before.
 */
export function closeOpen(history: History, end: Instance): Transition {
  const before = history.at(-1) as Occurrence;
  const lastMs = lastReportMs(before);
  const after = {
    ...seenAgain(before, end),
    lastSeenMs: end.timeMs > before.lastSeenMs ? end.timeMs : before.lastSeenMs,
    endMs: end.timeMs > lastMs ? end.timeMs : lastMs,
  };
  history[history.length - 1] = after;
  return { before, after };
}

/**
 * Applies an instance to its event: puts what became of it into `history`, and returns it. An instance older than the
 * latest occurrence's last report or end is late. The caller has sorted out instances that were there before.
 */
export function applyInstance(history: History, instance: Instance): Transition {
  const latest = history.at(-1);
  const late = latest !== undefined && instance.timeMs < lateBeforeMs(latest);
  if (latest === undefined || (!late && latest.status === CLOSED && instance.status !== CLOSED)) {
    const after = opened((latest?.number ?? 0) + 1, instance);
    history.push(after);
    return { before: undefined, after };
  }
  const place = late ? begunAt(history, instance.timeMs) : history.length - 1;
  const before = history[place] as Occurrence;
  const after = late ? countedLate(before, instance, before === latest) : seenAgain(before, instance);
  history[place] = after;
  return { before, after };
}
