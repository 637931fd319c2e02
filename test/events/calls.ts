import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { EventViewService } from "#gen/belfry/events/v1/view_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { after, type Calls, hisOwn, notFound, nothing, type World } from "../support/calls.ts";

/** An event that is there; its id. */
async function event({ client, mark }: World): Promise<string> {
  await client(DataReceiverService).putEvents({
    events: [{ timestamp: BigInt(Date.now()), name: mark, dimensions: { source: mark }, severity: 4 }],
  });
  const { results } = await client(EventQueryService).searchEvents({ query: {} });
  return results[0]?.id ?? "";
}

const viewOf = ({ mark }: World) => ({ name: mark, query: mark, display: mark });

/** A view that is there; its name. */
async function view(world: World): Promise<string> {
  await world.client(EventViewService).createEventView({ view: viewOf(world) });
  return world.mark;
}

export const calls: Calls = {
  "EventViewService/CreateEventView": hisOwn((world) => ({ view: viewOf(world) })),
  "EventViewService/ListEventViews": nothing(after(view)),
  "EventViewService/ReplaceEventView": notFound(async (world) => ({
    view: { name: await view(world), query: "changed" },
  })),
  "EventViewService/DeleteEventView": notFound(after(view, (name) => ({ name }))),
  "EventQueryService/GetEvent": notFound(after(event, (id) => ({ id }))),
  "EventQueryService/SearchEvents": nothing(after(event, () => ({ query: {} }))),
  "EventQueryService/CountEvents": nothing(after(event, () => ({ query: {}, fields: [{ field: "name" }] }))),
  "EventQueryService/GroupEvents": nothing(after(event, () => ({ query: {}, labels: ["alertname"] }))),
  "EventQueryService/CountEventFrequency": nothing(async (world) => {
    await event(world);
    const end = BigInt(Date.now() + 1000);
    return { query: { timeRange: { start: end - 60_000n, end } }, fields: [{ field: "name" }] };
  }),
  "EventManagementService/SetEventStatus": hisOwn(async (world) => {
    const id = await event(world);
    return { statuses: [{ eventId: id, occurrenceId: `${id}:1`, acknowledged: true }] };
  }),
  "EventManagementService/SetMatchingStatus": hisOwn(after(event, () => ({ query: {}, acknowledged: true }))),
  "EventManagementService/AnnotateEvents": hisOwn(async (world) => {
    const id = await event(world);
    return { annotations: [{ eventId: id, occurrenceId: `${id}:1`, annotation: world.mark }] };
  }),
  "EventQueryService/WatchEvents": { ...nothing(after(event, () => ({ query: {} }))), unmarked: true },
};
