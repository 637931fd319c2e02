import { type LabelView, labelOf } from "../../events/labels.ts";

/** How a rule makes one message of many matches. */
export interface Grouping {
  /** Names of labels; `...` alone: all. */
  readonly by: readonly string[];
  readonly waitSec: number;
  readonly intervalSec: number;
}

/** Stands for all labels. */
export const allLabels = "...";

/** Returns the labels that the members of a group share: those of `by` that they have. */
export function groupLabels({ by }: Pick<Grouping, "by">, labels: LabelView): Record<string, string> {
  const names = by.includes(allLabels) ? Object.keys(labels) : by;
  const shared = names.map((name): [string, string] => [name, labelOf(labels, name)]);
  return Object.fromEntries(shared.filter(([, value]) => value !== "").sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Tells whether what was grouped by one is in the same groups by the other. */
export const sameGroups = (a: Pick<Grouping, "by">, b: Pick<Grouping, "by">) =>
  JSON.stringify([...a.by].sort()) === JSON.stringify([...b.by].sort());

/** How many groups of a rule are open at once; those beyond are one. */
export const groupsMax = 1000;
