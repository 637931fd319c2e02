import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import type { Change, KeptOpen } from "./changes.ts";
import type { EventIdentity } from "./fields.ts";
import {
  applyInstance,
  CLOSED,
  closeOpen,
  closerOf,
  type History,
  type Instance,
  lastReportMs,
  lateBeforeMs,
  type Occurrence,
  type Texts,
  type Transition,
} from "./lifecycle.ts";

/** What was sent of an event, in order, and its occurrences. */
export interface Sent {
  instances: SentInstance[];
  history: History;
}

/** A report as a door of the service passes it on. */
export interface SentInstance extends Instance {
  /** It only keeps an open occurrence open, until its `expiresAtMs`, and shows its texts: it is no instance, whatever its time. */
  onlyKeepsOpen?: true;
  /** Keys of its metadata in which such reports may differ: alone they change nothing that is shown. */
  looseKeys?: readonly string[];
}

type Subject = EventIdentity & Sent & { key: string };

/** A text that two instances share only when they are the same one. */
export const instanceKey = (
  key: string,
  { timeMs, severity, status }: Pick<Instance, "timeMs" | "severity" | "status">,
) => `${key}${timeMs}/${severity}/${status}`;

/** Decides what an instance does: it is applied, opens or closes an occurrence now, or only says that its event goes on. */
type Course = "apply" | "open now" | "close now" | "keep open";

/** Whether an instance that is no news of a closed occurrence says that its event goes on all the same. */
const revives = ({ status, expiresAtMs }: Instance, nowMs: number) =>
  status !== CLOSED && (expiresAtMs === undefined || expiresAtMs > BigInt(nowMs));

function courseOf(latest: Occurrence | undefined, instance: SentInstance, isKnown: boolean, nowMs: number): Course {
  const { onlyKeepsOpen, closesOpen, timeMs } = instance;
  if (latest === undefined) return "apply";
  if (closesOpen && !isKnown && latest.status !== CLOSED) return "close now";
  if (!(isKnown || onlyKeepsOpen)) return "apply";
  if (latest.status !== CLOSED) return "keep open";
  if (!isKnown && timeMs > lateBeforeMs(latest)) return "apply";
  const closer = closerOf(latest);
  // Of a pair of senders one may have seen the end of what the other goes on to report.
  const goesOn = closer === ClosedBy.EXPIRY || (onlyKeepsOpen && closer === ClosedBy.ALERT);
  return goesOn && revives(instance, nowMs) ? "open now" : "keep open";
}

/** Holds what reports that are no news say of the latest occurrence of an event. */
interface Kept {
  /** The latest time until which it goes on. */
  untilMs?: bigint | undefined;
  /** The latest time at which it went on. */
  atMs?: bigint | undefined;
  texts?: Texts & Pick<SentInstance, "looseKeys">;
}

function keeping(kept: Kept, sent: SentInstance): Kept {
  const untilMs = later(kept.untilMs, sent.expiresAtMs);
  return sent.onlyKeepsOpen ? { untilMs, atMs: later(kept.atMs, sent.timeMs), texts: sent } : { ...kept, untilMs };
}

/** An occurrence as reports that only keep it open leave it; the same one where they change nothing. */
function keptOpenBy(before: Occurrence, { untilMs, atMs, texts }: Kept): Occurrence {
  if (before.status === CLOSED) return before;
  const after = { ...before };
  if (untilMs !== undefined && before.expiresMs !== null && before.expiresMs < untilMs) after.expiresMs = untilMs;
  if (atMs !== undefined && atMs > lastReportMs(before)) after.keptOpenMs = atMs;
  if (texts !== undefined && differ(before, texts)) Object.assign(after, textsOf(texts));
  const { expiresMs, keptOpenMs, metadata } = before;
  const same = after.expiresMs === expiresMs && after.keptOpenMs === keptOpenMs && after.metadata === metadata;
  return same ? before : after;
}

