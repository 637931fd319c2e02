import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  AnnotateEventsResponseSchema,
  type EventManagementService,
  SetEventStatusResponseSchema,
  SetMatchingStatusResponseSchema,
  type StatusItem,
  type StatusResult,
} from "#gen/belfry/events/v1/management_service_pb.ts";
import type { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import type { Db, Sql } from "../db/connect.ts";
import { transaction } from "../db/transaction.ts";
import { principalOf } from "../rpc/context.ts";
import { audited } from "../tenants/audit.ts";
import { annotate } from "./annotate.ts";
import type { StoreChanges } from "./changes.ts";
import { countEventFrequency, countEvents } from "./count.ts";
import { getEvent } from "./get.ts";
import { groupEvents } from "./group.ts";
import { searchEvents } from "./search.ts";
import { stillToSet, toSet } from "./set-matching-status.ts";
import { setStatuses } from "./set-status.ts";
import type { WatchHub } from "./watch/watch-hub.ts";
import { watchEvents } from "./watch/watch-stream.ts";

export function eventQueryService(db: Sql, watches: WatchHub): Partial<ServiceImpl<typeof EventQueryService>> {
  return {
    getEvent: (request, context) => getEvent(db, principalOf(context).tenantId, request),
    searchEvents: (request, context) => searchEvents(db, principalOf(context).tenantId, request, context.signal),
    countEvents: (request, context) => countEvents(db, principalOf(context).tenantId, request, context.signal),
    countEventFrequency: (request, context) =>
      countEventFrequency(db, principalOf(context).tenantId, request, context.signal),
    groupEvents: (request, context) => groupEvents(db, principalOf(context).tenantId, request, context.signal),
    watchEvents: (request, context) => watchEvents(db, watches, principalOf(context).tenantId, request, context.signal),
  };
}

/** What the audit log names of a call on many occurrences: the events of those that it changed. */
const changedEvents = (results: readonly { eventId: string; success: boolean }[]) =>
  [...new Set(results.flatMap(({ eventId, success }) => (success ? [eventId] : [])))].join(",");

/** @param store the only function that changes occurrences @param annotationsMax how many an occurrence may have */
export function eventManagementService(
  db: Db,
  nowMs: () => number,
  store: StoreChanges,
  annotationsMax: number,
): Partial<ServiceImpl<typeof EventManagementService>> {
  async function setAll(
    context: HandlerContext,
    itemsOf: (tx: Db) => Promise<readonly StatusItem[]>,
  ): Promise<StatusResult[]> {
    const { tenantId } = principalOf(context);
    return await transaction(db, async (tx) => {
      const done = await setStatuses(tx, tenantId, await itemsOf(tx), nowMs());
      await audited(tx, context, changedEvents(done.results));
      // Last, since the feed makes others wait until the commit.
      await store(tx, done.locked, done.changes, nowMs());
      return done.results;
    });
  }

  return {
    async annotateEvents({ annotations }, context) {
      const { tenantId, clientName } = principalOf(context);
      const annotationResponses = await transaction(db, async (tx) => {
        const results = await annotate(tx, tenantId, annotations, {
          author: clientName,
          annotationsMax,
          nowMs: nowMs(),
        });
        await audited(tx, context, changedEvents(results));
        return results;
      });
      return create(AnnotateEventsResponseSchema, { annotationResponses });
    },

    async setEventStatus({ statuses }, context) {
      return create(SetEventStatusResponseSchema, { statusResponses: await setAll(context, async () => statuses) });
    },

    async setMatchingStatus(request, context) {
      const { tenantId } = principalOf(context);
      const { keys, remaining } = await toSet(db, tenantId, request, context.signal);
      const statusResponses = await setAll(context, (tx) => stillToSet(tx, tenantId, request, keys));
      return create(SetMatchingStatusResponseSchema, { statusResponses, remainingCount: remaining });
    },
  };
}
