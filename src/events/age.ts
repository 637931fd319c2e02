import { bigintArray, int4Array } from "../db/batch.ts";
import type { Db } from "../db/connect.ts";
import type { Change, StoreChanges } from "./changes.ts";
import { CLOSED } from "./lifecycle.ts";
import { lockEvents } from "./lock.ts";
import { keyText, readOccurrences } from "./occurrences.ts";

/** How many occurrences one run closes. */
const portion = 1000;

/** After how many ms without a report an occurrence closes by itself, by the number of its severity; absent: never. */
export type Ageing = ReadonlyMap<number, number>;

/**
 * Closes occurrences of a tenant that were not reported for the time of their severity, with the reason `Aged` in their
 * metadata. Answers whether there may be more. May be repeated.
 */
export async function ageOccurrences(
  tx: Db,
  tenantId: string,
  ageing: Ageing,
  { nowMs, store }: { nowMs: number; store: StoreChanges },
): Promise<boolean> {
  const severities = [...ageing.keys()];
  const beforeMs = [...ageing.values()].map((ms) => BigInt(nowMs - ms));
  // occurrences_end finds those that are open. What is found is judged again under its event's lock.
  const found = await tx<{ event_id: Buffer; number: number }[]>`
    select o.event_id, o.number
    from occurrences o
    where o.tenant_id = ${tenantId} and o.end_ms is null
      and o.last_seen_ms < (${bigintArray(beforeMs)}::bigint[])[array_position(${int4Array(severities)}::int4[], o.severity::int4)]
    limit ${portion}`;
  if (found.length === 0) return false;
  const keys = found.map(({ event_id: eventId, number }) => ({ eventId, number }));
  const events = new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  const locked = await lockEvents(tx, tenantId, [...events.values()]);
  const occurrences = await readOccurrences(tx, tenantId, keys);
  const changes = keys.flatMap((key): Change[] => {
    const known = occurrences.get(keyText(key));
    if (known === undefined) return [];
    const { event, occurrence: before } = known;
    const ageMs = ageing.get(before.severity);
    if (before.endMs !== null || ageMs === undefined || before.lastSeenMs >= BigInt(nowMs - ageMs)) return [];
    const metadata = { ...before.metadata, reason: "Aged" };
    return [
      { event, before, after: { ...before, status: CLOSED, endMs: BigInt(nowMs), metadata }, instance: undefined },
    ];
  });
  await store(tx, locked, changes, nowMs);
  return found.length === portion;
}
