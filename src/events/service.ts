import type { ServiceImpl } from "@connectrpc/connect";
import type { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db } from "../db/connect.ts";
import { principalOf } from "../rpc/context.ts";
import { countEvents } from "./count.ts";
import { countEventFrequency } from "./frequency.ts";
import { getEvent } from "./get.ts";
import { searchEvents } from "./search.ts";

export function eventQueryService(db: Db): Partial<ServiceImpl<typeof EventQueryService>> {
  return {
    getEvent: (request, context) => getEvent(db, principalOf(context).tenantId, request),
    searchEvents: (request, context) => searchEvents(db, principalOf(context).tenantId, request, context.signal),
    countEvents: (request, context) => countEvents(db, principalOf(context).tenantId, request, context.signal),
    countEventFrequency: (request, context) =>
      countEventFrequency(db, principalOf(context).tenantId, request, context.signal),
  };
}
