import { type ExpressionCount, newExpressionCount } from "./expression.ts";
import type { Condition } from "./field.ts";
import type { LabelMatcher } from "./label-matcher.ts";

/**
 * A clause that keeps all rules of its language: what both languages, of queries and of triggers, are read as, and what is
 * compiled. The opposite of an operation is a `not` around it.
 */
export type Checked =
  | { kind: "and" | "or"; parts: readonly Checked[] }
  | { kind: "not"; part: Checked }
  | Asked
  | AskedLabel
  | { kind: "ids"; ids: readonly string[] };

/** What is asked of one field. */
export interface Asked {
  kind: "field";
  field: string;
  /** The place of the field's name in the request, for errors. */
  path: string;
  /** `exists`: that the field has a value. */
  asks: Condition | "exists";
}

/** What is asked of one label, whose case counts. */
export interface AskedLabel {
  kind: "label";
  matcher: LabelMatcher;
  /** The place of the matcher in the request. */
  path: string;
}

export const not = (part: Checked): Checked => ({ kind: "not", part });

/** What a clause asks of fields, from first to last. */
export function askedOf(clause: Checked): Asked[] {
  switch (clause.kind) {
    case "and":
    case "or":
      return clause.parts.flatMap(askedOf);
    case "not":
      return askedOf(clause.part);
    case "field":
      return [clause];
    case "label":
    case "ids":
      return [];
  }
}

/** What a clause asks of labels, from first to last. */
export function askedLabelsOf(clause: Checked): AskedLabel[] {
  switch (clause.kind) {
    case "and":
    case "or":
      return clause.parts.flatMap(askedLabelsOf);
    case "not":
      return askedLabelsOf(clause.part);
    case "label":
      return [clause];
    default:
      return [];
  }
}

/** The labels' matchers that must hold together: those of the whole clause first, then those of each part of an `or` or `not`. */
export function conjunctionsOf(clause: Checked): LabelMatcher[][] {
  const groups: LabelMatcher[][] = [];
  const startGroup = (part: Checked) => gather(part, groups[groups.push([]) - 1] as LabelMatcher[]);
  function gather(part: Checked, group: LabelMatcher[]): void {
    if (part.kind === "label") group.push(part.matcher);
    else if (part.kind === "and") for (const each of part.parts) gather(each, group);
    else if (part.kind === "or") part.parts.forEach(startGroup);
    else if (part.kind === "not") startGroup(part.part);
  }
  startGroup(clause);
  return groups;
}

const depthMax = 32;
const nodesMax = 1000;

/** Counts the clauses and expressions of one request. */
export interface Counting {
  nodes: number;
  readonly expressions: ExpressionCount;
}

export const newCounting = (expressions = newExpressionCount()): Counting => ({ nodes: 0, expressions });

/** What the bounds say of one more clause at this depth, which begins with 1; undefined: it may be. */
export function beyondBounds(counting: Counting, depth: number): string | undefined {
  if (depth > depthMax) return `must not lie deeper than ${depthMax} clauses`;
  counting.nodes += 1;
  return counting.nodes > nodesMax ? `must not be more than the ${nodesMax}th clause` : undefined;
}
