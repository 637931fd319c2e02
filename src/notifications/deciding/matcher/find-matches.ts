import type { FoldedRow } from "../../../clause/folded-row.ts";
import type { Db } from "../../../db/connect.ts";
import { CLOSED } from "../../../events/lifecycle.ts";
import type { Effort } from "./effort.ts";
import { type MatchRow, readCounts, readEntitiesOf } from "./rows.ts";
import { type Matches, ownTrigger, type TenantRules } from "./tenant-rules.ts";
import type { EventTrigger } from "./trigger-index.ts";

/** A row, and the rules that match it once it was looked at. */
export interface Matched {
  readonly row: MatchRow;
  matches: Matches;
}

/** The clock is dearer than a comparison: the effort is asked for after this many triggers. */
const between = 16;

/**
 * Finds the rules that match rows, reading of the database only what their triggers look at. Looks at the rows in their order,
 * until the effort ends or there are more than `matchesMax` matches of rules and rows; returns at how many it has looked.
 */
export async function findMatches(
  db: Db,
  tenantId: string,
  rules: TenantRules,
  all: readonly Matched[],
  effort: Effort,
  matchesMax = Infinity,
): Promise<number> {
  const { events } = rules;
  const rows = all.map(({ row }) => row);
  await effort.outside(async () => {
    if (events.readsEntity) await readEntitiesOf(db, tenantId, rows);
    if (events.readsCount) await readCounts(db, tenantId, rows);
  });
  const candidates = await findCandidates(rules, rows, effort);
  const rowsOf = (needed: (trigger: EventTrigger) => boolean) =>
    candidates.flatMap(({ row, triggers }) => (some(triggers, needed) ? [row] : []));
  await effort.outside(async () => {
    await readEntitiesOf(
      db,
      tenantId,
      rowsOf(({ readsEntity }) => readsEntity),
    );
    if (events.readsCount) return;
    await readCounts(
      db,
      tenantId,
      rowsOf(({ readsCount }) => readsCount),
    );
  });
  let count = 0;
  for (const [i, candidate] of candidates.entries()) {
    const goesOn = effort.goOn();
    if (goesOn !== true && !(await goesOn)) return i;
    const few = candidate.triggers.size <= between;
    const matching = few ? matchingOf(candidate, candidate.triggers) : await matchingOfMany(candidate, effort);
    if (matching === undefined) return i;
    const matches = rulesOf(rules, matching);
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

/** Those of the first rows, as far as the effort goes. */
async function findCandidates({ events }: TenantRules, rows: readonly MatchRow[], effort: Effort) {
  const found: Candidate[] = [];
  for (const row of rows) {
    const goesOn = effort.goOn();
    if (goesOn !== true && !(await goesOn)) break;
    const folded = events.folded(row);
    found.push({ row, folded, triggers: events.candidates(folded) });
  }
  return found;
}

/** The names of the triggers that match. A closed occurrence matches only those that look at the status. */
function matchingOf(
  { row, folded }: Candidate,
  triggers: Iterable<EventTrigger>,
  matching = new Set<string>(),
): Set<string> {
  const closed = row.status === CLOSED;
  for (const trigger of triggers) {
    if ((trigger.namesStatus || !closed) && trigger.matches(folded)) matching.add(trigger.name);
  }
  return matching;
}

/** The same; undefined: the effort has ended. */
async function matchingOfMany(candidate: Candidate, effort: Effort): Promise<Set<string> | undefined> {
  const matching = new Set<string>();
  const triggers = [...candidate.triggers];
  for (let from = 0; from < triggers.length; from += between) {
    const goesOn = effort.goOn();
    if (goesOn !== true && !(await goesOn)) return undefined;
    matchingOf(candidate, triggers.slice(from, from + between), matching);
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
