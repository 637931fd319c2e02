import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import {
  type CountEventsRequest,
  type CountEventsResponse,
  CountEventsResponseSchema,
  EventQuerySchema,
  FieldCountsSchema,
  ValueCountSchema,
} from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { countGroups, fieldNames, groupNamesOf } from "./count-statement.ts";
import { refuseUnused } from "./matching.ts";

/** Counts occurrences, or their instances, by the values of fields. */
export async function countEvents(
  db: Db,
  tenantId: string,
  request: CountEventsRequest,
  signal: AbortSignal,
): Promise<CountEventsResponse> {
  const query = request.query ?? create(EventQuerySchema);
  refuseUnused(query, "query", ["sortBy", "pageInput", "fields"]);
  const fields = fieldNames(request.fields);
  const counts = await countGroups(db, tenantId, { query, fields, countInstances: request.countInstances }, signal);
  const results = new Map(groupNamesOf(fields).map((name) => [name, create(FieldCountsSchema)]));
  for (const { field, value, count } of counts) {
    results.get(field)?.values.push(create(ValueCountSchema, { value: fromJson(ValueSchema, value), count }));
  }
  return create(CountEventsResponseSchema, { results: Object.fromEntries(results) });
}
