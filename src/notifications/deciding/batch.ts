import type { Db } from "../../db/connect.ts";
import type { Fact } from "../../events/facts.ts";
import type { NewJob } from "../../jobs/queue.ts";
import type { Signature, StoredMatch, StoredMatches } from "../rules/match-store.ts";
import type { MatchRow } from "../rules/rows.ts";
import type { LoadedRule, TenantRules } from "../rules/tenant-rules.ts";
import type { Silences } from "../silences/silences-in-force.ts";
import type { Holds, Notice, Over } from "../subject/notice.ts";
import type { DeliverySnapshot } from "../subject/snapshot.ts";
import type { Subject } from "../subject/subject.ts";
import type { Decision, SubjectView } from "./decide.ts";

/** Informs the process that deliveries of a tenant are stored, and when the first is due. */
export type Wake = (tenantId: string, dueMs: number) => void;

/** Facts of occurrences, and the rules against which they are held. */
export interface Changes {
  readonly rules: TenantRules;
  readonly facts: readonly Fact[];
}

/** A subject as a rule sees it. */
export interface Sight extends SubjectView {
  readonly rule: LoadedRule;
  readonly subject: Subject;
  /** The occurrence as a change has left it, whose labels may be others by now. */
  readonly row?: MatchRow;
  /** True if the rule groups no more: the match leaves its group. */
  readonly leavesGroup?: boolean;
  /** Returns the triggers of the rule that match it, in the rule's order; none: it matches no more. Called only if anything follows. */
  triggerNames(): readonly string[];
  /** Returns the snapshot of deliveries. Called only if anything follows. */
  told(): DeliverySnapshot;
}

/** A match that stood before a change of its occurrence, and goes on. */
export interface Ongoing {
  readonly rule: LoadedRule;
  readonly subject: Subject;
  readonly row: MatchRow;
}

/** A sight from which something follows. */
export interface Decided extends Pick<Decision, "due" | "over"> {
  readonly rule: LoadedRule;
  /** The row to be stored. */
  readonly match: StoredMatch;
  /** What was reported before; undefined for what is no occurrence, and for a new match. */
  readonly before: Signature | undefined;
  readonly told: DeliverySnapshot;
  /** From `mute`, by destination: what holds its notification back. */
  readonly holds?: Holds;
}

/** Holds what passes through the stages in one transaction, under the locks of its subjects. */
export interface Batch {
  readonly tx: Db;
  readonly tenantId: string;
  readonly nowMs: number;
  readonly wake: Wake;
  /** The stored matches of the subjects, read under their locks; each decision replaces its own. */
  readonly noted: StoredMatches;
  /** The silences of the tenant, where what enters may be held by one. */
  readonly silences: Silences;
  /** What enters at `match`. */
  readonly changes: Changes | undefined;
  /** From `match`: how many facts of the changes it took. */
  readonly taken: number;
  /** From `match`, or from the source that enters at `decide`; in their order. */
  readonly sights: Iterable<Sight> | AsyncIterable<Sight>;
  /** From `decide`, in their order; of a rule and subject the last one is stored. */
  readonly decided: readonly Decided[];
  /** From `decide`, each match once. */
  readonly ongoing: readonly Ongoing[];
  /** From `group`. */
  readonly notices: readonly Notice[];
  /** From `group` and `relabel`: of what less is needed of what waits, or what nothing may hold any more. */
  readonly over: readonly Over[];
  /** Jobs that the stages leave, by kind. */
  readonly jobs: readonly { kind: string; jobs: readonly NewJob[] }[];
  /** From `enqueue`: when the first delivery is due; Infinity: none is. */
  readonly dueMs: number;
}

/** One stage: returns what it adds to the batch, or replaces. */
export type Stage = (batch: Batch) => Partial<Batch> | Promise<Partial<Batch>>;

/** Rows of one statement, and sights after which others get their turn: what is more is written in several. */
export const portion = 1000;
