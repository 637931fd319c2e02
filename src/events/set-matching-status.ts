import { create } from "@bufbuild/protobuf";
import type { Fragment } from "postgres";
import { FieldRule } from "#gen/belfry/errors/v1/reasons_pb.ts";
import {
  type SetMatchingStatusRequest,
  type StatusItem,
  StatusItemSchema,
} from "#gen/belfry/events/v1/management_service_pb.ts";
import { EventQuerySchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { cancelOn } from "../db/driver/cancel.ts";
import { sqlJoin } from "../db/sql-join.ts";
import { idText } from "../entities/identity.ts";
import { invalidField } from "../errors.ts";
import { inTurn } from "../rpc/large-responses.ts";
import { keyList } from "./candidates.ts";
import { lockEvents } from "./lock.ts";
import { type MatchingOccurrences, matchingOccurrences, readQuery, refuseUnused } from "./matching.ts";
import { occurrenceIdText } from "./occurrence-id.ts";
import type { OccurrenceKey } from "./occurrences.ts";

/** How many occurrences a call changes. */
const changedMax = 1000;

/** Those that a request would change. @throws code 3 where it changes nothing */
function differing(db: Db, { acknowledged, statusWrapper }: SetMatchingStatusRequest): Fragment {
  const differs: Fragment[] = [];
  if (acknowledged !== undefined) differs.push(db`o.acknowledged <> ${acknowledged}`);
  if (statusWrapper !== undefined) differs.push(db`o.status <> ${statusWrapper.status}`);
  if (differs.length === 0) throw invalidField("acknowledged", "is required, or statusWrapper", FieldRule.REQUIRED);
  return sqlJoin(db, differs, "or");
}

const matchingStatement = (db: Db, { from, where }: MatchingOccurrences, differs: Fragment) =>
  db<{ event_id: Buffer; number: number; total: bigint }[]>`
    select o.event_id, o.number, count(*) over () as total
    from ${from} where ${where} and ${differs}
    order by o.event_id, o.number limit ${changedMax}`;

/** Finds the occurrences of a query that do not stand as they shall, and how many more there are. */
export async function toSet(
  db: Db,
  tenantId: string,
  request: SetMatchingStatusRequest,
  signal: AbortSignal,
): Promise<{ keys: OccurrenceKey[]; remaining: bigint }> {
  const query = request.query ?? create(EventQuerySchema);
  refuseUnused(query, "query", ["sortBy", "pageInput", "fields"]);
  const differs = differing(db, request);
  const rows = await inTurn(tenantId, signal, async () => {
    const matching = await matchingOccurrences(db, tenantId, query, "query", signal);
    return await cancelOn(matchingStatement(db, matching, differs), signal);
  });
  const keys = rows.map(({ event_id, number }) => ({ eventId: event_id, number }));
  return { keys, remaining: (rows[0]?.total ?? 0n) - BigInt(rows.length) };
}

/**
 * Locks the events of occurrences that were found, and returns those that match still as items for `setStatuses`: what was
 * closed meanwhile is not opened again.
 */
export async function stillToSet(
  tx: Db,
  tenantId: string,
  request: SetMatchingStatusRequest,
  keys: readonly OccurrenceKey[],
): Promise<StatusItem[]> {
  if (keys.length === 0) return [];
  await lockEvents(tx, tenantId, [
    ...new Map(keys.map(({ eventId }) => [eventId.toString("latin1"), eventId])).values(),
  ]);
  const found = tx`select event_id, number from ${keyList(tx, keys)}` as Fragment;
  const matching = readQuery(tx, tenantId, request.query ?? create(EventQuerySchema), "query").among(found);
  const rows = await matchingStatement(tx, matching, differing(tx, request));
  const { acknowledged, statusWrapper } = request;
  return rows.map(({ event_id, number }) =>
    create(StatusItemSchema, {
      eventId: idText(event_id),
      occurrenceId: occurrenceIdText(event_id, number),
      ...(acknowledged !== undefined && { acknowledged }),
      ...(statusWrapper !== undefined && { statusWrapper }),
    }),
  );
}
