import { byteaArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import type { Pace } from "../../event-loop.ts";
import type { OpenAlert } from "../../events/open-alerts.ts";
import { keyText } from "../deciding/match-store.ts";
import type { TenantRules } from "../deciding/matcher/tenant-rules.ts";
import { occurrenceSubject } from "../matched-subject.ts";
import { hasScope } from "./silences-in-force.ts";

/** How notifications about an open occurrence stand. */
export interface AlertState {
  /** The silences that hold all of them: those without a scope. */
  readonly silencedBy: readonly string[];
  /** The destinations of the rules that match it. */
  readonly receivers: readonly string[];
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
    const receivers = await matchingDestinations(db, tenantId, keys, byId);
    const any = silences.any(nowMs);
    const states: AlertState[] = [];
    for (const [i, { labels }] of page.entries()) {
      const found = any ? await silences.matching(labels, nowMs, pace) : [];
      const silencedBy = found.filter((silence) => !hasScope(silence)).map(({ id }) => id);
      states.push({ silencedBy, receivers: receivers.get(keyText(keys[i] as Buffer)) ?? [] });
    }
    return states;
  };
}

/** By the primary key. */
async function matchingDestinations(
  db: Db,
  tenantId: string,
  keys: readonly Buffer[],
  byId: TenantRules["byId"],
): Promise<Map<string, string[]>> {
  if (byId.size === 0 || keys.length === 0) return new Map();
  const rows = await db<{ subject: Buffer; ruleId: string }[]>`
    select subject, rule_id as "ruleId" from rule_matches
    where tenant_id = ${tenantId} and subject = any(${byteaArray(keys)}::bytea[]) and standing`;
  const found = Map.groupBy(rows, ({ subject }) => keyText(subject));
  return new Map(
    [...found].map(([key, matches]) => [
      key,
      [...new Set(matches.flatMap(({ ruleId }) => byId.get(ruleId)?.destinationNames ?? []))].sort(),
    ]),
  );
}
