import type { EventSource } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { foldedRow } from "../../clause/folded-row.ts";
import { checkTrigger, compileTrigger, falsePart } from "../../clause/trigger.ts";
import { nearlyNamed } from "../../events/fields.ts";
import { CLOSED } from "../../events/lifecycle.ts";
import { fieldsOf, readsOf } from "../deciding/matcher/rows.ts";
import type { TriggerSource } from "./source.ts";

/** Which names a trigger may give a field does not depend on the tenant. */
const { events } = fieldsOf("", "");

const path = "type.event.query.clause";
const ofEntity = "entity.";

/** Events: changes of occurrences are held against all of these triggers at once (`deciding/`). */
export const event: TriggerSource<EventSource> = {
  check: ({ query }, at) => void checkTrigger(query?.clause, `${at}.query.clause`, events),

  doubt({ query }) {
    const names = compileTrigger(query?.clause, path, events).fields;
    for (const name of names) {
      const meant = name.startsWith(ofEntity) ? undefined : nearlyNamed(name);
      if (meant !== undefined)
        return `it looks at ${JSON.stringify(name)}, which only a dimension or metadata can be; did you mean ${JSON.stringify(meant)}?`;
    }
    return "";
  },

  ready({ query }, fields) {
    const compiled = compileTrigger(query?.clause, "clause", fields.events);
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

  comparisons: ({ query }) => compileTrigger(query?.clause, "clause", events).comparisons,

  mismatch({ query }, row, values) {
    if (row.status === CLOSED && !compileTrigger(query?.clause, path, values).fields.has("status"))
      return { what: "does not name status, and the occurrence is closed" };
    const at = falsePart(query?.clause, path, values, foldedRow(row, { values }));
    return at === undefined ? undefined : { what: "does not match", path: at };
  },
};
