import { CredentialService } from "./belfry/credentials/v1/credential_service_pb.ts";
import { EntityFieldDictionaryService } from "./belfry/dictionary/v1/entity_field_service_pb.ts";
import { EventFieldDictionaryService } from "./belfry/dictionary/v1/event_field_service_pb.ts";
import { MetricDictionaryService } from "./belfry/dictionary/v1/metric_entry_service_pb.ts";
import { EntityService } from "./belfry/entities/v1/entity_service_pb.ts";
import { EventQueryService } from "./belfry/events/v1/query_service_pb.ts";
import { EventManagementService } from "./belfry/events/v1/management_service_pb.ts";
import { EventViewService } from "./belfry/events/v1/view_service_pb.ts";
import { MaintenanceWindowService } from "./belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { MetricQueryService } from "./belfry/metrics/v1/metric_query_service_pb.ts";
import { DeliveryService } from "./belfry/notifications/v1/delivery_service_pb.ts";
import { DestinationService } from "./belfry/notifications/v1/destination_service_pb.ts";
import { RuleService } from "./belfry/notifications/v1/rule_service_pb.ts";
import { SilenceService } from "./belfry/notifications/v1/silence_service_pb.ts";
import { TriggerService } from "./belfry/notifications/v1/trigger_service_pb.ts";
import { CustomPropertyService } from "./belfry/properties/v1/custom_property_service_pb.ts";
import { CustomPropertyUpdaterService } from "./belfry/properties/v1/custom_property_updater_service_pb.ts";
import { DataReceiverService } from "./belfry/receiver/v1/receiver_service_pb.ts";
import { ApiClientService } from "./belfry/tenants/v1/api_client_service_pb.ts";
import { AuditLogService } from "./belfry/tenants/v1/audit_log_service_pb.ts";
import { SessionService } from "./belfry/tenants/v1/session_service_pb.ts";
import { UserAccountService } from "./belfry/users/v1/user_account_service_pb.ts";
import { UserGroupService } from "./belfry/users/v1/user_group_service_pb.ts";

// Made by scripts/transcoding/main.ts from the google.api.http rules. Segments: 1 is `*`, 2 is `**`.

