import type { Db } from "../../db/connect.ts";
import type { EntityRow } from "../../entities/messages.ts";
import type { StoredMatch } from "../rules/match-store.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import { keyText } from "../subject/subject.ts";
import type { Sight } from "./batch.ts";

/** The current state of a subject, as one rule sees it. */
export interface CurrentState extends Pick<Sight, "now"> {
  /** The triggers of the rule that match it, in the rule's order; none: it matches no more. */
  readonly triggerNames: readonly string[];
  readonly told: DeliverySnapshot;
}

/** Says how the current state of open matches is read. */
export interface StateOptions {
  readonly rules: TenantRules;
  readonly entities: ReadonlyMap<string, EntityRow>;
  readonly nowMs: number;
  /** True if rules or triggers have changed, so that matches are compared with them again. */
  readonly judges: boolean;
}

/** Reads the current state of open matches that are no occurrences, by `pairText`. Those left out are as their stored match says. */
export type ReadCurrentStates = (
  tx: Db,
  tenantId: string,
  matches: readonly StoredMatch[],
  options: StateOptions,
) => Promise<Map<string, CurrentState>>;

/** Names a rule and a subject together. */
export const pairText = ({ subject, ruleId }: { subject: { key: Buffer }; ruleId: string }) =>
  `${keyText(subject.key)}${ruleId}`;
