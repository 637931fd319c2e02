import { create } from "@bufbuild/protobuf";
import { type TriggerClause, TriggerClauseSchema } from "#gen/belfry/clause/v1/trigger_clause_pb.ts";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import type { EventSource, TriggerQuery } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { foldedRow } from "../../../clause/folded-row.ts";
import { readMatchers } from "../../../clause/label-matcher.ts";
import { checkTrigger, clauseTrouble, compileTrigger, falseMatcher, falsePart } from "../../../clause/trigger.ts";
import { invalidField } from "../../../errors.ts";
import { eventFieldDoubt } from "../../../events/fields.ts";
import { CLOSED } from "../../../events/lifecycle.ts";
import { fieldsOf, readsOf } from "../rows.ts";
import type { TriggerSource } from "./source.ts";

/** Which names a trigger may give a field does not depend on the tenant. */
const { events } = fieldsOf("", "");

const path = "type.event.query";

/** The condition of a query: matchers are a clause, too. */
function clauseOf(query: TriggerQuery | undefined): TriggerClause | undefined {
  if (query === undefined || query.matchers.length === 0) return query?.clause;
  return create(TriggerClauseSchema, { kind: { case: "matchers", value: { matchers: query.matchers } } });
}

/** Events: changes of occurrences are held against all of these triggers at once (`deciding/`). */
export const event: TriggerSource<EventSource> = {
  check({ query }, at) {
    const { clause, matchers = [] } = query ?? {};
    if (matchers.length === 0 && clause === undefined)
      throw invalidField(`${at}.query.clause`, "is required", FieldRule.REQUIRED);
    if (matchers.length === 0) return void checkTrigger(clause, `${at}.query.clause`, events);
    if (clause !== undefined)
      throw invalidField(`${at}.query.matchers`, "must be left out beside clause", FieldRule.EXCLUDED);
    readMatchers(matchers, `${at}.query.matchers`);
  },

  doubt({ query }) {
    const clause = clauseOf(query);
    const doubt = eventFieldDoubt([...compileTrigger(clause, path, events).fields]);
    return doubt === "" ? clauseTrouble(clause, path) : doubt;
  },

  ready({ query }, fields) {
    const compiled = compileTrigger(clauseOf(query), "clause", fields.events);
    const reads = [...compiled.fields].map(readsOf);
    return {
      event: {
        ...compiled,
        namesStatus: compiled.fields.has("status"),
        readsEntity: reads.includes("entity"),
        readsCount: reads.includes("count"),
      },
    };
  },

  comparisons: ({ query }) => compileTrigger(clauseOf(query), "clause", events).comparisons,

  async mismatch({ query }, row, values, pace) {
    const clause = clauseOf(query);
    if (row.status === CLOSED && !compileTrigger(clause, `${path}.clause`, values).fields.has("status"))
      return { what: "does not name status, and the occurrence is closed" };
    const folded = foldedRow(row, { values });
    const at = await falsePart(clause, `${path}.clause`, { values, row: folded, pace });
    if (at === undefined) return undefined;
    const { matchers = [] } = query ?? {};
    const place = matchers.length === 0 ? at : `${path}.matchers[${await falseMatcher(matchers, folded, pace)}]`;
    return { what: "does not match", path: place };
  },
};
