import type { Fragment } from "postgres";
import { Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import type { Condition, Indexed } from "../clause/field.ts";
import { fold } from "../clause/fold.ts";
import type { Db } from "../db/connect.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { haveTerms, nameTerms } from "./terms.ts";

/** What must occur in a text that satisfies the condition, in lower case; undefined when nothing is known. */
function occurring(condition: Condition): string[] | undefined {
  const [only] = condition;
  switch (only?.operation) {
    case Operation.OP_CONTAINS:
    case Operation.OP_END_WITH:
      return [fold(only.value)];
    case Operation.OP_TEXT:
      return [...only.value];
  }
  return undefined;
}

// An index over trigrams is read whole for a text that has none.
const hasTrigram = (text: string) => /[\p{L}\p{N}]{3}/u.test(text);

/**
 * A pattern for LIKE that every text matches in which `part` occurs. Between words it takes any text: the trigrams of where
 * words begin and end are common to many texts, and take longest to read. Short words have no others.
 */
function patternOf(part: string): string {
  const pieces = part.split(/([^\p{L}\p{N}]+)/u); // words, and what separates them at the odd places
  const needsEnds = (i: number) => {
    const characters = [...(pieces[i] ?? "")].length;
    const outermost = i === 0 || i === pieces.length - 1;
    return characters < 3 && characters > (outermost ? 1 : 0);
  };
  const middle = pieces.map((piece, i) => {
    if (i % 2 === 0) return piece;
    return needsEnds(i - 1) || needsEnds(i + 1) ? piece.replace(/[\\%_]/g, "\\$&") : "%";
  });
  return `%${middle.join("")}%`;
}

function likeAll(db: Db, text: Fragment, parts: readonly string[]): Fragment | undefined {
  const helpful = parts.filter(hasTrigram).map(patternOf);
  if (helpful.length === 0) return undefined;
  return sqlJoin(
    db,
    helpful.map((pattern) => db`${text} like ${pattern}::text`),
    "and",
  );
}

/** The condition on the name of an entity, living or deleted, as the index over terms answers it. */
export function nameText(db: Db, tenantId: string, condition: Condition): Indexed | undefined {
  const terms = nameTerms(occurring(condition) ?? beginning(condition));
  return terms && { sql: () => haveTerms(db, tenantId, "all", terms), exact: false, few: true, by: "entities_terms" };
}

function beginning([only]: Condition): string[] {
  const begins = only?.operation === Operation.OP_EQUALS || only?.operation === Operation.OP_STARTS_WITH;
  return begins && typeof only.value === "string" ? [fold(only.value)] : [];
}

/** The condition on a dimension, core or custom property as the index over trigrams of all of them answers it. */
export function anyTextContains(db: Db, condition: Condition): Indexed | undefined {
  // The index holds JSON, so what is looked for is spelled as in JSON.
  const parts = occurring(condition)?.map((part) => JSON.stringify(part).slice(1, -1));
  const sql = parts && likeAll(db, db`entity_text(dimensions, core_properties, custom_properties)`, parts);
  return sql && { sql: () => sql, exact: false, few: true, by: "entities_text" };
}

/** SQL that the same index answers: true for entities that have this dimension, whatever the case of its letters. */
export function foldedPair(db: Db, key: string, value: string): Fragment | undefined {
  const pair = fold(`${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  if (!hasTrigram(value)) return undefined;
  return db`entity_text(dimensions, core_properties, custom_properties) like ${`%${pair.replace(/[\\%_]/g, "\\$&")}%`}::text`;
}
