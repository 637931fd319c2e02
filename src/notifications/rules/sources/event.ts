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
import { readsOf, type TriggerFields, triggerFields } from "../rows.ts";
import { triggerReason } from "../trigger-index.ts";
import type { ReadyTrigger, TriggerSource } from "./source.ts";

/** Which names a trigger may give a field does not depend on the tenant. */
const { events } = triggerFields("", "");

const path = "type.event.query";

/** The condition of a query: matchers are a clause, too. */
function clauseOf(query: TriggerQuery | undefined): TriggerClause | undefined {
  if (query === undefined || query.matchers.length === 0) return query?.clause;
  return create(TriggerClauseSchema, { kind: { case: "matchers", value: { matchers: query.matchers } } });
}

function readyEvent(
  clause: TriggerClause | undefined,
  values: TriggerFields["events"],
): NonNullable<ReadyTrigger["event"]> {
  const compiled = compileTrigger(clause, "clause", values);
  const reads = [...compiled.fields].map(readsOf);
  return {
    ...compiled,
    namesStatus: compiled.fields.has("status"),
    readsEntity: reads.includes("entity"),
    readsCount: reads.includes("count"),
  };
}

/** Events: changes of occurrences are held against all of these triggers at once (`deciding/`). */
export const eventTrigger: TriggerSource<EventSource> = {
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

  ready: ({ query }, fields) => ({ event: readyEvent(clauseOf(query), fields.events) }),

  comparisons: ({ query }) => compileTrigger(clauseOf(query), "clause", events).comparisons,

  async mismatch({ query }, row, values, pace) {
    const clause = clauseOf(query);
    const folded = foldedRow(row, { values });
    const reason = await triggerReason(readyEvent(clause, values), folded, row.status === CLOSED, pace);
    if (reason !== "false") return reason && { reason };
    const { matchers = [] } = query ?? {};
    if (matchers.length > 0) return { reason, path: `${path}.matchers[${await falseMatcher(matchers, folded, pace)}]` };
    const at = await falsePart(clause, `${path}.clause`, { values, row: folded, pace });
    return { reason, ...(at !== undefined && { path: at }) };
  },
};
