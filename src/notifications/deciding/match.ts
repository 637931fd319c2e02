import type { Db } from "../../db/connect.ts";
import type { Fact } from "../../events/facts.ts";
import type { Occurrence } from "../../events/lifecycle.ts";
import { lockEvents } from "../../events/lock.ts";
import { findMatches, type Matched } from "../rules/find-matches.ts";
import {
  nilRule,
  note,
  readMatches,
  type Signature,
  type StoredMatch,
  type StoredMatches,
  unmatched,
  writeMatches,
} from "../rules/match-store.ts";
import { matchRow, readEntitiesOf } from "../rules/rows.ts";
import type { LoadedRule, TenantRules } from "../rules/tenant-rules.ts";
import { inMaintenance } from "../silences/mutes.ts";
import { workMs } from "../silences/silences-in-force.ts";
import { chainRulesMax } from "../subject/notification.ts";
import type { Reason } from "../subject/reason.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import { keyText, occurrenceSubject, type Subject } from "../subject/subject.ts";
import type { Sight, Stage } from "./batch.ts";

/** One transaction decides on about this many. */
const matchesMax = 5000;

/** A fact with its matches, once they are found. */
interface SeenFact extends Matched {
  readonly fact: Fact;
  readonly subject: Subject;
}

const seenFact = (fact: Fact): SeenFact => ({
  fact,
  subject: occurrenceSubject(fact.event, fact.after.number),
  row: matchRow(fact.event, fact.after),
  matches: new Map(),
});

/** Whether rules made the occurrence that it opens. */
const isMade = ({ before, chain }: Fact) => before === undefined && chain.length > 0;

/**
 * Finds the rules that match facts, as many as one transaction should take, and shows these rules, and those that matched before, the
 * facts one after the other. From there on the events are locked of which anything may follow.
 */
export const match: Stage = async ({ tx, tenantId, changes }) => {
  if (changes === undefined) return {};
  const { rules } = changes;
  const all = changes.facts.map(seenFact);
  const taken = await findMatches(tx, tenantId, rules, all, { untilMs: performance.now() + workMs, matchesMax });
  const found = all.slice(0, taken);
  const before = await readNoted(tx, tenantId, found);
  const concerned = new Set(before.keys());
  for (const { fact, subject, matches } of found) {
    if (matches.size > 0 || isMade(fact)) concerned.add(keyText(subject.key));
  }
  const lively = found.filter(({ subject }) => concerned.has(keyText(subject.key)));
  if (lively.length === 0) return { taken };
  const events = new Map(lively.map(({ fact: { event } }) => [keyText(event.id), event.id]));
  const [{ ids }, noted] = await Promise.all([
    lockEvents(tx, tenantId, [...events.values()]),
    readNoted(tx, tenantId, lively),
  ]);
  const there = new Set(ids.map(keyText));
  const known = lively.filter(({ fact }) => there.has(keyText(fact.event.id)));
  const carriers = known.flatMap(({ fact, subject }) => (isMade(fact) ? [carrier(fact, subject)] : []));
  if (carriers.length > 0) await writeMatches(tx, tenantId, carriers);
  for (const each of carriers) note(noted, each);
  await readMaintenance(tx, tenantId, rules, known, noted);
  return { taken, noted, sights: sights(rules, known, noted), silences: rules.silences };
};

/** Reads what is noted of the occurrences of facts: nothing of those that one of them opens, unless it was set aside and others came first. */
function readNoted(tx: Db, tenantId: string, all: readonly SeenFact[]): Promise<StoredMatches> {
  const keys = new Map(all.map(({ subject: { key } }) => [keyText(key), key]));
  for (const { fact, subject } of all) if (fact.before === undefined && fact.news) keys.delete(keyText(subject.key));
  return readMatches(tx, tenantId, [...keys.values()]);
}

/** The row that keeps which rules made an occurrence. */
const carrier = ({ chain }: Fact, subject: Subject): StoredMatch => ({ ...unmatched, subject, ruleId: nilRule, chain });

/** The rules that have a say about a subject: those that match it, and those that did. */
function rulesOf(rules: TenantRules, { matches, subject }: SeenFact, noted: StoredMatches) {
  const found = new Set<LoadedRule>(matches.keys());
  for (const { ruleId, standing } of noted.get(keyText(subject.key))?.values() ?? []) {
    const rule = standing ? rules.byId.get(ruleId) : undefined;
    if (rule !== undefined) found.add(rule);
  }
  return found;
}

/** Whether an entity is in maintenance is asked only where a rule keeps silent then. */
async function readMaintenance(
  db: Db,
  tenantId: string,
  rules: TenantRules,
  all: readonly SeenFact[],
  noted: StoredMatches,
): Promise<void> {
  const asked = all.filter((each) =>
    [...rulesOf(rules, each, noted)].some(({ muteDuringMaintenance }) => muteDuringMaintenance),
  );
  await readEntitiesOf(
    db,
    tenantId,
    asked.map(({ row }) => row),
  );
}

/** What rules see of facts, one after the other: what is decided of one is noted before the next. */
function* sights(rules: TenantRules, all: readonly SeenFact[], noted: StoredMatches): Generator<Sight> {
  for (const each of all) {
    const { fact, subject, row, matches } = each;
    const chain = chainOf(fact, noted.get(keyText(subject.key))?.get(nilRule));
    for (const rule of rulesOf(rules, each, noted)) {
      if (chainReason(chain, rule.name) !== undefined) continue;
      const triggerNames = matches.get(rule) ?? [];
      yield {
        rule,
        subject,
        row,
        triggerNames: () => triggerNames,
        matches: triggerNames.length > 0,
        again: fact.news,
        inMaintenance: inMaintenance(row.entity),
        now: signatureOf(fact.after),
        told: () => ({ ...snapshotOf(fact.after, chain), root: fact.root }),
      };
    }
  }
}

/** The rules that made an occurrence, or that report it once more: none of them starts by it. */
function chainOf({ chain }: Fact, carried: StoredMatch | undefined): readonly string[] {
  return carried === undefined ? chain : [...new Set([...carried.chain, ...chain])];
}

/** Says why an occurrence that rules have made starts none, or not this one; undefined: it may. */
export function chainReason(chain: readonly string[], ruleName: string): Reason | undefined {
  if (chain.includes(ruleName)) return "ownEvent";
  return chain.length >= chainRulesMax ? "chainTooLong" : undefined;
}

/** What of an occurrence is reported again when it changes. */
export function signatureOf({ severity, status, acknowledged }: Occurrence): Signature {
  return { severity, status, acknowledged };
}

/** What is notified of an occurrence, beside its texts. `chain`: the rules that made it. */
export function snapshotOf(occurrence: Occurrence, chain: readonly string[]): DeliverySnapshot {
  const { lastSeenMs, instanceCount } = occurrence;
  return {
    ...signatureOf(occurrence),
    timeMs: Number(lastSeenMs),
    count: Number(instanceCount),
    ...(chain.length > 0 && { chain: [...chain] }),
  };
}
