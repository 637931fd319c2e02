import type { Sql } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { readMatches, type StoredMatch, type StoredMatches } from "./matches.ts";
import type { Occasion } from "./notification.ts";
import type { Deciding } from "./on-changes.ts";
import { pairText, reconsider } from "./reconsider.ts";
import type { Subject } from "./subjects.ts";
import type { Told } from "./told.ts";

/** A delivery that is about to be tried. */
export interface Waiting {
  readonly id: string;
  readonly ruleId: string;
  readonly subject: Subject;
  readonly occasion: Occasion;
  readonly createdMs: number;
  /** When it is due; for its first try, when its delay ends. */
  readonly dueMs: number;
  readonly tries: number;
  readonly told: Told;
}

/** Whether a delivery is still needed; with what there is to tell now, where that was to be looked at again. */
export type Verdict = { readonly send: true; readonly told?: Told } | { readonly send: false; readonly reason: string };

const no = (reason: string): Verdict => ({ send: false, reason });

/** The first notification after a delay, which is sent only if the trigger still matches. */
const delayed = ({ occasion, tries, dueMs, createdMs }: Waiting) =>
  occasion === "first" && tries === 0 && dueMs > createdMs;

const ofWindow = ({ told }: Waiting) => told.window !== undefined;

/**
 * Tells which deliveries, whose time has come, are still needed, by their ids. Those whose delay has ended are held against
 * the occurrence and the entity as they are now, in a transaction of its own, which stores what follows from that.
 */
export async function stillMatching(
  sql: Sql,
  tenantId: string,
  deliveries: readonly Waiting[],
  deciding: Deciding,
  nowMs: number,
): Promise<Map<string, Verdict>> {
  const rules = await deciding.memory.now(sql, tenantId);
  const keys = deliveries.filter((each) => !ofWindow(each)).map(({ subject }) => subject.key);
  const before = await readMatches(sql, tenantId, keys);
  const late = deliveries.filter((each) => delayed(each) && matchOf(before, each)?.firstDueMs !== undefined);
  const looked = late.length > 0 ? await lookAgain(sql, tenantId, late, deciding, nowMs) : undefined;
  const noted = looked === undefined ? before : await readMatches(sql, tenantId, keys);
  return new Map(
    deliveries.map((each) => {
      const match = matchOf(noted, each);
      if (!rules.byId.has(each.ruleId)) return [each.id, no("the rule is disabled, or is there no more")];
      if (ofWindow(each) || each.occasion === "clear") return [each.id, { send: true }];
      if (match === undefined || !match.standing || each.createdMs < match.matchedMs) {
        return [each.id, no("the condition is over")];
      }
      if (match.muted && each.occasion === "first") return [each.id, no("the entity is in maintenance")];
      const told = late.includes(each) ? looked?.(match).told : undefined;
      return [each.id, { send: true, ...(told && { told }) }];
    }),
  );
}

const matchOf = (noted: StoredMatches, { subject, ruleId }: Waiting) =>
  noted.get(subject.key.toString("latin1"))?.get(ruleId);

async function lookAgain(sql: Sql, tenantId: string, late: readonly Waiting[], deciding: Deciding, nowMs: number) {
  const subjects = new Map(late.map(({ subject }) => [subject.key.toString("latin1"), subject]));
  const { look } = await transaction(sql, (tx) =>
    reconsider(tx, tenantId, [...subjects.values()], deciding, { nowMs, delayEnds: new Set(late.map(pairText)) }),
  );
  return (match: StoredMatch) => look(match);
}