export const routes = [
  // POST /v1/credentials
  { method: CredentialService.method.createCredential, verb: "POST", template: "/v1/credentials", segments: ["v1","credentials"], custom: "", variables: [], body: "*", responseBody: "" },
  // GET /v1/credentials
  { method: CredentialService.method.listCredentials, verb: "GET", template: "/v1/credentials", segments: ["v1","credentials"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/credentials/{id}
  { method: CredentialService.method.replaceCredential, verb: "PUT", template: "/v1/credentials/{id}", segments: ["v1","credentials",1], custom: "", variables: [{"path":["id"],"start":2,"end":3,"many":false}], body: "*", responseBody: "" },
  // DELETE /v1/credentials/{id}
  { method: CredentialService.method.deleteCredential, verb: "DELETE", template: "/v1/credentials/{id}", segments: ["v1","credentials",1], custom: "", variables: [{"path":["id"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // POST /v1/dictionary/entity_fields
  { method: EntityFieldDictionaryService.method.createEntityField, verb: "POST", template: "/v1/dictionary/entity_fields", segments: ["v1","dictionary","entity_fields"], custom: "", variables: [], body: "entity_field", responseBody: "entity_field" },
  // GET /v1/dictionary/entity_fields/{name}
  { method: EntityFieldDictionaryService.method.getEntityField, verb: "GET", template: "/v1/dictionary/entity_fields/{name}", segments: ["v1","dictionary","entity_fields",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "entity_field" },
  // GET /v1/dictionary/entity_fields
  { method: EntityFieldDictionaryService.method.listEntityFields, verb: "GET", template: "/v1/dictionary/entity_fields", segments: ["v1","dictionary","entity_fields"], custom: "", variables: [], body: "", responseBody: "" },
  // PATCH /v1/dictionary/entity_fields/{entity_field.name}
  { method: EntityFieldDictionaryService.method.updateEntityField, verb: "PATCH", template: "/v1/dictionary/entity_fields/{entity_field.name}", segments: ["v1","dictionary","entity_fields",1], custom: "", variables: [{"path":["entity_field","name"],"start":3,"end":4,"many":false}], body: "entity_field", responseBody: "entity_field" },
  // DELETE /v1/dictionary/entity_fields/{name}
  { method: EntityFieldDictionaryService.method.deleteEntityField, verb: "DELETE", template: "/v1/dictionary/entity_fields/{name}", segments: ["v1","dictionary","entity_fields",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/dictionary/event_fields
  { method: EventFieldDictionaryService.method.createEventField, verb: "POST", template: "/v1/dictionary/event_fields", segments: ["v1","dictionary","event_fields"], custom: "", variables: [], body: "event_field", responseBody: "event_field" },
  // GET /v1/dictionary/event_fields/{name}
  { method: EventFieldDictionaryService.method.getEventField, verb: "GET", template: "/v1/dictionary/event_fields/{name}", segments: ["v1","dictionary","event_fields",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "event_field" },
  // GET /v1/dictionary/event_fields
  { method: EventFieldDictionaryService.method.listEventFields, verb: "GET", template: "/v1/dictionary/event_fields", segments: ["v1","dictionary","event_fields"], custom: "", variables: [], body: "", responseBody: "" },
  // PATCH /v1/dictionary/event_fields/{event_field.name}
  { method: EventFieldDictionaryService.method.updateEventField, verb: "PATCH", template: "/v1/dictionary/event_fields/{event_field.name}", segments: ["v1","dictionary","event_fields",1], custom: "", variables: [{"path":["event_field","name"],"start":3,"end":4,"many":false}], body: "event_field", responseBody: "event_field" },
  // DELETE /v1/dictionary/event_fields/{name}
  { method: EventFieldDictionaryService.method.deleteEventField, verb: "DELETE", template: "/v1/dictionary/event_fields/{name}", segments: ["v1","dictionary","event_fields",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/dictionary/metrics
  { method: MetricDictionaryService.method.createMetricEntry, verb: "POST", template: "/v1/dictionary/metrics", segments: ["v1","dictionary","metrics"], custom: "", variables: [], body: "metric", responseBody: "metric" },
  // GET /v1/dictionary/metrics/{name}
  { method: MetricDictionaryService.method.getMetricEntry, verb: "GET", template: "/v1/dictionary/metrics/{name}", segments: ["v1","dictionary","metrics",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "metric" },
  // POST /v1/dictionary/metrics:batchGet
  { method: MetricDictionaryService.method.batchGetMetricEntries, verb: "POST", template: "/v1/dictionary/metrics:batchGet", segments: ["v1","dictionary","metrics"], custom: "batchGet", variables: [], body: "*", responseBody: "" },
  // GET /v1/dictionary/metrics
  { method: MetricDictionaryService.method.listMetricEntries, verb: "GET", template: "/v1/dictionary/metrics", segments: ["v1","dictionary","metrics"], custom: "", variables: [], body: "", responseBody: "" },
  // PATCH /v1/dictionary/metrics/{metric.name}
  { method: MetricDictionaryService.method.updateMetricEntry, verb: "PATCH", template: "/v1/dictionary/metrics/{metric.name}", segments: ["v1","dictionary","metrics",1], custom: "", variables: [{"path":["metric","name"],"start":3,"end":4,"many":false}], body: "metric", responseBody: "metric" },
  // DELETE /v1/dictionary/metrics/{name}
  { method: MetricDictionaryService.method.deleteMetricEntry, verb: "DELETE", template: "/v1/dictionary/metrics/{name}", segments: ["v1","dictionary","metrics",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/modelcontext/entities:search
  { method: EntityService.method.searchEntities, verb: "POST", template: "/v1/modelcontext/entities:search", segments: ["v1","modelcontext","entities"], custom: "search", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/fields:listDefault
  { method: EntityService.method.listDefaultFields, verb: "POST", template: "/v1/modelcontext/fields:listDefault", segments: ["v1","modelcontext","fields"], custom: "listDefault", variables: [], body: "*", responseBody: "" },
  // GET /v1/events/{id}
  { method: EventQueryService.method.getEvent, verb: "GET", template: "/v1/events/{id}", segments: ["v1","events",1], custom: "", variables: [{"path":["id"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // POST /v1/events:search
  { method: EventQueryService.method.searchEvents, verb: "POST", template: "/v1/events:search", segments: ["v1","events"], custom: "search", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:count
  { method: EventQueryService.method.countEvents, verb: "POST", template: "/v1/events:count", segments: ["v1","events"], custom: "count", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:frequency
  { method: EventQueryService.method.countEventFrequency, verb: "POST", template: "/v1/events:frequency", segments: ["v1","events"], custom: "frequency", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:group
  { method: EventQueryService.method.groupEvents, verb: "POST", template: "/v1/events:group", segments: ["v1","events"], custom: "group", variables: [], body: "*", responseBody: "" },
  // POST /v1/events:watch
  { method: EventQueryService.method.watchEvents, verb: "POST", template: "/v1/events:watch", segments: ["v1","events"], custom: "watch", variables: [], body: "*", responseBody: "" },
  // POST /v1/event-management/annotate
  { method: EventManagementService.method.annotateEvents, verb: "POST", template: "/v1/event-management/annotate", segments: ["v1","event-management","annotate"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/event-management/status
  { method: EventManagementService.method.setEventStatus, verb: "POST", template: "/v1/event-management/status", segments: ["v1","event-management","status"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/event-management/status:matching
  { method: EventManagementService.method.setMatchingStatus, verb: "POST", template: "/v1/event-management/status:matching", segments: ["v1","event-management","status"], custom: "matching", variables: [], body: "*", responseBody: "" },
  // POST /v1/event-views
  { method: EventViewService.method.createEventView, verb: "POST", template: "/v1/event-views", segments: ["v1","event-views"], custom: "", variables: [], body: "view", responseBody: "" },
  // GET /v1/event-views
  { method: EventViewService.method.listEventViews, verb: "GET", template: "/v1/event-views", segments: ["v1","event-views"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/event-views/{view.name}
  { method: EventViewService.method.replaceEventView, verb: "PUT", template: "/v1/event-views/{view.name}", segments: ["v1","event-views",1], custom: "", variables: [{"path":["view","name"],"start":2,"end":3,"many":false}], body: "view", responseBody: "" },
  // DELETE /v1/event-views/{name}
  { method: EventViewService.method.deleteEventView, verb: "DELETE", template: "/v1/event-views/{name}", segments: ["v1","event-views",1], custom: "", variables: [{"path":["name"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // POST /v1/modelcontext/maintwindows
  { method: MaintenanceWindowService.method.createMaintenanceWindow, verb: "POST", template: "/v1/modelcontext/maintwindows", segments: ["v1","modelcontext","maintwindows"], custom: "", variables: [], body: "*", responseBody: "" },
  // PUT /v1/modelcontext/maintwindows
  { method: MaintenanceWindowService.method.replaceMaintenanceWindow, verb: "PUT", template: "/v1/modelcontext/maintwindows", segments: ["v1","modelcontext","maintwindows"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:list
  { method: MaintenanceWindowService.method.listMaintenanceWindows, verb: "POST", template: "/v1/modelcontext/maintwindows:list", segments: ["v1","modelcontext","maintwindows"], custom: "list", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:search
  { method: MaintenanceWindowService.method.searchMaintenanceWindows, verb: "POST", template: "/v1/modelcontext/maintwindows:search", segments: ["v1","modelcontext","maintwindows"], custom: "search", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:deleteBulk
  { method: MaintenanceWindowService.method.deleteMaintenanceWindows, verb: "POST", template: "/v1/modelcontext/maintwindows:deleteBulk", segments: ["v1","modelcontext","maintwindows"], custom: "deleteBulk", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:start
  { method: MaintenanceWindowService.method.startMaintenanceWindow, verb: "POST", template: "/v1/modelcontext/maintwindows:start", segments: ["v1","modelcontext","maintwindows"], custom: "start", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:stop
  { method: MaintenanceWindowService.method.stopMaintenanceWindow, verb: "POST", template: "/v1/modelcontext/maintwindows:stop", segments: ["v1","modelcontext","maintwindows"], custom: "stop", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:runs
  { method: MaintenanceWindowService.method.listMaintenanceRuns, verb: "POST", template: "/v1/modelcontext/maintwindows:runs", segments: ["v1","modelcontext","maintwindows"], custom: "runs", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/maintwindows:preview
  { method: MaintenanceWindowService.method.previewMaintenanceWindow, verb: "POST", template: "/v1/modelcontext/maintwindows:preview", segments: ["v1","modelcontext","maintwindows"], custom: "preview", variables: [], body: "*", responseBody: "" },
  // POST /v1/metrics:search
  { method: MetricQueryService.method.searchMetrics, verb: "POST", template: "/v1/metrics:search", segments: ["v1","metrics"], custom: "search", variables: [], body: "*", responseBody: "" },
  // GET /v1/notification/deliveries
  { method: DeliveryService.method.listDeliveries, verb: "GET", template: "/v1/notification/deliveries", segments: ["v1","notification","deliveries"], custom: "", variables: [], body: "", responseBody: "" },
  // GET /v1/notification/deliveries/{id}
  { method: DeliveryService.method.getDelivery, verb: "GET", template: "/v1/notification/deliveries/{id}", segments: ["v1","notification","deliveries",1], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // GET /v1/notification/deliveries/{id}/members
  { method: DeliveryService.method.listDeliveryMembers, verb: "GET", template: "/v1/notification/deliveries/{id}/members", segments: ["v1","notification","deliveries",1,"members"], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/notification/rules/{name}:explain
  { method: DeliveryService.method.explainNotification, verb: "POST", template: "/v1/notification/rules/{name}:explain", segments: ["v1","notification","rules",1], custom: "explain", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "*", responseBody: "" },
  // POST /v1/notification/occurrences/{id}:explain
  { method: DeliveryService.method.explainOccurrence, verb: "POST", template: "/v1/notification/occurrences/{id}:explain", segments: ["v1","notification","occurrences",1], custom: "explain", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "*", responseBody: "" },
  // GET /v1/notification/health
  { method: DeliveryService.method.getNotificationHealth, verb: "GET", template: "/v1/notification/health", segments: ["v1","notification","health"], custom: "", variables: [], body: "", responseBody: "" },
  // POST /v1/notification/deliveries/{id}:retry
  { method: DeliveryService.method.retryDelivery, verb: "POST", template: "/v1/notification/deliveries/{id}:retry", segments: ["v1","notification","deliveries",1], custom: "retry", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "*", responseBody: "" },
  // POST /v1/notification/deliveries:retry
  { method: DeliveryService.method.retryDeliveries, verb: "POST", template: "/v1/notification/deliveries:retry", segments: ["v1","notification","deliveries"], custom: "retry", variables: [], body: "*", responseBody: "" },
  // POST /v1/notification/destinations
  { method: DestinationService.method.createDestination, verb: "POST", template: "/v1/notification/destinations", segments: ["v1","notification","destinations"], custom: "", variables: [], body: "destination", responseBody: "" },
  // GET /v1/notification/destinations/{name}
  { method: DestinationService.method.getDestination, verb: "GET", template: "/v1/notification/destinations/{name}", segments: ["v1","notification","destinations",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // GET /v1/notification/destinations
  { method: DestinationService.method.listDestinations, verb: "GET", template: "/v1/notification/destinations", segments: ["v1","notification","destinations"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/notification/destinations/{destination.name}
  { method: DestinationService.method.replaceDestination, verb: "PUT", template: "/v1/notification/destinations/{destination.name}", segments: ["v1","notification","destinations",1], custom: "", variables: [{"path":["destination","name"],"start":3,"end":4,"many":false}], body: "destination", responseBody: "" },
  // DELETE /v1/notification/destinations/{name}
  { method: DestinationService.method.deleteDestination, verb: "DELETE", template: "/v1/notification/destinations/{name}", segments: ["v1","notification","destinations",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/notification/destinations:test
  { method: DestinationService.method.testDestination, verb: "POST", template: "/v1/notification/destinations:test", segments: ["v1","notification","destinations"], custom: "test", variables: [], body: "destination", responseBody: "" },
  // POST /v1/notification/rules
  { method: RuleService.method.createRule, verb: "POST", template: "/v1/notification/rules", segments: ["v1","notification","rules"], custom: "", variables: [], body: "rule", responseBody: "" },
  // GET /v1/notification/rules/{name}
  { method: RuleService.method.getRule, verb: "GET", template: "/v1/notification/rules/{name}", segments: ["v1","notification","rules",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // GET /v1/notification/rules
  { method: RuleService.method.listRules, verb: "GET", template: "/v1/notification/rules", segments: ["v1","notification","rules"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/notification/rules/{rule.name}
  { method: RuleService.method.updateRule, verb: "PUT", template: "/v1/notification/rules/{rule.name}", segments: ["v1","notification","rules",1], custom: "", variables: [{"path":["rule","name"],"start":3,"end":4,"many":false}], body: "rule", responseBody: "" },
  // DELETE /v1/notification/rules/{name}
  { method: RuleService.method.deleteRule, verb: "DELETE", template: "/v1/notification/rules/{name}", segments: ["v1","notification","rules",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/notification/rules/{name}:preview
  { method: RuleService.method.previewRule, verb: "POST", template: "/v1/notification/rules/{name}:preview", segments: ["v1","notification","rules",1], custom: "preview", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "*", responseBody: "" },
  // POST /v1/notification/rules:preview
  { method: RuleService.method.previewMessage, verb: "POST", template: "/v1/notification/rules:preview", segments: ["v1","notification","rules"], custom: "preview", variables: [], body: "*", responseBody: "" },
  // POST /v1/notification/silences
  { method: SilenceService.method.createSilence, verb: "POST", template: "/v1/notification/silences", segments: ["v1","notification","silences"], custom: "", variables: [], body: "silence", responseBody: "silence" },
  // GET /v1/notification/silences/{id}
  { method: SilenceService.method.getSilence, verb: "GET", template: "/v1/notification/silences/{id}", segments: ["v1","notification","silences",1], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "", responseBody: "silence" },
  // GET /v1/notification/silences
  { method: SilenceService.method.listSilences, verb: "GET", template: "/v1/notification/silences", segments: ["v1","notification","silences"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/notification/silences/{id}
  { method: SilenceService.method.replaceSilence, verb: "PUT", template: "/v1/notification/silences/{id}", segments: ["v1","notification","silences",1], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "silence", responseBody: "silence" },
  // POST /v1/notification/silences/{id}:expire
  { method: SilenceService.method.expireSilence, verb: "POST", template: "/v1/notification/silences/{id}:expire", segments: ["v1","notification","silences",1], custom: "expire", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "*", responseBody: "silence" },
  // POST /v1/notification/silences:preview
  { method: SilenceService.method.previewSilence, verb: "POST", template: "/v1/notification/silences:preview", segments: ["v1","notification","silences"], custom: "preview", variables: [], body: "silence", responseBody: "" },
  // POST /v1/notification/triggers
  { method: TriggerService.method.createTrigger, verb: "POST", template: "/v1/notification/triggers", segments: ["v1","notification","triggers"], custom: "", variables: [], body: "trigger", responseBody: "" },
  // GET /v1/notification/triggers/{name}
  { method: TriggerService.method.getTrigger, verb: "GET", template: "/v1/notification/triggers/{name}", segments: ["v1","notification","triggers",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // GET /v1/notification/triggers
  { method: TriggerService.method.listTriggers, verb: "GET", template: "/v1/notification/triggers", segments: ["v1","notification","triggers"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/notification/triggers/{trigger.name}
  { method: TriggerService.method.updateTrigger, verb: "PUT", template: "/v1/notification/triggers/{trigger.name}", segments: ["v1","notification","triggers",1], custom: "", variables: [{"path":["trigger","name"],"start":3,"end":4,"many":false}], body: "trigger", responseBody: "" },
  // POST /v1/notification/triggers:preview
  { method: TriggerService.method.previewTrigger, verb: "POST", template: "/v1/notification/triggers:preview", segments: ["v1","notification","triggers"], custom: "preview", variables: [], body: "*", responseBody: "" },
  // DELETE /v1/notification/triggers/{name}
  { method: TriggerService.method.deleteTrigger, verb: "DELETE", template: "/v1/notification/triggers/{name}", segments: ["v1","notification","triggers",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/modelcontext/customproperties:set
  { method: CustomPropertyService.method.setCustomProperties, verb: "POST", template: "/v1/modelcontext/customproperties:set", segments: ["v1","modelcontext","customproperties"], custom: "set", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/customproperties:delete
  { method: CustomPropertyService.method.deleteCustomProperties, verb: "POST", template: "/v1/modelcontext/customproperties:delete", segments: ["v1","modelcontext","customproperties"], custom: "delete", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/custompropertyupdaters:create
  { method: CustomPropertyUpdaterService.method.createCustomPropertyUpdaters, verb: "POST", template: "/v1/modelcontext/custompropertyupdaters:create", segments: ["v1","modelcontext","custompropertyupdaters"], custom: "create", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/custompropertyupdaters:change
  { method: CustomPropertyUpdaterService.method.replaceCustomPropertyUpdaters, verb: "POST", template: "/v1/modelcontext/custompropertyupdaters:change", segments: ["v1","modelcontext","custompropertyupdaters"], custom: "change", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/custompropertyupdaters:delete
  { method: CustomPropertyUpdaterService.method.deleteCustomPropertyUpdaters, verb: "POST", template: "/v1/modelcontext/custompropertyupdaters:delete", segments: ["v1","modelcontext","custompropertyupdaters"], custom: "delete", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/custompropertyupdaters:list
  { method: CustomPropertyUpdaterService.method.listCustomPropertyUpdaters, verb: "POST", template: "/v1/modelcontext/custompropertyupdaters:list", segments: ["v1","modelcontext","custompropertyupdaters"], custom: "list", variables: [], body: "*", responseBody: "" },
  // POST /v1/modelcontext/custompropertyupdaters:manage
  { method: CustomPropertyUpdaterService.method.switchCustomPropertyUpdaters, verb: "POST", template: "/v1/modelcontext/custompropertyupdaters:manage", segments: ["v1","modelcontext","custompropertyupdaters"], custom: "manage", variables: [], body: "*", responseBody: "" },
  // POST /v1/data-receiver/models
  { method: DataReceiverService.method.putModels, verb: "POST", template: "/v1/data-receiver/models", segments: ["v1","data-receiver","models"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/data-receiver/metrics
  { method: DataReceiverService.method.putMetrics, verb: "POST", template: "/v1/data-receiver/metrics", segments: ["v1","data-receiver","metrics"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/data-receiver/events
  { method: DataReceiverService.method.putEvents, verb: "POST", template: "/v1/data-receiver/events", segments: ["v1","data-receiver","events"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/api-clients
  { method: ApiClientService.method.createApiClient, verb: "POST", template: "/v1/api-clients", segments: ["v1","api-clients"], custom: "", variables: [], body: "api_client", responseBody: "" },
  // GET /v1/api-clients
  { method: ApiClientService.method.listApiClients, verb: "GET", template: "/v1/api-clients", segments: ["v1","api-clients"], custom: "", variables: [], body: "", responseBody: "" },
  // GET /v1/api-clients/{id}
  { method: ApiClientService.method.getApiClient, verb: "GET", template: "/v1/api-clients/{id}", segments: ["v1","api-clients",1], custom: "", variables: [{"path":["id"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // DELETE /v1/api-clients/{id}
  { method: ApiClientService.method.deleteApiClient, verb: "DELETE", template: "/v1/api-clients/{id}", segments: ["v1","api-clients",1], custom: "", variables: [{"path":["id"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // POST /v1/api-clients/{client_id}/keys
  { method: ApiClientService.method.createApiKey, verb: "POST", template: "/v1/api-clients/{client_id}/keys", segments: ["v1","api-clients",1,"keys"], custom: "", variables: [{"path":["client_id"],"start":2,"end":3,"many":false}], body: "key", responseBody: "" },
  // GET /v1/api-clients/{client_id}/keys
  { method: ApiClientService.method.listApiKeys, verb: "GET", template: "/v1/api-clients/{client_id}/keys", segments: ["v1","api-clients",1,"keys"], custom: "", variables: [{"path":["client_id"],"start":2,"end":3,"many":false}], body: "", responseBody: "" },
  // DELETE /v1/api-clients/{client_id}/keys/{key_id}
  { method: ApiClientService.method.deleteApiKey, verb: "DELETE", template: "/v1/api-clients/{client_id}/keys/{key_id}", segments: ["v1","api-clients",1,"keys",1], custom: "", variables: [{"path":["client_id"],"start":2,"end":3,"many":false},{"path":["key_id"],"start":4,"end":5,"many":false}], body: "", responseBody: "" },
  // GET /v1/audit-log
  { method: AuditLogService.method.listAuditEntries, verb: "GET", template: "/v1/audit-log", segments: ["v1","audit-log"], custom: "", variables: [], body: "", responseBody: "" },
  // POST /v1/console-sessions
  { method: SessionService.method.createSession, verb: "POST", template: "/v1/console-sessions", segments: ["v1","console-sessions"], custom: "", variables: [], body: "*", responseBody: "" },
  // GET /v1/console-sessions/current
  { method: SessionService.method.getSession, verb: "GET", template: "/v1/console-sessions/current", segments: ["v1","console-sessions","current"], custom: "", variables: [], body: "", responseBody: "" },
  // DELETE /v1/console-sessions/current
  { method: SessionService.method.deleteSession, verb: "DELETE", template: "/v1/console-sessions/current", segments: ["v1","console-sessions","current"], custom: "", variables: [], body: "", responseBody: "" },
  // POST /v1/user-mgmt/end-user-accounts
  { method: UserAccountService.method.createUserAccount, verb: "POST", template: "/v1/user-mgmt/end-user-accounts", segments: ["v1","user-mgmt","end-user-accounts"], custom: "", variables: [], body: "*", responseBody: "" },
  // GET /v1/user-mgmt/end-user-accounts/{id}
  { method: UserAccountService.method.getUserAccount, verb: "GET", template: "/v1/user-mgmt/end-user-accounts/{id}", segments: ["v1","user-mgmt","end-user-accounts",1], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // GET /v1/user-mgmt/end-user-accounts
  { method: UserAccountService.method.listUserAccounts, verb: "GET", template: "/v1/user-mgmt/end-user-accounts", segments: ["v1","user-mgmt","end-user-accounts"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/user-mgmt/end-user-accounts/{id}
  { method: UserAccountService.method.updateUserAccount, verb: "PUT", template: "/v1/user-mgmt/end-user-accounts/{id}", segments: ["v1","user-mgmt","end-user-accounts",1], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "*", responseBody: "" },
  // DELETE /v1/user-mgmt/end-user-accounts/{id}
  { method: UserAccountService.method.deleteUserAccount, verb: "DELETE", template: "/v1/user-mgmt/end-user-accounts/{id}", segments: ["v1","user-mgmt","end-user-accounts",1], custom: "", variables: [{"path":["id"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
  // POST /v1/user-mgmt/end-user-account-ids
  { method: UserAccountService.method.searchUserAccountIds, verb: "POST", template: "/v1/user-mgmt/end-user-account-ids", segments: ["v1","user-mgmt","end-user-account-ids"], custom: "", variables: [], body: "*", responseBody: "" },
  // POST /v1/user-mgmt/end-user-groups
  { method: UserGroupService.method.createUserGroup, verb: "POST", template: "/v1/user-mgmt/end-user-groups", segments: ["v1","user-mgmt","end-user-groups"], custom: "", variables: [], body: "group", responseBody: "" },
  // GET /v1/user-mgmt/end-user-groups/{name}
  { method: UserGroupService.method.getUserGroup, verb: "GET", template: "/v1/user-mgmt/end-user-groups/{name}", segments: ["v1","user-mgmt","end-user-groups",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "group" },
  // GET /v1/user-mgmt/end-user-groups
  { method: UserGroupService.method.listUserGroups, verb: "GET", template: "/v1/user-mgmt/end-user-groups", segments: ["v1","user-mgmt","end-user-groups"], custom: "", variables: [], body: "", responseBody: "" },
  // PUT /v1/user-mgmt/end-user-groups/{group.name}
  { method: UserGroupService.method.updateUserGroup, verb: "PUT", template: "/v1/user-mgmt/end-user-groups/{group.name}", segments: ["v1","user-mgmt","end-user-groups",1], custom: "", variables: [{"path":["group","name"],"start":3,"end":4,"many":false}], body: "group", responseBody: "" },
  // DELETE /v1/user-mgmt/end-user-groups/{name}
  { method: UserGroupService.method.deleteUserGroup, verb: "DELETE", template: "/v1/user-mgmt/end-user-groups/{name}", segments: ["v1","user-mgmt","end-user-groups",1], custom: "", variables: [{"path":["name"],"start":3,"end":4,"many":false}], body: "", responseBody: "" },
] as const;
