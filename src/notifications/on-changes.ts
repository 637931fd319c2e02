import type { Db } from "../db/connect.ts";
import { afterCommit } from "../db/transaction.ts";
import type { Change, ChangeHooks } from "../events/changes.ts";
import { CLOSED, type Occurrence } from "../events/lifecycle.ts";
import type { Signature } from "./decide.ts";
import { keyText, nilRule, note, readMatches, type StoredMatch, type StoredMatches, writeMatches } from "./matches.ts";
import { type MatchRow, matchRow, readCounts, readEntitiesOf } from "./matching/rows.ts";
import {
  type LoadedRule,
  type Matches,
  type RulesMemory,
  rulesThatMatch,
  type TenantRules,
} from "./matching/tenant-rules.ts";
import type { EventTrigger } from "./matching/trigger-index.ts";
import { chainRulesMax } from "./notification.ts";
import type { Wake } from "./outbox.ts";
import { type Sight, settle } from "./settle.ts";
import type { LastTimes } from "./sources/last-times.ts";
import { occurrenceSubject, type Subject } from "./subjects.ts";
import type { Told } from "./told.ts";

/** What deciding needs. */
export interface Deciding {
  readonly memory: RulesMemory;
  readonly wake: Wake;
  /** Absent where nothing is stored that triggers wait for. */
  readonly last?: LastTimes;
}

/** A change as rules see it. */
interface Seen {
  readonly change: Change;
  readonly subject: Subject;
  readonly row: MatchRow;
  /** The rules that match what it has become. */
  matches: Matches;
}

/** Holds changes of occurrences against the rules of their tenant, in the transaction that stores them. */
export function onChanges({ memory, wake, last }: Deciding): NonNullable<ChangeHooks["onChanges"]> {
  return async (tx, tenantId, changes, { rulesVersion, nowMs }) => {
    if (rulesVersion === 0n) return;
    const rules = await memory.at(tx, tenantId, rulesVersion);
    const made = changes.filter(({ before, instance }) => before === undefined && instance?.chain !== undefined);
    if (rules.users.size === 0 && made.length === 0) return;
    if (last !== undefined && rules.watches.size > 0) {
      afterCommit(tx, () => {
        for (const { event, instance } of changes) {
          if (instance !== undefined) last.note(tenantId, rules, `event ${event.name}`, event.entityId, nowMs);
        }
      });
    }
    const all = changes.map((change) => seen(change));
    const reading = readMatches(tx, tenantId, keysThatMayBeNoted(all));
    reading.catch(() => undefined); // it is awaited below, if nothing fails before
    await findMatches(tx, tenantId, rules, all);
    const matches = await reading;
    const carriers = all.flatMap(({ change, subject }) => (made.includes(change) ? [carrier(change, subject)] : []));
    if (carriers.length > 0) await writeMatches(tx, tenantId, carriers);
    for (const each of carriers) note(matches, each);
    await readMaintenance(tx, tenantId, rules, all, matches);
    await settle(tx, tenantId, sights(rules, all, matches), matches, nowMs, wake);
  };
}

const seen = (change: Change): Seen => ({
  change,
  subject: occurrenceSubject(change.event, change.after.number),
  row: matchRow(change.event, change.after),
  matches: new Map(),
});

/** Something may be noted of those that were not opened by these changes. */
function keysThatMayBeNoted(all: readonly Seen[]): Buffer[] {
  const opened = new Set(
    all.flatMap(({ change, subject }) => (change.before === undefined ? [keyText(subject.key)] : [])),
  );
  const keys = new Map(all.map(({ subject: { key } }) => [keyText(key), key]));
  return [...keys].flatMap(([text, key]) => (opened.has(text) ? [] : [key]));
}

/** Finds the rules that match, reading of the database only what their triggers look at. */
export async function findMatches(
  db: Db,
  tenantId: string,
  rules: TenantRules,
  all: readonly Pick<Seen, "row" | "matches">[],
): Promise<void> {
  const { events } = rules;
  const rows = all.map(({ row }) => row);
  if (events.readsEntity) await readEntitiesOf(db, tenantId, rows);
  if (events.readsCount) await readCounts(db, tenantId, rows);
  const candidates = rows.map((row) => events.candidates(row));
  const rowsOf = (needed: (trigger: EventTrigger) => boolean) =>
    rows.filter((_, i) => [...(candidates[i] as Set<EventTrigger>)].some(needed));
  await readEntitiesOf(
    db,
    tenantId,
    rowsOf(({ readsEntity }) => readsEntity),
  );
  if (!events.readsCount)
    await readCounts(
      db,
      tenantId,
      rowsOf(({ readsCount }) => readsCount),
    );
  for (const [i, each] of all.entries()) {
    each.matches = rulesThatMatch(rules, each.row, each.row.status === CLOSED, candidates[i] as Set<EventTrigger>);
  }
}

/** The row that keeps which rules made an occurrence. */
function carrier({ instance }: Change, subject: Subject): StoredMatch {
  const nothing = {
    told: undefined,
    value: undefined,
    valueMs: undefined,
    firstDueMs: undefined,
    notifiedMs: undefined,
  };
  const never = { standing: false, muted: false, matchedMs: 0, lastMs: 0 };
  return { ...nothing, ...never, subject, ruleId: nilRule, triggerNames: [], chain: instance?.chain ?? [] };
}

/** The rules that have a say about a subject: those that match it, and those that did. */
function rulesOf(rules: TenantRules, { matches, subject }: Pick<Seen, "matches" | "subject">, noted: StoredMatches) {
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
  all: readonly Seen[],
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
function* sights(rules: TenantRules, all: readonly Seen[], noted: StoredMatches): Generator<Sight> {
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
        triggerNames,
        matches: triggerNames.length > 0,
        again: isNews(change),
        inMaintenance: (row.entity?.window_production_state ?? null) !== null,
        now: signatureOf(change.after),
        told: toldOf(change.after, chain),
      };
    }
  }
}

/** The rules that made an occurrence, or that report it once more: none of them starts by it. */
function chainOf({ instance }: Change, carried: StoredMatch | undefined): readonly string[] {
  const reported = instance?.chain ?? [];
  if (carried === undefined) return reported;
  return [...new Set([...carried.chain, ...reported])];
}

/** Whether it was reported once more; late reports are no news. */
const isNews = ({ before, instance }: Change) =>
  instance !== undefined && (before === undefined || instance.timeMs >= before.lastSeenMs);

/** What of an occurrence is told again when it changes. */
export function signatureOf({ severity, status, acknowledged }: Occurrence): Signature {
  return { severity, status, acknowledged };
}

/** What is told of an occurrence, beside its texts. `chain`: the rules that made it. */
export function toldOf(occurrence: Occurrence, chain: readonly string[]): Told {
  const { lastSeenMs, instanceCount } = occurrence;
  return {
    ...signatureOf(occurrence),
    timeMs: Number(lastSeenMs),
    count: Number(instanceCount),
    ...(chain.length > 0 && { chain: [...chain] }),
  };
}
