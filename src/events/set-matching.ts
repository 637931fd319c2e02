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
import { occurrenceIdText } from "./identity.ts";
import { matchingOccurrences, refuseUnused } from "./matching.ts";

/** How many occurrences a call changes. */
const changedMax = 1000;

/** Finds the occurrences of a query that do not stand as they shall, as items for `setStatuses`, and how many more there are. */
export async function itemsToSet(
  db: Db,
  tenantId: string,
  { query = create(EventQuerySchema), acknowledged, statusWrapper }: SetMatchingStatusRequest,
  signal: AbortSignal,
): Promise<{ items: StatusItem[]; remaining: bigint }> {
  refuseUnused(query, "query", ["sortBy", "pageInput", "fields"]);
  const differs: Fragment[] = [];
  if (acknowledged !== undefined) differs.push(db`o.acknowledged <> ${acknowledged}`);
  if (statusWrapper !== undefined) differs.push(db`o.status <> ${statusWrapper.status}`);
  if (differs.length === 0) throw invalidField("acknowledged", "is required, or statusWrapper", FieldRule.REQUIRED);
  const { from, where } = matchingOccurrences(db, tenantId, query, "query");
  const statement = db<{ event_id: Buffer; number: number; total: bigint }[]>`
    select o.event_id, o.number, count(*) over () as total
    from ${from} where ${where} and ${sqlJoin(db, differs, "or")}
    order by o.event_id, o.number limit ${changedMax}`;
  const rows = await inTurn(tenantId, signal, () => cancelOn(statement, signal));
  const items = rows.map(({ event_id, number }) =>
    create(StatusItemSchema, {
      eventId: idText(event_id),
      occurrenceId: occurrenceIdText(event_id, number),
      ...(acknowledged !== undefined && { acknowledged }),
      ...(statusWrapper !== undefined && { statusWrapper }),
    }),
  );
  return { items, remaining: (rows[0]?.total ?? 0n) - BigInt(rows.length) };
}
