import { EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { EventViewService } from "#gen/belfry/events/v1/view_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import type { Calls, World } from "../support/calls.ts";

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
  "EventViewService/CreateEventView": { request: (world) => ({ view: viewOf(world) }), elsewhere: "his own" },
  "EventViewService/ListEventViews": {
    request: async (world) => {
      await view(world);
      return {};
    },
    elsewhere: "nothing",
  },
  "EventViewService/ReplaceEventView": {
    request: async (world) => ({ view: { name: await view(world), query: "changed" } }),
    elsewhere: "not found",
  },
  "EventViewService/DeleteEventView": {
    request: async (world) => ({ name: await view(world) }),
    elsewhere: "not found",
  },
  "EventQueryService/GetEvent": {
    request: async (world) => ({ id: await event(world) }),
    elsewhere: "not found",
  },
  "EventQueryService/SearchEvents": {
    request: async (world) => {
      await event(world);
      return { query: {} };
    },
    elsewhere: "nothing",
  },
  "EventQueryService/CountEvents": {
    request: async (world) => {
      await event(world);
      return { query: {}, fields: [{ field: "name" }] };
    },
    elsewhere: "nothing",
  },
  "EventQueryService/GroupEvents": {
    request: async (world) => {
      await event(world);
      return { query: {}, labels: ["alertname"] };
    },
    elsewhere: "nothing",
  },
  "EventQueryService/CountEventFrequency": {
    request: async (world) => {
      await event(world);
      const end = BigInt(Date.now() + 1000);
      return { query: { timeRange: { start: end - 60_000n, end } }, fields: [{ field: "name" }] };
    },
    elsewhere: "nothing",
  },
  "EventManagementService/SetEventStatus": {
    request: async (world) => {
      const id = await event(world);
      return { statuses: [{ eventId: id, occurrenceId: `${id}:1`, acknowledged: true }] };
    },
    elsewhere: "his own",
  },
  "EventManagementService/SetMatchingStatus": {
    request: async (world) => {
      await event(world);
      return { query: {}, acknowledged: true };
    },
    elsewhere: "his own",
  },
  "EventManagementService/AnnotateEvents": {
    request: async (world) => {
      const id = await event(world);
      return { annotations: [{ eventId: id, occurrenceId: `${id}:1`, annotation: world.mark }] };
    },
    elsewhere: "his own",
  },
  "EventQueryService/WatchEvents": {
    request: async (world) => {
      await event(world);
      return { query: {} };
    },
    elsewhere: "nothing",
    unmarked: true,
  },
};
