import { randomUUIDv7 } from "node:crypto";
import type { Change, EventIdentity } from "../../events/changes.ts";
import { isExpired, type Occurrence } from "../../events/lifecycle.ts";

/** A change of an occurrence, as far as rules look at it. */
export interface RuleChange {
  readonly event: EventIdentity;
  readonly after: Occurrence;
  /** Whether it opened the occurrence. */
  readonly opened: boolean;
  /** Whether a report caused it. */
  readonly reported: boolean;
  /** Whether it was reported once more; late reports are no news. */
  readonly news: boolean;
  /** The names of the rules that made the report, the latest last; none: it came from outside. */
  readonly chain: readonly string[];
  /** What set off all that rules make of it. */
  readonly root: string;
}

/** Names what sets off notifications: a report from outside, a call, a crossing. They sort by time. */
export const newRoot = (): string => randomUUIDv7();

/** What rules see of changes. Those of one management call have one root. */
export function ruleChanges(changes: readonly Change[]): RuleChange[] {
  const ofCall = newRoot();
  return changes.map(({ event, before, after, instance }) => ({
    event,
    after,
    opened: before === undefined,
    reported: instance !== undefined,
    news: instance !== undefined && (before === undefined || instance.timeMs >= before.lastSeenMs),
    chain: instance?.chain ?? [],
    root: instance?.root ?? (isOfCall({ before, after, instance }) ? ofCall : newRoot()),
  }));
}

/** Set by management, not by ageing, which says so in the metadata, nor by expiry. */
const isOfCall = ({ before, after, instance }: Pick<Change, "before" | "after" | "instance">) =>
  instance === undefined && before?.metadata === after.metadata && !isExpired(after);
