import { create } from "@bufbuild/protobuf";
import { ClosedBy } from "#gen/belfry/events/v1/event_pb.ts";
import {
  type StatusItem,
  StatusItemSchema,
  type StatusResult,
  StatusResultSchema,
} from "#gen/belfry/events/v1/management_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { itemError } from "../rpc/validate.ts";
import type { Change } from "./changes.ts";
import { CLOSED, closed, type Occurrence, reopened } from "./lifecycle.ts";
import { type LockedEvents, lockEvents } from "./lock.ts";
import { type OccurrenceKey, occurrenceKey, occurrenceText, openOccurrences, readOccurrences } from "./occurrences.ts";

/** What an occurrence is like once an item is carried out; itself when that changes nothing. */
function standing(before: Occurrence, { acknowledged, statusWrapper }: StatusItem, nowMs: bigint): Occurrence {
  const status = statusWrapper?.status ?? before.status;
  if (status === before.status && (acknowledged ?? before.acknowledged) === before.acknowledged) return before;
  const after = withStatus(before, status, nowMs);
  return { ...after, acknowledged: acknowledged ?? before.acknowledged };
}

function withStatus(before: Occurrence, status: number, nowMs: bigint): Occurrence {
  if ((status === CLOSED) === (before.status === CLOSED)) return { ...before, status };
  return status === CLOSED ? closed(before, nowMs, ClosedBy.PERSON) : reopened(before, status);
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
  const keys = new Map(asked.flatMap(({ key }) => (key === undefined ? [] : [[occurrenceText(key), key]])));
  const events = new Map([...keys.values()].map(({ eventId }) => [eventId.toString("latin1"), eventId]));
  const locked = await lockEvents(tx, tenantId, [...events.values()]);
  const found = await readOccurrences(tx, tenantId, [...keys.values()]);
  const open = await openBeside(tx, tenantId, asked, found);
  const changes: Change[] = [];
  const results = asked.map(({ item, key }, i) => {
    const known = key && found.get(occurrenceText(key));
    const others = key && open.get(key.eventId.toString("latin1"));
    const error = itemError(StatusItemSchema, item, `statuses[${i}]`) || errorOf(item, known?.occurrence, others);
    if (error === "" && known !== undefined) {
      const after = standing(known.occurrence, item, BigInt(nowMs));
      if (after !== known.occurrence) {
        if (after.status === CLOSED) others?.delete(after.number);
        else others?.add(after.number);
        changes.push({ event: known.event, before: known.occurrence, after, instance: undefined });
        known.occurrence = after;
      }
    }
    const { eventId, occurrenceId } = item;
    return create(StatusResultSchema, { eventId, occurrenceId, success: error === "", error });
  });
  return { results, locked, changes };
}

const opens = (before: Occurrence, { statusWrapper }: StatusItem) =>
  before.status === CLOSED && statusWrapper !== undefined && statusWrapper.status !== CLOSED;

/** What is open of the events of which an item may open a closed occurrence again. */
async function openBeside(
  tx: Db,
  tenantId: string,
  asked: readonly { item: StatusItem; key: OccurrenceKey | undefined }[],
  found: Awaited<ReturnType<typeof readOccurrences>>,
): Promise<Map<string, Set<number>>> {
  const events = new Map<string, Buffer>();
  for (const { item, key } of asked) {
    const known = key && found.get(occurrenceText(key));
    // A call may close what it opens again.
    if (known === undefined || item.statusWrapper === undefined || item.statusWrapper.status === CLOSED) continue;
    events.set(known.event.id.toString("latin1"), known.event.id);
  }
  return events.size === 0 ? new Map() : await openOccurrences(tx, tenantId, [...events.values()]);
}

function errorOf(item: StatusItem, known: Occurrence | undefined, open: ReadonlySet<number> | undefined): string {
  if (item.acknowledged === undefined && item.statusWrapper === undefined) {
    return "acknowledged or statusWrapper is needed";
  }
  if (known === undefined) return "the event has no such occurrence";
  const [other] = opens(known, item) ? (open ?? []) : [];
  return other === undefined ? "" : `occurrence ${other} of the event is not closed; only one may be`;
}
