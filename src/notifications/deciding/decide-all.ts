import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { RepeatWhile } from "#gen/belfry/notifications/v1/rule_pb.ts";
import { paced } from "../../event-loop.ts";
import { type Match, note, type StoredMatch } from "../rules/match-store.ts";
import type { LoadedRule, Manner } from "../rules/tenant-rules.ts";
import { keyText } from "../subject/subject.ts";
import { type Batch, type Decided, type Ongoing, portion, type Sight, type Stage } from "./batch.ts";
import { pairText } from "./current-state.ts";
import { type Decision, decide } from "./decide.ts";

/** Decides on the sights, in their order, in slices: each as the one before has left the match. */
export const decideAll: Stage = async ({ tenantId, nowMs, sights, noted }) => {
  const pace = paced(undefined, tenantId);
  const decided: Decided[] = [];
  const ongoing = new Map<string, Ongoing>();
  let count = 0;
  for await (const sight of sights) {
    if (++count % portion === 0) await pace();
    const { rule, subject, row, matches } = sight;
    if (row !== undefined && matches && noted.get(keyText(subject.key))?.get(rule.id)?.standing)
      ongoing.set(pairText({ subject, ruleId: rule.id }), { rule, subject, row });
    const made = decideOn(sight, noted, nowMs);
    if (made === undefined) continue;
    note(noted, made.match);
    decided.push(made);
  }
  return { decided, ongoing: [...ongoing.values()] };
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

/**
 * A member of a group that is no occurrence has the name of its first trigger among its labels. Undefined: it is the same as before, or
 * something else is asked about.
 */
export function renamed(before: StoredMatch | undefined, { matches, triggerNames }: Sight): Decision | undefined {
  if (!before?.standing || !before.grouped || !matches || before.subject.eventId !== undefined) return undefined;
  return triggerNames()[0] === before.triggerNames[0] ? undefined : { match: before, due: [], over: false };
}

function decideOn(sight: Sight, noted: Batch["noted"], nowMs: number): Decided | undefined {
  const { rule, subject } = sight;
  const before = noted.get(keyText(subject.key))?.get(rule.id);
  const leaves = sight.leavesGroup === true && sight.matches && before !== undefined;
  const grouped = !leaves && (before?.standing ? before.grouped === true : rule.grouping !== null);
  const decision = leaves
    ? leftGroup(rule, before, sight, nowMs)
    : (decide(grouped ? asMember(rule) : rule, before, sight, nowMs) ?? renamed(before, sight));
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
