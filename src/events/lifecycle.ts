/** Numbers of the API's enum EventStatus that change what happens; see docs/decisions/0003. */
const DEFAULT = 0;
const CLOSED = 3;

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
}

/** What an event was like from one first sight to its closing. Numbers run from 1. */
export interface Occurrence {
  number: number;
  severity: number;
  status: number;
  acknowledged: boolean;
  type: string;
  summary: string;
  body: string;
  metadata: Record<string, unknown>;
  startMs: bigint;
  lastSeenMs: bigint;
  endMs: bigint | null;
  instanceCount: bigint;
}

/** An event's occurrences by number, ascending: at least the latest, and all of them when an instance may be late. */
export type History = Occurrence[];

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
  };
}

function countLate(history: History, instance: Instance): Occurrence {
  const begun = history.findLast((occurrence) => occurrence.startMs <= instance.timeMs);
  const occurrence = begun ?? (history[0] as Occurrence);
  if (begun === undefined) occurrence.startMs = instance.timeMs;
  occurrence.instanceCount += 1n;
  return occurrence;
}

function seenAgain(occurrence: Occurrence, instance: Instance): Occurrence {
  occurrence.instanceCount += 1n;
  occurrence.lastSeenMs = instance.timeMs;
  if (occurrence.status === CLOSED) return occurrence;
  if (instance.severity !== DEFAULT) occurrence.severity = instance.severity;
  if (instance.status !== DEFAULT) occurrence.status = instance.status;
  if (instance.acknowledged !== undefined) occurrence.acknowledged = instance.acknowledged;
  if (instance.type !== "") occurrence.type = instance.type;
  if (instance.summary !== "") occurrence.summary = instance.summary;
  if (instance.body !== "") occurrence.body = instance.body;
  if (Object.keys(instance.metadata).length > 0) occurrence.metadata = instance.metadata;
  if (instance.status === CLOSED) occurrence.endMs = instance.timeMs;
  return occurrence;
}

/**
 * Applies an instance to its event: changes `history` in place and answers the occurrence in which it counts. The
 * caller has sorted out instances that were there before.
 * @param lastSeenMs time of the event's latest instance; only read when there is a history.
 */
export function applyInstance(history: History, lastSeenMs: bigint, instance: Instance): Occurrence {
  const latest = history.at(-1);
  if (latest !== undefined && instance.timeMs < lastSeenMs) return countLate(history, instance);
  if (latest !== undefined && (latest.status !== CLOSED || instance.status === CLOSED))
    return seenAgain(latest, instance);
  const occurrence = opened((latest?.number ?? 0) + 1, instance);
  history.push(occurrence);
  return occurrence;
}
