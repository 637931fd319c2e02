import { textArray } from "../../db/batch.ts";
import type { Db } from "../../db/connect.ts";
import { alertType, notAnAlert } from "../../events/labels.ts";

/** How many matches of the tenant are looked at, whatever their rules: no index leads from a rule to its matches. */
const matchesMax = 1000;

/** Returns which of these rules match occurrences that all came as alerts: alerts that are sent again are no reports to repeat by. */
export async function matchingAlertsAlone(
  db: Db,
  tenantId: string,
  ruleIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ruleIds.length === 0) return new Set();
  const rows = await db<{ id: string }[]>`
    select m.rule_id as id
    from (
        select rule_id, event_id, number from rule_matches where tenant_id = ${tenantId} and standing limit ${matchesMax}
      ) as m
      left join occurrences o on o.tenant_id = ${tenantId} and o.event_id = m.event_id and o.number = m.number
      left join events e on e.tenant_id = ${tenantId} and e.id = m.event_id
    where m.rule_id = any(${textArray(ruleIds)}::uuid[])
    group by m.rule_id
    having bool_and(e.alert_labels is not null or (o.type = ${alertType} and not (${notAnAlert(db)})))`;
  return new Set(rows.map(({ id }) => id));
}
