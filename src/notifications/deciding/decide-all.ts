import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { paced } from "../../event-loop.ts";
import { type Decision, decide, type Manner, type Match } from "./decide.ts";
import { keyText, note, type StoredMatch } from "./match-store.ts";
import type { LoadedRule } from "./matcher/tenant-rules.ts";
import { type Decided, type Passage, portion, type Sight, type Stage } from "./passage.ts";

/** Decides on the sights, in their order, in slices: each as the one before has left the match. */
export const decideAll: Stage = async ({ tenantId, nowMs, sights, noted }) => {
  const pace = paced(undefined, tenantId);
  const decided: Decided[] = [];
  let count = 0;
  for await (const sight of sights) {
    if (++count % portion === 0) await pace();
    const made = decideOn(sight, noted, nowMs);
    if (made === undefined) continue;
    note(noted, made.match);
    decided.push(made);
  }
  return { decided };
};

/** Of a member of a group its beginning and its end are decided; its group waits, repeats and reports. */
const asMember = (rule: LoadedRule): Manner => ({
  ...rule,
  repeat: false,
  repeatWhile: RepeatWhile.UNSPECIFIED,
  delayMs: 0,
  sendUpdates: true,
});

/** A match whose group is no more begins anew. What is closed has ended there: it begins when it is opened again. */
function leftGroup(rule: LoadedRule, before: StoredMatch, sight: Sight, nowMs: number): Decision | undefined {
  const silent = { muted: false, firstDueMs: undefined, notifiedMs: undefined };
  if (sight.now?.status !== Status.CLOSED) return decide(rule, { ...before, ...silent, standing: false }, sight, nowMs);
  return { match: { ...before, ...silent, told: sight.now }, due: [], over: false };
}

function decideOn(sight: Sight, noted: Passage["noted"], nowMs: number): Decided | undefined {
  const { rule, subject } = sight;
  const before = noted.get(keyText(subject.key))?.get(rule.id);
  const leaves = sight.leavesGroup === true && sight.matches && before !== undefined;
  const grouped = !leaves && (before?.standing ? before.grouped === true : rule.grouping !== null);
  const decision = leaves
    ? leftGroup(rule, before, sight, nowMs)
    : decide(grouped ? asMember(rule) : rule, before, sight, nowMs);
  if (decision === undefined) return undefined;
  const told = sight.told();
  const matching = sight.triggerNames();
  const match: StoredMatch = {
    ...(decision.match satisfies Match),
    subject,
    ruleId: rule.id,
    triggerNames: matching.length > 0 ? matching : (before?.triggerNames ?? []),
    chain: [],
    grouped,
    value: told.value ?? before?.value,
    valueMs: told.value === undefined ? before?.valueMs : told.timeMs,
  };
  return { ...decision, rule, match, before: before?.standing ? before.told : undefined, told };
}
