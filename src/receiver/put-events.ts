import { create } from "@bufbuild/protobuf";
import { type Event, EventSchema, FailedEventSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  type PutEventRequest,
  type PutEventResponse,
  PutEventResponseSchema,
  type PutEventsRequest,
  type PutEventsResponse,
  PutEventsResponseSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { EventItem } from "../events/ingest.ts";
import { type Failed, sift } from "./item.ts";
import type { Receiver } from "./receiver.ts";
import { putStream } from "./stream.ts";

function toItem(event: Event): EventItem {
  return {
    name: event.name,
    dimensions: event.dimensions,
    timeMs: event.timestamp as bigint,
    severity: event.severity,
    status: event.status,
    acknowledged: event.acknowledged,
    type: event.type,
    summary: event.summary,
    body: event.body,
    metadata: event.metadataFields ?? {},
  };
}

const toFailed = ({ error, item }: Failed<Event>) => create(FailedEventSchema, { error, event: item });

async function put(receiver: Receiver, tenantId: string, events: readonly Event[], pathOf: (index: number) => string) {
  const { good, failed } = sift(
    { schema: EventSchema, bounds: receiver.eventBounds },
    events,
    pathOf,
    receiver.nowMs(),
  );
  await receiver.ingestEvents(tenantId, good.map(toItem));
  return { succeeded: good.length, failed };
}

/** Stores a batch of events; may be repeated. What it counts as succeeded is committed. */
export async function putEvents(
  receiver: Receiver,
  tenantId: string,
  request: PutEventsRequest,
): Promise<PutEventsResponse> {
  const { succeeded, failed } = await put(receiver, tenantId, request.events, (index) => `events[${index}]`);
  return create(PutEventsResponseSchema, {
    succeeded,
    failed: failed.length,
    message: `${succeeded} of ${request.events.length} events processed`,
    failedEvents: request.detailedResponse ? failed.map(toFailed) : [],
  });
}

/** Stores a stream of events, batch by batch as they come. */
export async function putEvent(
  receiver: Receiver,
  tenantId: string,
  requests: AsyncIterable<PutEventRequest>,
): Promise<PutEventResponse> {
  const eventOf = ({ event }: PutEventRequest) => event.value ?? create(EventSchema);
  const { succeeded, failedCount, failed } = await putStream(requests, eventOf, (events, pathOf) =>
    put(receiver, tenantId, events, pathOf),
  );
  return create(PutEventResponseSchema, {
    succeeded,
    failed: failedCount,
    message: `${succeeded} of ${succeeded + failedCount} events processed`,
    failedEvents: failed.map(toFailed),
  });
}
