import type { Db } from "../../db/connect.ts";
import { paced } from "../../event-loop.ts";
import type { DeliverySnapshot } from "../delivery-snapshot.ts";
import type { Subject } from "../matched-subject.ts";
import { decide, type Match, type Seen } from "./decide.ts";
import { keyText, note, type StoredMatch, type StoredMatches, writeMatches } from "./match-store.ts";
import type { LoadedRule } from "./matcher/tenant-rules.ts";
import { type Notice, storeNotices, type Unneeded, type Wake } from "./outbox.ts";
import { type Repetition, repeatLater, repetitionOf } from "./repetitions.ts";
import { lookAtSilenced } from "./unmute-jobs.ts";

/** A subject as a rule sees it. */
export interface Sight extends Seen {
  readonly rule: LoadedRule;
  readonly subject: Subject;
  /** Returns the triggers of the rule that match it, in the rule's order; none: it matches no more. Called only if anything follows. */
  triggerNames(): readonly string[];
  /** Returns the snapshot of deliveries. Called only if anything follows. */
  told(): DeliverySnapshot;
}

/** Rows of one statement, and sights after which others get their turn: what is more is written in several. */
const portion = 1000;

/** What sights come to. */
interface Course {
  readonly changed: Map<string, StoredMatch>;
  readonly notices: Notice[];
  readonly unneeded: Unneeded[];
  readonly repetitions: Map<string, Repetition>;
}

/**
 * Decides on sights, in their order, and stores what follows: what is noted of rules and subjects, and deliveries. In the
 * transaction that holds the subjects' locks; `matches` is what is noted of them by now.
 */
export async function applyDecisions(
  tx: Db,
  tenantId: string,
  sights: Iterable<Sight> | AsyncIterable<Sight>,
  matches: StoredMatches,
  nowMs: number,
  wake: Wake,
): Promise<void> {
  const course: Course = { changed: new Map(), notices: [], unneeded: [], repetitions: new Map() };
  const pace = paced(undefined, tenantId);
  let count = 0;
  for await (const sight of sights) {
    if (++count % portion === 0) await pace();
    follow(sight, matches, nowMs, course);
  }
  const { changed, notices, unneeded, repetitions } = course;
  if (changed.size === 0) return;
  const noted = [...changed.values()];
  for (let from = 0; from < noted.length; from += portion) {
    if (from > 0) await pace();
    await writeMatches(tx, tenantId, noted.slice(from, from + portion));
  }
  // What is not needed any more is hastened with the first of them; there may be nothing but that.
  for (let from = 0; from === 0 || from < notices.length; from += portion) {
    if (from > 0) await pace();
    const some = { notices: notices.slice(from, from + portion), unneeded: from === 0 ? unneeded : [], nowMs };
    await storeNotices(tx, tenantId, some, wake);
  }
  const silenced = [...changed.values()].flatMap(({ muted, subject }) => (muted ? [subject.entityId] : []));
  if (silenced.length > 0) await lookAtSilenced(tx, tenantId, silenced, nowMs);
  await repeatLater(tx, tenantId, [...repetitions.values()], nowMs);
}

function follow(sight: Sight, matches: StoredMatches, nowMs: number, course: Course): void {
  const { changed, notices, unneeded, repetitions } = course;
  const { rule, subject } = sight;
  const key = keyText(subject.key);
  const before = matches.get(key)?.get(rule.id);
  const decision = decide(rule, before, sight, nowMs);
  if (decision === undefined) return;
  const told = sight.told();
  const matching = sight.triggerNames();
  const triggerNames = matching.length > 0 ? matching : (before?.triggerNames ?? []);
  const match: StoredMatch = {
    ...(decision.match satisfies Match),
    subject,
    ruleId: rule.id,
    triggerNames,
    chain: [],
    value: told.value ?? before?.value,
    valueMs: told.value === undefined ? before?.valueMs : told.timeMs,
  };
  note(matches, match);
  changed.set(`${key}${rule.id}`, match);
  const repetition = repetitionOf(rule, match);
  if (repetition !== undefined) repetitions.set(`${key}${rule.id}`, repetition);
  const { destinationNames } = rule;
  for (const due of decision.due) notices.push({ ...due, rule, destinationNames, triggerNames, subject, told });
  if (decision.over) unneeded.push({ ruleId: rule.id, key: subject.key, destinationNames });
}
