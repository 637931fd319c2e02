import type { Db } from "../../db/connect.ts";
import type { Occurrence } from "../../events/lifecycle.ts";
import type { DeliverySnapshot } from "../delivery-snapshot.ts";
import { occurrenceSubject, type Subject } from "../matched-subject.ts";
import { chainRulesMax } from "../notification.ts";
import type { Signature } from "./decide.ts";
import {
  keyText,
  nilRule,
  note,
  readMatches,
  type StoredMatch,
  type StoredMatches,
  writeMatches,
} from "./match-store.ts";
import type { Matched } from "./matcher/find-matches.ts";
import { matchRow, readEntitiesOf } from "./matcher/rows.ts";
import type { LoadedRule, TenantRules } from "./matcher/tenant-rules.ts";
import { inMaintenance } from "./mute.ts";
import type { Sight, Stage } from "./passage.ts";
import type { RuleChange } from "./rule-changes.ts";

/** A change that is held against rules. */
export interface SeenChange extends Matched {
  readonly change: RuleChange;
  readonly subject: Subject;
}

export const seenChange = (change: RuleChange): SeenChange => ({
  change,
  subject: occurrenceSubject(change.event, change.after.number),
  row: matchRow(change.event, change.after),
  matches: new Map(),
});

/** Whether rules made the occurrence that it opens. */
export const isMade = ({ opened, chain }: RuleChange) => opened && chain.length > 0;

/** Reads what is noted of occurrences; nothing is of those that these changes open. */
export function readNoted(tx: Db, tenantId: string, all: readonly SeenChange[]): Promise<StoredMatches> {
  const opened = new Set(all.flatMap(({ change, subject }) => (change.opened ? [keyText(subject.key)] : [])));
  const keys = new Map(all.map(({ subject: { key } }) => [keyText(key), key]));
  return readMatches(
    tx,
    tenantId,
    [...keys].flatMap(([text, key]) => (opened.has(text) ? [] : [key])),
  );
}

/** Changes of occurrences with the rules that match them. */
export interface MatchedChanges {
  readonly rules: TenantRules;
  readonly all: readonly SeenChange[];
}

/** Shows rules the changes that match them, or did, under the locks of their events. */
export const match: Stage = async ({ tx, tenantId, noted, changes }) => {
  if (changes === undefined) return {};
  const { rules, all } = changes;
  const carriers = all.flatMap(({ change, subject }) => (isMade(change) ? [carrier(change, subject)] : []));
  if (carriers.length > 0) await writeMatches(tx, tenantId, carriers);
  for (const each of carriers) note(noted, each);
  await readMaintenance(tx, tenantId, rules, all, noted);
  return { sights: sights(rules, all, noted), silences: rules.silences };
};

/** The row that keeps which rules made an occurrence. */
function carrier({ chain }: RuleChange, subject: Subject): StoredMatch {
  const nothing = {
    told: undefined,
    value: undefined,
    valueMs: undefined,
    firstDueMs: undefined,
    notifiedMs: undefined,
  };
  const never = { standing: false, muted: false, matchedMs: 0, lastMs: 0 };
  return { ...nothing, ...never, subject, ruleId: nilRule, triggerNames: [], chain };
}

/** The rules that have a say about a subject: those that match it, and those that did. */
function rulesOf(rules: TenantRules, { matches, subject }: SeenChange, noted: StoredMatches) {
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
  all: readonly SeenChange[],
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

/** What rules see of changes, one after the other: what is decided of one is noted before the next. */
function* sights(rules: TenantRules, all: readonly SeenChange[], noted: StoredMatches): Generator<Sight> {
  for (const each of all) {
    const { change, subject, row, matches } = each;
    const chain = chainOf(change, noted.get(keyText(subject.key))?.get(nilRule));
    if (chain.length >= chainRulesMax) continue;
    for (const rule of rulesOf(rules, each, noted)) {
      if (chain.includes(rule.name)) continue;
      const triggerNames = matches.get(rule) ?? [];
      yield {
        rule,
        subject,
        triggerNames: () => triggerNames,
        matches: triggerNames.length > 0,
        again: change.news,
        inMaintenance: inMaintenance(row.entity),
        now: signatureOf(change.after),
        told: () => ({ ...toldOf(change.after, chain), root: change.root }),
      };
    }
  }
}

/** The rules that made an occurrence, or that report it once more: none of them starts by it. */
function chainOf({ chain }: RuleChange, carried: StoredMatch | undefined): readonly string[] {
  return carried === undefined ? chain : [...new Set([...carried.chain, ...chain])];
}

/** What of an occurrence is reported again when it changes. */
export function signatureOf({ severity, status, acknowledged }: Occurrence): Signature {
  return { severity, status, acknowledged };
}

/** What is notified of an occurrence, beside its texts. `chain`: the rules that made it. */
export function toldOf(occurrence: Occurrence, chain: readonly string[]): DeliverySnapshot {
  const { lastSeenMs, instanceCount } = occurrence;
  return {
    ...signatureOf(occurrence),
    timeMs: Number(lastSeenMs),
    count: Number(instanceCount),
    ...(chain.length > 0 && { chain: [...chain] }),
  };
}
