import { create } from "@bufbuild/protobuf";
import type { TimeRange } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EventQuerySchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { matchingOccurrences } from "./matching.ts";
import type { OccurrenceKey } from "./occurrences.ts";

/**
 * The occurrences that were last seen in a time range, the latest first, to the five minutes; at most `most`. `path`: of the
 * message that holds the range. @throws code 3 for a range that is empty, or in seconds
 */
export async function seenOccurrences(
  db: Db,
  tenantId: string,
  timeRange: TimeRange,
  most: number,
  signal: AbortSignal,
): Promise<OccurrenceKey[]> {
  const { where } = matchingOccurrences(db, tenantId, create(EventQuerySchema, { timeRange }), "");
  // By occurrences_seen, backwards.
  const rows = await cancelOn(
    db<{ event_id: Buffer; number: number }[]>`
      select o.event_id, o.number from occurrences o where ${where} order by o.seen_slot desc limit ${most}`,
    signal,
  );
  return rows.map(({ event_id, number }) => ({ eventId: event_id, number }));
}
