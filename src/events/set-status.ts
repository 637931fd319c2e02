import { create } from "@bufbuild/protobuf";
import {
  type StatusItem,
  StatusItemSchema,
  type StatusResult,
  StatusResultSchema,
} from "#gen/belfry/events/v1/management_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { itemError } from "../rpc/validate.ts";
import type { Change } from "./changes.ts";
import { CLOSED, type Occurrence } from "./lifecycle.ts";
import { type LockedEvents, lockEvents } from "./lock.ts";
import { keyText, occurrenceKey, readOccurrences } from "./occurrences.ts";

/** What an occurrence is like once an item is carried out; itself when that changes nothing. */
function standing(before: Occurrence, { acknowledged, statusWrapper }: StatusItem, nowMs: bigint): Occurrence {
  const status = statusWrapper?.status ?? before.status;
  const after = { ...before, status, acknowledged: acknowledged ?? before.acknowledged };
  if (status === CLOSED && before.status !== CLOSED)
    after.endMs = nowMs > before.lastSeenMs ? nowMs : before.lastSeenMs;
  if (status !== CLOSED) after.endMs = null;
  return after.status === before.status && after.acknowledged === before.acknowledged ? before : after;
}

/**
 * What becomes of occurrences when their status and acknowledgement are set, in the order of the items; the caller stores
 * the changes in the same transaction. Any status may follow any other; one that an occurrence has already counts as set.
 */
export async function setStatuses(
  tx: Db,
  tenantId: string,
  items: readonly StatusItem[],
  nowMs: number,
): Promise<{ results: StatusResult[]; locked: LockedEvents; changes: Change[] }> {
  const asked = items.map((item) => ({ item, key: occurrenceKey(item) }));
  const keys = new Map(asked.flatMap(({ key }) => (key === undefined ? [] : [[keyText(key), key]])));
  const events = new Map([...keys.values()].map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  const locked = await lockEvents(tx, tenantId, [...events.values()]);
  const found = await readOccurrences(tx, tenantId, [...keys.values()]);
  const changes: Change[] = [];
  const results = asked.map(({ item, key }, i) => {
    const known = key && found.get(keyText(key));
    const error = itemError(StatusItemSchema, item, `statuses[${i}]`) || errorOf(item, known !== undefined);
    if (error === "" && known !== undefined) {
      const after = standing(known.occurrence, item, BigInt(nowMs));
      if (after !== known.occurrence) {
        changes.push({ event: known.event, before: known.occurrence, after, instance: undefined });
        known.occurrence = after;
      }
    }
    const { eventId, occurrenceId } = item;
    return create(StatusResultSchema, { eventId, occurrenceId, success: error === "", error });
  });
  return { results, locked, changes };
}

function errorOf(item: StatusItem, known: boolean): string {
  if (item.acknowledged === undefined && item.statusWrapper === undefined) {
    return "acknowledged or statusWrapper is needed";
  }
  return known ? "" : "the event has no such occurrence";
}
