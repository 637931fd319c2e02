import type { RulesMemory } from "../rules/rules-memory.ts";
import type { Wake } from "./batch.ts";
import type { ReadCurrentStates } from "./current-state.ts";
import type { SourceHooks } from "./sources/source.ts";

/** Names the cursors of rules in the feeds of tenants. */
export const rulesName = "rules";

/** What deciding needs. */
export interface Deciding {
  readonly memory: RulesMemory;
  readonly wake: Wake;
  readonly readCurrentStates: ReadCurrentStates;
  /** What sources do with reported events. */
  readonly onEvents: Required<SourceHooks>["onEvents"];
}
