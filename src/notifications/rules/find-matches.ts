import type { FoldedRow } from "../../clause/folded-row.ts";
import type { Db } from "../../db/connect.ts";
import { type Pace, paced } from "../../event-loop.ts";
import { CLOSED } from "../../events/lifecycle.ts";
import { ownTrigger } from "./own-trigger.ts";
import { type MatchRow, readCounts, readEntitiesOf } from "./rows.ts";
import type { Matches, TenantRules } from "./tenant-rules.ts";
import { type EventTrigger, triggerReason } from "./trigger-index.ts";

/** A row, and the rules that match it once it was looked at. */
export interface Matched {
  readonly row: MatchRow;
  matches: Matches;
}

/** A pace is asked for after this many triggers: the clock is dearer than a comparison. */
const between = 16;

/**
 * Finds the rules that match rows, in slices, reading of the database only what their triggers look at. Looks at the rows in their
 * order: at one at least, and no further after `untilMs`, or with more than `matchesMax` matches of rules and rows. Returns at how many
 * it has looked.
 */
export async function findMatches(
  db: Db,
  tenantId: string,
  rules: TenantRules,
  all: readonly Matched[],
  { untilMs = Infinity, matchesMax = Infinity }: { untilMs?: number; matchesMax?: number } = {},
): Promise<number> {
  const { events } = rules;
  const rows = all.map(({ row }) => row);
  const pace = paced(undefined, tenantId);
  const isLate = (i: number) => i > 0 && performance.now() > untilMs;
  if (events.readsEntity) await readEntitiesOf(db, tenantId, rows);
  if (events.readsCount) await readCounts(db, tenantId, rows);
  const candidates: Candidate[] = [];
  for (const [i, row] of rows.entries()) {
    const turn = pace();
    if (turn !== undefined) await turn;
    if (isLate(i)) break;
    const folded = events.folded(row);
    candidates.push({ row, folded, triggers: events.candidates(folded) });
  }
  const rowsOf = (needed: (trigger: EventTrigger) => boolean) =>
    candidates.flatMap(({ row, triggers }) => (some(triggers, needed) ? [row] : []));
  await readEntitiesOf(
    db,
    tenantId,
    rowsOf(({ readsEntity }) => readsEntity),
  );
  const counting = events.readsCount ? [] : rowsOf(({ readsCount }) => readsCount);
  await readCounts(db, tenantId, counting);
  let count = 0;
  for (const [i, candidate] of candidates.entries()) {
    if (isLate(i)) return i;
    const matches = rulesOf(rules, await matchingOf(candidate, pace));
    count += matches.size;
    if (count > matchesMax && i > 0) return i;
    (all[i] as Matched).matches = matches;
  }
  return candidates.length;
}

/** A row with the triggers that may match it. */
interface Candidate {
  row: MatchRow;
  folded: FoldedRow;
  triggers: Set<EventTrigger>;
}

/** Returns the names of the triggers that match. */
async function matchingOf(candidate: Candidate, pace: Pace): Promise<Set<string>> {
  const { row, folded, triggers } = candidate;
  const closed = row.status === CLOSED;
  const matching = new Set<string>();
  let count = 0;
  for (const trigger of triggers) {
    if (count++ % between === 0) {
      const turn = pace();
      if (turn !== undefined) await turn;
    }
    const reason = triggerReason(trigger, folded, closed, pace);
    if ((reason instanceof Promise ? await reason : reason) === undefined) matching.add(trigger.name);
  }
  return matching;
}

function some<T>(of: Iterable<T>, test: (each: T) => boolean): boolean {
  for (const each of of) if (test(each)) return true;
  return false;
}

function rulesOf({ users }: TenantRules, matching: ReadonlySet<string>): Matches {
  const found: Matches = new Map();
  for (const name of matching) {
    for (const rule of users.get(name) ?? []) {
      if (found.has(rule)) continue;
      found.set(
        rule,
        rule.triggerNames.flatMap((each) => (matching.has(each) ? [each === ownTrigger(rule.name) ? "" : each] : [])),
      );
    }
  }
  return found;
}
