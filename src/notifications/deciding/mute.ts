import { askMutes, holdsOf, mayHold } from "../silences/mutes.ts";
import { keyText } from "../subject/subject.ts";
import type { Batch, Decided, Stage } from "./batch.ts";
import { lookAtSilenced } from "./unmute-jobs.ts";

/**
 * Holds back what nobody is to hear now, before it joins a message. `decide` keeps silent about entities in maintenance by itself:
 * here the look is left that reports them when their window has ended. Deliveries are decided as if nothing held them.
 */
export const mute: Stage = async ({ decided, jobs, nowMs, ...batch }) => {
  const silenced = new Map(decided.map(({ rule, match }) => [`${keyText(match.subject.key)}${rule.id}`, match]));
  const entityIds = [...silenced.values()].flatMap(({ muted, subject }) => (muted ? [subject.entityId] : []));
  return {
    ...(entityIds.length > 0 && { jobs: [...jobs, lookAtSilenced(entityIds, nowMs)] }),
    ...(mayHold({ silences: batch.silences, nowMs }) && { decided: await held(decided, { ...batch, nowMs }) }),
  };
};

/**
 * Tells whether anything follows now that may be held: an end is never held, what is due later is asked about then, and a member of
 * a group by the group's flush.
 */
const mayBeHeld = ({ due, match }: Decided, nowMs: number) =>
  !match.grouped && due.some(({ occasion, dueMs }) => occasion !== "clear" && dueMs <= nowMs);

/** Asks what holds them now. What there is no time for is stored as if nothing did: it is asked about when it is sent, as all is. */
async function held(
  decided: readonly Decided[],
  { tx, tenantId, nowMs, silences }: Pick<Batch, "tx" | "tenantId" | "nowMs" | "silences">,
): Promise<readonly Decided[]> {
  const asked = new Set(decided.filter((each) => mayBeHeld(each, nowMs)));
  if (asked.size === 0) return decided;
  const subjects = Array.from(asked, ({ match }) => match);
  const mutedBy = await askMutes(tx, tenantId, subjects, { silences, nowMs });
  return decided.map((each) => {
    const found = asked.has(each) ? mutedBy(each.match) : undefined;
    return found === undefined ? each : { ...each, holds: holdsOf(found, each.rule) };
  });
}