/** Runs the lifecycle over a batch; returns what happened. `known`: the instances that are stored already. */
export function applyAll(
  subjects: readonly Subject[],
  known: Set<string>,
  nowMs: number,
): { changes: Change[]; keptOpen: KeptOpen[] } {
  const changes: Change[] = [];
  const keptOpen: KeptOpen[] = [];
  for (const event of subjects) {
    const { history, key, instances } = event;
    let kept: Kept = {};
    const firstChange = changes.length;
    for (const sent of instances) {
      const latest = history.at(-1);
      const course = courseOf(latest, sent, known.has(instanceKey(key, sent)), nowMs);
      const late = latest !== undefined && sent.timeMs < lateBeforeMs(latest);
      const isNews = course === "open now" || course === "close now" || (course === "apply" && !late);
      if (!isNews) kept = keeping(kept, sent);
      if (course === "keep open") continue;
      const instance = course === "open now" && latest !== undefined ? openingNow(sent, latest, nowMs) : sent;
      known.add(instanceKey(key, instance));
      const { happened, isKept } = happen(history, instance, course, kept);
      changes.push({ ...happened, event, instance });
      if (!isKept) kept = {};
    }
    keepOpen(event, kept, changes, firstChange, keptOpen);
  }
  return { changes, keptOpen };
}

/**
 * Applies an instance after what keeps the latest occurrence open; `isKept`: that is still to be applied, since the instance is
 * of an earlier one.
 */
function happen(
  history: History,
  instance: Instance,
  course: Course,
  kept: Kept,
): { happened: Transition; isKept: boolean } {
  const place = history.length - 1;
  const latest = history[place];
  const shown = latest && keptOpenBy(latest, kept);
  if (shown !== undefined) history[place] = shown;
  const happened = course === "close now" ? closeOpen(history, instance) : applyInstance(history, instance);
  if (latest === undefined) return { happened, isKept: false };
  if (history[place] !== shown) return { happened: { ...happened, before: latest }, isKept: false };
  history[place] = latest;
  return { happened, isKept: history.length - 1 === place };
}

/** An instance that opens an occurrence when it is received, or right after the one before where that was seen then or later. */
function openingNow(sent: SentInstance, latest: Occurrence, nowMs: number): SentInstance {
  const lastMs = lateBeforeMs(latest);
  return { ...sent, timeMs: lastMs >= BigInt(nowMs) ? lastMs + 1n : BigInt(nowMs) };
}

const later = (a: bigint | undefined, b: bigint | undefined) => (a === undefined || (b !== undefined && b > a) ? b : a);

/** Keeps the latest occurrence open: with its last change in the batch, or by itself. */
function keepOpen(event: Subject, kept: Kept, changes: Change[], firstChange: number, keptOpen: KeptOpen[]) {
  const latest = event.history.at(-1);
  const shown = latest && keptOpenBy(latest, kept);
  if (latest === undefined || shown === undefined || shown === latest) return;
  for (let i = changes.length - 1; i >= firstChange; i--) {
    const change = changes[i] as Change;
    if (change.after !== latest) continue;
    change.after = shown;
    return;
  }
  keptOpen.push({ event, before: latest, after: shown });
}

const textsOf = ({ summary, body, metadata }: Texts): Texts => ({ summary, body, metadata });

/** Tells whether texts differ from those that are shown; metadata that are no texts always differ. */
function differ(shown: Texts, { summary, body, metadata, looseKeys = [] }: NonNullable<Kept["texts"]>): boolean {
  if (shown.summary !== summary || shown.body !== body) return true;
  const keys = Object.keys(shown.metadata).filter((key) => !looseKeys.includes(key));
  return (
    keys.length !== Object.keys(metadata).filter((key) => !looseKeys.includes(key)).length ||
    keys.some((key) => !Object.hasOwn(metadata, key) || shown.metadata[key] !== metadata[key])
  );
}
