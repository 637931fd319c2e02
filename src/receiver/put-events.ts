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
import type { HeldBody } from "../rpc/bodies.ts";
import { type Failed, sift } from "./item.ts";
import { type Outcome, type Put, putList, putStream } from "./put-all.ts";
import type { Receiver } from "./receiver.ts";

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

function putFor(receiver: Receiver, tenantId: string): Put<Event> {
  const rules = { schema: EventSchema, bounds: receiver.eventBounds };
  return async (events, pathOf) => {
    const { good, failed } = sift(rules, events, pathOf, receiver.nowMs());
    await receiver.ingestEvents(tenantId, good.map(toItem));
    return { succeeded: good.length, failed };
  };
}

function answer({ succeeded, failedCount, failed }: Outcome<Event>) {
  return {
    succeeded,
    failed: failedCount,
    message: `${succeeded} of ${succeeded + failedCount} events processed`,
    failedEvents: failed.map(toFailed),
  };
}

/** Stores a batch of events; may be repeated. What it counts as succeeded is committed. */
export async function putEvents(
  receiver: Receiver,
  tenantId: string,
  { events, detailedResponse }: PutEventsRequest,
): Promise<PutEventsResponse> {
  const outcome = await putList(events, putFor(receiver, tenantId), "events", detailedResponse);
  return create(PutEventsResponseSchema, answer(outcome));
}

/** Stores a stream of events, batch by batch as they come. */
export async function putEvent(
  receiver: Receiver,
  tenantId: string,
  requests: AsyncIterable<PutEventRequest>,
  body: HeldBody,
): Promise<PutEventResponse> {
  const eventOf = ({ event }: PutEventRequest) => event.value ?? create(EventSchema);
  return create(PutEventResponseSchema, answer(await putStream(requests, eventOf, putFor(receiver, tenantId), body)));
}
