import type { Db } from "../../../db/connect.ts";
import type { Pace } from "../../../event-loop.ts";
import type { OpenAlert } from "../../../events/open-alerts.ts";
import { groupLabels } from "../../rules/grouping.ts";
import { matchingRules } from "../../rules/match-store.ts";
import type { TenantRules } from "../../rules/tenant-rules.ts";
import { hasScope } from "../../silences/silences-in-force.ts";
import { keyText, occurrenceSubject } from "../../subject/subject.ts";

/** How notifications about an open occurrence stand. */
export interface AlertState {
  /** The silences that hold all of them: those without a scope. */
  readonly silencedBy: readonly string[];
  /** The destinations of the rules that match it. */
  readonly receivers: readonly string[];
  /** The groups that it is a member of, at each destination of a rule that groups. */
  readonly groups: readonly AlertGroup[];
}

/** A group, as one destination hears of it. */
export interface AlertGroup {
  readonly labels: Readonly<Record<string, string>>;
  readonly receiver: string;
}

/** Tells how notifications about open occurrences stand, a page at a time, in their order. */
export type AlertStates = (page: readonly OpenAlert[], nowMs: number, pace: Pace) => Promise<AlertState[]>;

/** Makes it for a tenant's rules and silences as they are now. */
export function alertStates(
  db: Db,
  tenantId: string,
  { silences, byId }: Pick<TenantRules, "silences" | "byId">,
): AlertStates {
  return async (page, nowMs, pace) => {
    const keys = page.map(({ event, occurrence }) => occurrenceSubject(event, occurrence.number).key);
    const matching = byId.size === 0 ? new Map<string, string[]>() : await matchingRules(db, tenantId, keys);
    const any = silences.any(nowMs);
    const states: AlertState[] = [];
    for (const [i, { labels }] of page.entries()) {
      const found = any ? await silences.matching(labels, nowMs, pace) : [];
      const silencedBy = found.filter((silence) => !hasScope(silence)).map(({ id }) => id);
      const rules = (matching.get(keyText(keys[i] as Buffer)) ?? []).flatMap((id) => byId.get(id) ?? []);
      const receivers = [...new Set(rules.flatMap(({ destinationNames }) => destinationNames))].sort();
      const groups = rules.flatMap(({ grouping, destinationNames }) =>
        grouping === null
          ? []
          : destinationNames.map((receiver) => ({ labels: groupLabels(grouping, labels), receiver })),
      );
      states.push({ silencedBy, receivers, groups });
    }
    return states;
  };
}
