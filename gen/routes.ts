import { EntityService } from "./belfry/entities/v1/entity_service_pb.ts";
import { EventManagementService } from "./belfry/events/v1/management_service_pb.ts";
import { EventQueryService } from "./belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "./belfry/receiver/v1/receiver_service_pb.ts";

// Made by src/transcoding/plugin/main.ts from the google.api.http rules. Segments: 1 is `*`, 2 is `**`.

export const routes = [
  // POST /v1/modelcontext/entities:search
  { method: EntityService.method.searchEntities, verb: "POST", template: "/v1/modelcontext/entities:search", segments: ["v1","modelcontext","entities"], custom: "search", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/fields:listDefault
  { method: EntityService.method.listDefaultFields, verb: "POST", template: "/v1/modelcontext/fields:listDefault", segments: ["v1","modelcontext","fields"], custom: "listDefault", variables: [], body: "*", responseBody: "" },
  // POST /v1/event-management/annotate
  { method: EventManagementService.method.annotateEvents, verb: "POST", template: "/v1/event-management/annotate", segments: ["v1","event-management","annotate"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/event-management/status
  { method: EventManagementService.method.setEventStatus, verb: "POST", template: "/v1/event-management/status", segments: ["v1","event-management","status"], custom: "", variables: [], body: "*", responseBody: "" },
  // GET /v1/events/{id}
  { method: EventQueryService.method.getEvent, verb: "GET", template: "/v1/events/{id}", segments: ["v1","events",1], custom: "", variables: [{"path":["id"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // POST /v1/events:search
  { method: EventQueryService.method.searchEvents, verb: "POST", template: "/v1/events:search", segments: ["v1","events"], custom: "search", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:count
  { method: EventQueryService.method.countEvents, verb: "POST", template: "/v1/events:count", segments: ["v1","events"], custom: "count", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:frequency
  { method: EventQueryService.method.countEventFrequency, verb: "POST", template: "/v1/events:frequency", segments: ["v1","events"], custom: "frequency", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:watch
  { method: EventQueryService.method.watchEvents, verb: "POST", template: "/v1/events:watch", segments: ["v1","events"], custom: "watch", variables: [], body: "*", responseBody: "" },
  // POST /v1/data-receiver/models
  { method: DataReceiverService.method.putModels, verb: "POST", template: "/v1/data-receiver/models", segments: ["v1","data-receiver","models"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/data-receiver/metrics
  { method: DataReceiverService.method.putMetrics, verb: "POST", template: "/v1/data-receiver/metrics", segments: ["v1","data-receiver","metrics"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/data-receiver/events
  { method: DataReceiverService.method.putEvents, verb: "POST", template: "/v1/data-receiver/events", segments: ["v1","data-receiver","events"], custom: "", variables: [], body: "*", responseBody: "" },
] as const;
