import type { Fragment } from "postgres";
import type { Literal } from "../clause/field.ts";
import { numericText } from "../clause/numeric-text.ts";
import type { Db } from "../db/connect.ts";

/** A place among the terms, and the values one of which is there: `type`, or a key of a map. */
export type Term = readonly [place: "type" | { key: string }, values: readonly Literal[]];

/** A search by more values reads all occurrences sooner. */
const valuesMax = 1000;

/**
 * A condition on `tenant_terms(…)` that an index answers: one of these values, or a list with it, is at its place. Undefined: the
 * terms do not show it, as of a number, which equals texts of many spellings.
 */
export function haveTerms(tenantId: string, terms: readonly Term[]): string | undefined {
  const owner = tenantId.slice(-8); // as in the migration of tenant_terms
  const values = terms.flatMap(([, own]) => own);
  if (values.length > valuesMax || values.some((value) => typeof value === "number")) return undefined;
  const conditions = terms.flatMap(([place, own]) => {
    const path = place === "type" ? `$."${owner}t"` : `$."${owner}m".${JSON.stringify(place.key)}[*]`;
    return own.flatMap(spellings).map((value) => `${path} == ${value}`);
  });
  return conditions.length === 0 ? "1 == 2" : conditions.join(" || ");
}

/** How a value that equals this one may be written. */
function spellings(value: Literal): string[] {
  const number = typeof value === "string" ? numericText(value) : undefined;
  return [JSON.stringify(value), ...(number === undefined ? [] : [JSON.stringify(number)])];
}

/** Over occurrences, by occurrences_terms. */
export const occurrencesWith = (db: Db, tenantId: string, terms: readonly Term[]): Fragment | undefined => {
  const asked = haveTerms(tenantId, terms);
  return asked === undefined
    ? undefined
    : (db`tenant_terms(tenant_id, type, metadata) @@ ${asked}::text::jsonpath` as Fragment);
};

/** Over events, by events_labels. */
export const eventsWith = (db: Db, tenantId: string, terms: readonly Term[]): Fragment | undefined => {
  const asked = haveTerms(tenantId, terms);
  return asked === undefined
    ? undefined
    : (db`alert_labels is not null and tenant_terms(tenant_id, name, alert_labels::jsonb) @@ ${asked}::text::jsonpath` as Fragment);
};
