import type { Pace } from "../event-loop.ts";
import { askedOf, type Checked } from "./checked.ts";
import type { Values } from "./field.ts";
import { predicateOf } from "./to-predicate.ts";

/** Whether a clause matches a row: at once for a small clause, in slices for a large one. */
export type RowPredicate<Row> = (row: Row, pace: Pace) => boolean | Promise<boolean>;

/** Clauses of no more parts are evaluated in one go: an expression takes up to 20 ms over a text of 64 KiB. */
const partsMax = 4;

/** The matcher of a clause that has been checked. */
export function matcherOf<Row>(clause: Checked, values: Values<Row>): RowPredicate<Row> {
  if (askedOf(clause).length <= partsMax) return predicateOf(clause, values);
  switch (clause.kind) {
    case "and":
    case "or": {
      const parts = clause.parts.map((part) => matcherOf(part, values));
      const decided = clause.kind === "or";
      return async (row, pace) => {
        for (const matches of parts) {
          await pace();
          if ((await matches(row, pace)) === decided) return decided;
        }
        return !decided;
      };
    }
    case "not": {
      const matches = matcherOf(clause.part, values);
      return async (row, pace) => !(await matches(row, pace));
    }
    default:
      return predicateOf(clause, values);
  }
}
