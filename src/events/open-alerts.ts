import type { Db } from "../db/connect.ts";
import { readDimensions } from "../entities/read.ts";
import { exhausted } from "../errors.ts";
import type { EventIdentity } from "./fields.ts";
import { type LabelView, labelView } from "./labels.ts";
import type { Occurrence } from "./lifecycle.ts";
import { findOccurrences, keyText, type OccurrenceKey } from "./occurrences.ts";

/** An occurrence that is open, with its event and its labels. */
export interface OpenAlert {
  event: EventIdentity;
  occurrence: Occurrence;
  labels: LabelView;
}

const alertsMax = 200_000;
const pageAlerts = 500;

/**
 * Reads the open occurrences, in pages. What closes meanwhile may be missing, and so may what opens.
 * @throws code 8 when there are more than an answer may hold
 */
export async function* openAlerts(db: Db, tenantId: string): AsyncGenerator<OpenAlert[]> {
  // By occurrences_end.
  const rows = await db<{ event_id: Buffer; number: number }[]>`
    select o.event_id, o.number from occurrences o
    where o.tenant_id = ${tenantId} and o.end_ms is null
    limit ${alertsMax + 1}`;
  if (rows.length > alertsMax)
    throw exhausted(`more than ${alertsMax} alerts are open: search for them with POST /v1/events:search`);
  const keys = rows.map((row): OccurrenceKey => ({ eventId: row.event_id, number: row.number }));
  keys.sort((a, b) => Buffer.compare(a.eventId, b.eventId));
  for (let from = 0; from < keys.length; from += pageAlerts) {
    const page = keys.slice(from, from + pageAlerts);
    const found = await findOccurrences(db, tenantId, page);
    const entityIds = new Map(
      [...found.values()].map(({ event: { entityId } }) => [entityId.toString("latin1"), entityId]),
    );
    const dimensions = await readDimensions(db, tenantId, [...entityIds.values()]);
    yield page.flatMap((key) => {
      const { event, occurrence } = found.get(keyText(key)) ?? {};
      if (event === undefined || occurrence === undefined || occurrence.endMs !== null) return [];
      const own = dimensions.get(event.entityId.toString("latin1")) ?? {};
      return [{ event, occurrence, labels: labelView({ kind: "occurrence", event, occurrence, dimensions: own }) }];
    });
  }
}
