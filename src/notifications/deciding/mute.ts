import { paced } from "../../event-loop.ts";
import { holdsOf } from "../silences/holds.ts";
import { type LoadedSilence, workMs } from "../silences/silences-in-force.ts";
import { type Labelled, labelsKey, readLabels } from "../subject/labels.ts";
import { keyText } from "../subject/subject.ts";
import type { Batch, Decided, Stage } from "./batch.ts";
import { lookAtSilenced } from "./unmute-jobs.ts";

/**
 * Holds back what nobody is to hear now, before it joins a message. `decide` keeps silent about entities in maintenance by itself:
 * here the look is left that reports them when their window has ended. What silences hold is decided as if there were none.
 */
export const mute: Stage = async ({ decided, jobs, nowMs, ...batch }) => {
  const silenced = new Map(decided.map(({ rule, match }) => [`${keyText(match.subject.key)}${rule.id}`, match]));
  const entityIds = [...silenced.values()].flatMap(({ muted, subject }) => (muted ? [subject.entityId] : []));
  return {
    ...(entityIds.length > 0 && { jobs: [...jobs, lookAtSilenced(entityIds, nowMs)] }),
    ...(batch.silences.any(nowMs) && { decided: await held(decided, { ...batch, nowMs }) }),
  };
};

/**
 * Tells whether anything follows now that a silence may hold: an end is never held, what is due later is asked about then, and a member of
 * a group by the group's flush.
 */
const mayBeHeld = ({ due, match }: Decided, nowMs: number) =>
  !match.grouped && due.some(({ occasion, dueMs }) => occasion !== "clear" && dueMs <= nowMs);

const labelled = ({ match: { subject, triggerNames, value } }: Decided): Labelled => ({
  subject,
  triggerName: triggerNames[0] ?? "",
  isSeries: value !== undefined,
});

/** Asks silences for `workMs`. What is left is stored as if there were none: it is asked about when it is sent, as all is. */
async function held(
  decided: readonly Decided[],
  { tx, tenantId, nowMs, silences }: Pick<Batch, "tx" | "tenantId" | "nowMs" | "silences">,
): Promise<readonly Decided[]> {
  const asked = decided.filter((each) => mayBeHeld(each, nowMs));
  if (asked.length === 0) return decided;
  const labels = await readLabels(tx, tenantId, asked.map(labelled));
  const pace = paced(undefined, tenantId);
  const matching = new Map<string, readonly LoadedSilence[]>();
  const untilMs = performance.now() + workMs;
  for (const [key, view] of labels) {
    matching.set(key, await silences.matching(view, nowMs, pace));
    if (performance.now() > untilMs) break;
  }
  return decided.map((each) => {
    const found = mayBeHeld(each, nowMs) ? (matching.get(labelsKey(labelled(each))) ?? []) : [];
    return found.length === 0 ? each : { ...each, holds: holdsOf(found, each.rule) };
  });
}
