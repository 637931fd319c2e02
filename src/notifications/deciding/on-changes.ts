import type { Db } from "../../db/connect.ts";
import { afterCommit } from "../../db/transaction.ts";
import type { ChangeHooks } from "../../events/changes.ts";
import type { SourceHooks } from "../sources/source.ts";
import { comparisonsMax } from "./comparisons.ts";
import { isMade, readNoted, type SeenChange, seenChange } from "./match.ts";
import { effort } from "./matcher/effort.ts";
import { findMatches } from "./matcher/find-matches.ts";
import type { RulesMemory } from "./matcher/rules-memory.ts";
import type { TenantRules } from "./matcher/tenant-rules.ts";
import type { Wake } from "./passage.ts";
import { type RuleChange, ruleChanges } from "./rule-changes.ts";
import { passFrom } from "./stages.ts";
import type { LookAtStanding } from "./standing.ts";
import { hasUnmatched, storeUnmatched } from "./unmatched/unmatched-changes.ts";

/** What deciding needs. */
export interface Deciding {
  readonly memory: RulesMemory;
  readonly wake: Wake;
  readonly lookAtStanding: LookAtStanding;
  /** What sources do with reported events. */
  readonly onEvents: Required<SourceHooks>["onEvents"];
  /** Called after the commit when changes of a tenant wait to be matched. */
  readonly wakeMatching?: (tenantId: string) => void;
  /** How long matching may keep a transaction that stores changes, ms. */
  readonly storingMs: number;
}

/** More matches of rules and changes than this are decided on later, too. */
const storingMatchesMax = 2000;

/**
 * Holds changes of occurrences against the rules of their tenant, in the transaction that stores them, as far as that is
 * quick; what is left is stored with them, and matched after the commit.
 */
export function onChanges({
  memory,
  wake,
  onEvents,
  wakeMatching = () => {},
  storingMs,
}: Deciding): NonNullable<ChangeHooks["onChanges"]> {
  return async (tx, tenantId, changes, { rulesVersion, nowMs }) => {
    if (rulesVersion === 0n) return;
    const all = ruleChanges(changes).map(seenChange);
    const waiting = hasUnmatched(tx, tenantId);
    waiting.catch(() => undefined); // it is awaited below, if nothing fails before
    const rules = await memory.soon(tx, tenantId, rulesVersion, storingMs);
    let matched = 0;
    if (rules !== undefined) {
      // With no rule left a change still follows those that wait: by the time that they are matched there may be one again.
      if (rules.users.size === 0 && !all.some(({ change }) => isMade(change)) && !(await waiting)) return;
      const reported = all.flatMap(({ change }) => (change.reported ? [change.event] : []));
      onEvents(tx, tenantId, rules, reported, nowMs);
      const noted = readNoted(tx, tenantId, all);
      noted.catch(() => undefined); // likewise
      const found = rules.comparisons > comparisonsMax ? 0 : await find(tx, tenantId, rules, all, storingMs);
      // After those that wait, even what would be quick: an occurrence's changes are matched in their order.
      matched = (await waiting) ? 0 : found;
      const some = all.slice(0, matched);
      await passFrom("match", { tx, tenantId, nowMs, wake, noted: await noted, changes: { rules, all: some } });
    }
    const left = all.slice(matched).map(({ change }) => change);
    if (left.length > 0) await leave(tx, tenantId, left, nowMs, wakeMatching);
  };
}

const find = (tx: Db, tenantId: string, rules: TenantRules, all: readonly SeenChange[], storingMs: number) =>
  findMatches(tx, tenantId, rules, all, effort(tenantId, storingMs), storingMatchesMax);

async function leave(
  tx: Db,
  tenantId: string,
  changes: readonly RuleChange[],
  nowMs: number,
  wakeMatching: (tenantId: string) => void,
) {
  await storeUnmatched(tx, tenantId, changes, nowMs);
  afterCommit(tx, () => wakeMatching(tenantId));
}

/** Reports that only keep occurrences open are data, too, that triggers may wait for. */
export function onKeptOpen({ memory, onEvents, storingMs }: Deciding): NonNullable<ChangeHooks["onKeptOpen"]> {
  return async (tx, tenantId, events, { rulesVersion, nowMs }) => {
    if (rulesVersion === 0n) return;
    const rules = await memory.soon(tx, tenantId, rulesVersion, storingMs);
    if (rules !== undefined) onEvents(tx, tenantId, rules, events, nowMs);
  };
}
