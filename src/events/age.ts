import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import type { Db } from "../db/connect.ts";
import { planWithoutValues } from "../db/plans.ts";
import type { Change, StoreChanges } from "./changes.ts";
import { alertType, isAlert, notAnAlert } from "./labels.ts";
import { closed } from "./lifecycle.ts";
import { lockEvents } from "./lock.ts";
import { occurrenceText, readOccurrences } from "./occurrences.ts";

/** How many occurrences one run closes. */
const portion = 1000;

/** After how many ms without a report an occurrence closes by itself, by the number of its severity; absent: never. */
export type Ageing = ReadonlyMap<number, number>;

/**
 * Closes occurrences of a tenant that were not reported for the time of their severity and do not expire by themselves, with
 * the reason `Aged` in their metadata; not alerts, whose end is reported: while they fire they are sent again, and that is no news.
 * Returns whether there may be more. May be repeated.
 */
export async function ageOccurrences(
  tx: Db,
  tenantId: string,
  ageing: Ageing,
  { nowMs, store }: { nowMs: number; store: StoreChanges },
): Promise<boolean> {
  planWithoutValues(tx);
  // By occurrences_open, the longest unseen first. What is found is judged again under its event's lock.
  const found = await Promise.all(
    [...ageing].map(([severity, ageMs]) => {
      const beforeMs = BigInt(nowMs - ageMs);
      return tx<{ event_id: Buffer; number: number }[]>`
        select event_id, number from occurrences o
        where tenant_id = ${tenantId} and severity = ${severity} and end_ms is null and number >= 0 and expires_ms is null
          and seen_slot <= ${beforeMs / 300_000n} and last_seen_ms < ${beforeMs}
          and (type <> ${alertType} or exists (
            select from events where tenant_id = ${tenantId} and id = o.event_id and ${notAnAlert(tx)} limit 1
          ))
        order by seen_slot limit ${portion}`;
    }),
  );
  const keys = found
    .flat()
    .slice(0, portion)
    .map(({ event_id: eventId, number }) => ({ eventId, number }));
  if (keys.length === 0) return false;
  const events = new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  const locked = await lockEvents(tx, tenantId, [...events.values()]);
  const occurrences = await readOccurrences(tx, tenantId, keys);
  const changes = keys.flatMap((key): Change[] => {
    const known = occurrences.get(occurrenceText(key));
    if (known === undefined) return [];
    const { event, occurrence: before } = known;
    const ageMs = ageing.get(before.severity);
    if (
      before.endMs !== null ||
      before.expiresMs !== null ||
      ageMs === undefined ||
      isAlert(event, before) ||
      before.lastSeenMs >= BigInt(nowMs - ageMs)
    )
      return [];
    const metadata = { ...before.metadata, reason: "Aged" };
    const after = { ...closed(before, BigInt(nowMs), ClosedBy.AGEING), metadata };
    return [{ event, before, after, instance: undefined }];
  });
  await store(tx, locked, changes, nowMs);
  return keys.length === portion;
}
