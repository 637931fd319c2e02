import type { Db } from "../../db/connect.ts";
import type { EntityRow } from "../../entities/messages.ts";
import type { StoredMatch } from "../rules/match-store.ts";
import type { TenantRules } from "../rules/tenant-rules.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import { keyText } from "../subject/subject.ts";
import type { Sight } from "./batch.ts";

/** How a rule sees a subject now. */
export interface Look extends Pick<Sight, "now"> {
  /** The triggers of the rule that match it, in the rule's order; none: it matches no more. */
  readonly triggerNames: readonly string[];
  readonly told: DeliverySnapshot;
}

/** What looks at standing matches need. */
export interface Looking {
  readonly rules: TenantRules;
  readonly entities: ReadonlyMap<string, EntityRow>;
  readonly nowMs: number;
  /** Whether the rules or triggers were changed: matches are held against them again. */
  readonly judges: boolean;
}

/** How rules see what is no occurrence and stands, by `pairText`; what is not among them stands as it is noted. */
export type LookAtStanding = (
  tx: Db,
  tenantId: string,
  matches: readonly StoredMatch[],
  looking: Looking,
) => Promise<Map<string, Look>>;

/** A rule and a subject, as one text. */
export const pairText = ({ subject, ruleId }: { subject: { key: Buffer }; ruleId: string }) =>
  `${keyText(subject.key)}${ruleId}`;
