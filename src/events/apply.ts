import type { Change, EventIdentity, KeptOpen } from "./changes.ts";
import {
  applyInstance,
  CLOSED,
  type History,
  type Instance,
  isExpired,
  lateBeforeMs,
  type Occurrence,
} from "./lifecycle.ts";

/** What was sent of an event, in order, and its occurrences. */
export interface Sent {
  instances: SentInstance[];
  history: History;
}

interface SentInstance extends Instance {
  onlyKeepsOpen?: true;
}

type Subject = EventIdentity & Sent & { key: string };

/** A text that two instances share only when they are the same one. */
export const instanceKey = (
  key: string,
  { timeMs, severity, status }: Pick<Instance, "timeMs" | "severity" | "status">,
) => `${key}${timeMs}/${severity}/${status}`;

/** What comes of an instance: it is applied, opens an occurrence now, or says at most that its event goes on. */
type Course = "apply" | "open now" | "keep open";

/** Whether an instance that is no news of an expired occurrence says that its event goes on all the same. */
const revives = ({ status, expiresAtMs }: Instance, nowMs: number) =>
  status !== CLOSED && (expiresAtMs === undefined || expiresAtMs > BigInt(nowMs));

function courseOf(latest: Occurrence | undefined, instance: SentInstance, isKnown: boolean, nowMs: number): Course {
  const { onlyKeepsOpen, timeMs } = instance;
  if (latest === undefined || !(isKnown || onlyKeepsOpen)) return "apply";
  if (latest.status !== CLOSED) return "keep open";
  if (!isKnown && timeMs > lateBeforeMs(latest)) return "apply";
  return isExpired(latest) && revives(instance, nowMs) ? "open now" : "keep open";
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
    /** The latest time until which the event goes on, by what is no news of it. */
    let untilMs: bigint | undefined;
    const firstChange = changes.length;
    for (const sent of instances) {
      const latest = history.at(-1);
      const course = courseOf(latest, sent, known.has(instanceKey(key, sent)), nowMs);
      const late = latest !== undefined && sent.timeMs < lateBeforeMs(latest);
      const isNews = course === "open now" || (course === "apply" && !late);
      if (!isNews) untilMs = later(untilMs, sent.expiresAtMs);
      if (course === "keep open") continue;
      const instance = course === "open now" && latest !== undefined ? openingNow(sent, latest, nowMs) : sent;
      known.add(instanceKey(key, instance));
      changes.push({ ...applyInstance(history, instance), event, instance });
      // News sets the time again, and another occurrence has one of its own.
      if (isNews && (sent.expiresAtMs !== undefined || history.at(-1)?.number !== latest?.number)) untilMs = undefined;
    }
    keepOpen(event, untilMs, changes, firstChange, keptOpen);
  }
  return { changes, keptOpen };
}

/** An instance that opens an occurrence when it is received, even where the one before was seen ahead of the clock. */
function openingNow(sent: SentInstance, latest: Occurrence, nowMs: number): SentInstance {
  const lastMs = lateBeforeMs(latest);
  return { ...sent, timeMs: lastMs > BigInt(nowMs) ? lastMs + 1n : BigInt(nowMs) };
}

const later = (a: bigint | undefined, b: bigint | undefined) => (a === undefined || (b !== undefined && b > a) ? b : a);

/** Moves on when the latest occurrence expires: with its last change in the batch, or by itself. */
function keepOpen(
  event: Subject,
  untilMs: bigint | undefined,
  changes: Change[],
  firstChange: number,
  keptOpen: KeptOpen[],
) {
  const latest = event.history.at(-1);
  if (untilMs === undefined || latest === undefined || latest.status === CLOSED) return;
  if (latest.expiresMs === null || latest.expiresMs >= untilMs) return;
  for (let i = changes.length - 1; i >= firstChange; i--) {
    const change = changes[i] as Change;
    if (change.after !== latest) continue;
    change.after = { ...latest, expiresMs: untilMs };
    return;
  }
  keptOpen.push({ event, number: latest.number, expiresMs: untilMs });
}
