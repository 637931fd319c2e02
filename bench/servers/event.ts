import { create } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { type GetEventResponse, GetEventResponseSchema } from "#gen/belfry/events/v1/query_service_pb.ts";

const id = "c3RhdGUtb2YtdGhlLWV2ZW50LTE=";
const entity = "ZW50aXR5LW9mLXRoZS1ldmVudC0=";

/** An event as a server that stores one would answer it, with its latest occurrence; the same object for every request. */
export const event: GetEventResponse = create(GetEventResponseSchema, {
  result: {
    id,
    entity,
    entityName: "host=web-00000001,service=checkout",
    name: "disk almost full",
    count: 3n,
    occurrences: [
      {
        id: `${id}:3`,
        eventId: id,
        severity: Severity.ERROR,
        status: Status.OPEN,
        summary: "97 % of /var is used",
        startTime: 1_760_000_000_000n,
        lastSeen: 1_760_000_360_000n,
        instanceCount: 7n,
        type: "disk",
        body: "The file system at /var has 97 % of its 512 GiB in use; at this rate it is full in 3 h.",
        acknowledged: false,
        dimensions: { host: "web-00000001", service: "checkout" },
        metadataFields: { mount: "/var", usedPercent: 97, tags: ["storage", "capacity"] },
        coreProperties: {
          host: ["web-00000001"],
          service: ["checkout"],
          name: ["host=web-00000001,service=checkout"],
          _svc_direct_entity_id: [entity],
          _svc_schemaIds: ["Base.Entity"],
        },
      },
    ],
  },
});
