import { getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { Permission, permission } from "#gen/belfry/auth/v1/permission_pb.ts";
import { status_override } from "#gen/belfry/transcoding/v1/options_pb.ts";
import { http } from "#gen/google/api/annotations_pb.ts";
import { methods, nameOf, routesOf } from "./schema.ts";

/** Permission, body, response body (`.` is the whole message), method, path, RPC. */
const table = `
ACCOUNTS    *           .            POST   /v1/user-mgmt/end-user-accounts               UserAccountService.CreateUserAccount
ACCOUNTS    -           .            GET    /v1/user-mgmt/end-user-accounts/{}            UserAccountService.GetUserAccount
ACCOUNTS    -           .            GET    /v1/user-mgmt/end-user-accounts               UserAccountService.ListUserAccounts
ACCOUNTS    *           .            PUT    /v1/user-mgmt/end-user-accounts/{}            UserAccountService.UpdateUserAccount
ACCOUNTS    -           .            DELETE /v1/user-mgmt/end-user-accounts/{}            UserAccountService.DeleteUserAccount
ACCOUNTS    *           .            POST   /v1/user-mgmt/end-user-account-ids            UserAccountService.SearchUserAccountIds
ACCOUNTS    group       .            POST   /v1/user-mgmt/end-user-groups                 UserGroupService.CreateUserGroup
ACCOUNTS    -           group        GET    /v1/user-mgmt/end-user-groups/{}              UserGroupService.GetUserGroup
ACCOUNTS    -           .            GET    /v1/user-mgmt/end-user-groups                 UserGroupService.ListUserGroups
ACCOUNTS    group       .            PUT    /v1/user-mgmt/end-user-groups/{}              UserGroupService.UpdateUserGroup
ACCOUNTS    -           .            DELETE /v1/user-mgmt/end-user-groups/{}              UserGroupService.DeleteUserGroup
ADMINISTER  *           .            POST   /v1/credentials                               CredentialService.CreateCredential
ADMINISTER  -           .            GET    /v1/credentials                               CredentialService.ListCredentials
ADMINISTER  *           .            PUT    /v1/credentials/{}                            CredentialService.ReplaceCredential
ADMINISTER  -           .            DELETE /v1/credentials/{}                            CredentialService.DeleteCredential
CONFIGURE   trigger     .            POST   /v1/notification/triggers                     TriggerService.CreateTrigger
READ        -           .            GET    /v1/notification/triggers/{}                  TriggerService.GetTrigger
READ        -           .            GET    /v1/notification/triggers                     TriggerService.ListTriggers
CONFIGURE   trigger     .            PUT    /v1/notification/triggers/{}                  TriggerService.UpdateTrigger
READ        *           .            POST   /v1/notification/triggers:preview             TriggerService.PreviewTrigger
CONFIGURE   -           .            DELETE /v1/notification/triggers/{}                  TriggerService.DeleteTrigger
CONFIGURE   destination .            POST   /v1/notification/destinations                 DestinationService.CreateDestination
READ        -           .            GET    /v1/notification/destinations/{}              DestinationService.GetDestination
READ        -           .            GET    /v1/notification/destinations                 DestinationService.ListDestinations
CONFIGURE   destination .            PUT    /v1/notification/destinations/{}              DestinationService.ReplaceDestination
CONFIGURE   -           .            DELETE /v1/notification/destinations/{}              DestinationService.DeleteDestination
CONFIGURE   destination .            POST   /v1/notification/destinations:test            DestinationService.TestDestination
CONFIGURE   rule        .            POST   /v1/notification/rules                        RuleService.CreateRule
READ        -           .            GET    /v1/notification/rules/{}                     RuleService.GetRule
READ        -           .            GET    /v1/notification/rules                        RuleService.ListRules
CONFIGURE   rule        .            PUT    /v1/notification/rules/{}                     RuleService.UpdateRule
CONFIGURE   -           .            DELETE /v1/notification/rules/{}                     RuleService.DeleteRule
READ        *           .            POST   /v1/notification/rules/{}:preview             RuleService.PreviewRule
READ        *           .            POST   /v1/notification/rules:preview                RuleService.PreviewMessage
READ        -           .            GET    /v1/notification/deliveries                   DeliveryService.ListDeliveries
READ        -           .            GET    /v1/notification/deliveries/{}                DeliveryService.GetDelivery
READ        -           .            GET    /v1/notification/deliveries/{}/members        DeliveryService.ListDeliveryMembers
READ        *           .            POST   /v1/notification/rules/{}:explain             DeliveryService.ExplainNotification
READ        *           .            POST   /v1/notification/occurrences/{}:explain       DeliveryService.ExplainOccurrence
READ        -           .            GET    /v1/notification/health                       DeliveryService.GetNotificationHealth
CONFIGURE   *           .            POST   /v1/notification/deliveries:retry             DeliveryService.RetryDeliveries
CONFIGURE   *           .            POST   /v1/notification/deliveries/{}:retry          DeliveryService.RetryDelivery
OPERATE     silence     silence      POST   /v1/notification/silences                     SilenceService.CreateSilence
READ        -           silence      GET    /v1/notification/silences/{}                  SilenceService.GetSilence
READ        -           .            GET    /v1/notification/silences                     SilenceService.ListSilences
OPERATE     silence     silence      PUT    /v1/notification/silences/{}                  SilenceService.ReplaceSilence
OPERATE     *           silence      POST   /v1/notification/silences/{}:expire           SilenceService.ExpireSilence
READ        silence     .            POST   /v1/notification/silences:preview             SilenceService.PreviewSilence
CONFIGURE   entity_field entity_field POST  /v1/dictionary/entity_fields                  EntityFieldDictionaryService.CreateEntityField
READ        -           entity_field GET    /v1/dictionary/entity_fields/{}               EntityFieldDictionaryService.GetEntityField
READ        -           .            GET    /v1/dictionary/entity_fields                  EntityFieldDictionaryService.ListEntityFields
CONFIGURE   entity_field entity_field PATCH /v1/dictionary/entity_fields/{}               EntityFieldDictionaryService.UpdateEntityField
CONFIGURE   -           .            DELETE /v1/dictionary/entity_fields/{}               EntityFieldDictionaryService.DeleteEntityField
CONFIGURE   event_field event_field  POST   /v1/dictionary/event_fields                   EventFieldDictionaryService.CreateEventField
READ        -           event_field  GET    /v1/dictionary/event_fields/{}                EventFieldDictionaryService.GetEventField
READ        -           .            GET    /v1/dictionary/event_fields                   EventFieldDictionaryService.ListEventFields
CONFIGURE   event_field event_field  PATCH  /v1/dictionary/event_fields/{}                EventFieldDictionaryService.UpdateEventField
CONFIGURE   -           .            DELETE /v1/dictionary/event_fields/{}                EventFieldDictionaryService.DeleteEventField
CONFIGURE   metric      metric       POST   /v1/dictionary/metrics                        MetricDictionaryService.CreateMetricEntry
READ        -           metric       GET    /v1/dictionary/metrics/{}                     MetricDictionaryService.GetMetricEntry
READ        *           .            POST   /v1/dictionary/metrics:batchGet               MetricDictionaryService.BatchGetMetricEntries
READ        -           .            GET    /v1/dictionary/metrics                        MetricDictionaryService.ListMetricEntries
CONFIGURE   metric      metric       PATCH  /v1/dictionary/metrics/{}                     MetricDictionaryService.UpdateMetricEntry
CONFIGURE   -           .            DELETE /v1/dictionary/metrics/{}                     MetricDictionaryService.DeleteMetricEntry
INGEST      *           .            POST   /v1/data-receiver/models                      DataReceiverService.PutModels
INGEST      *           .            POST   /v1/data-receiver/metrics                     DataReceiverService.PutMetrics
INGEST      *           .            POST   /v1/data-receiver/events                      DataReceiverService.PutEvents
READ        *           .            POST   /v1/modelcontext/entities:search              EntityService.SearchEntities
READ        *           .            POST   /v1/modelcontext/fields:listDefault           EntityService.ListDefaultFields
OPERATE     *           .            POST   /v1/modelcontext/customproperties:set         CustomPropertyService.SetCustomProperties
OPERATE     *           .            POST   /v1/modelcontext/customproperties:delete      CustomPropertyService.DeleteCustomProperties
CONFIGURE   *           .            POST   /v1/modelcontext/custompropertyupdaters:create CustomPropertyUpdaterService.CreateCustomPropertyUpdaters
CONFIGURE   *           .            POST   /v1/modelcontext/custompropertyupdaters:change CustomPropertyUpdaterService.ReplaceCustomPropertyUpdaters
CONFIGURE   *           .            POST   /v1/modelcontext/custompropertyupdaters:delete CustomPropertyUpdaterService.DeleteCustomPropertyUpdaters
READ        *           .            POST   /v1/modelcontext/custompropertyupdaters:list  CustomPropertyUpdaterService.ListCustomPropertyUpdaters
CONFIGURE   *           .            POST   /v1/modelcontext/custompropertyupdaters:manage CustomPropertyUpdaterService.SwitchCustomPropertyUpdaters
CONFIGURE   *           .            POST   /v1/modelcontext/maintwindows                 MaintenanceWindowService.CreateMaintenanceWindow
CONFIGURE   *           .            PUT    /v1/modelcontext/maintwindows                 MaintenanceWindowService.ReplaceMaintenanceWindow
READ        *           .            POST   /v1/modelcontext/maintwindows:list            MaintenanceWindowService.ListMaintenanceWindows
READ        *           .            POST   /v1/modelcontext/maintwindows:search          MaintenanceWindowService.SearchMaintenanceWindows
CONFIGURE   *           .            POST   /v1/modelcontext/maintwindows:deleteBulk      MaintenanceWindowService.DeleteMaintenanceWindows
CONFIGURE   *           .            POST   /v1/modelcontext/maintwindows:start           MaintenanceWindowService.StartMaintenanceWindow
CONFIGURE   *           .            POST   /v1/modelcontext/maintwindows:stop            MaintenanceWindowService.StopMaintenanceWindow
READ        *           .            POST   /v1/modelcontext/maintwindows:runs            MaintenanceWindowService.ListMaintenanceRuns
READ        *           .            POST   /v1/modelcontext/maintwindows:preview         MaintenanceWindowService.PreviewMaintenanceWindow
READ        *           .            POST   /v1/metrics:search                            MetricQueryService.SearchMetrics
READ        -           .            GET    /v1/events/{}                                 EventQueryService.GetEvent
READ        *           .            POST   /v1/events:search                             EventQueryService.SearchEvents
READ        *           .            POST   /v1/events:count                              EventQueryService.CountEvents
READ        *           .            POST   /v1/events:frequency                          EventQueryService.CountEventFrequency
READ        *           .            POST   /v1/events:group                              EventQueryService.GroupEvents
READ        *           .            POST   /v1/events:watch                              EventQueryService.WatchEvents
OPERATE     *           .            POST   /v1/event-management/status:matching          EventManagementService.SetMatchingStatus
OPERATE     view        .            POST   /v1/event-views                               EventViewService.CreateEventView
READ        -           .            GET    /v1/event-views                               EventViewService.ListEventViews
OPERATE     view        .            PUT    /v1/event-views/{}                            EventViewService.ReplaceEventView
OPERATE     -           .            DELETE /v1/event-views/{}                            EventViewService.DeleteEventView
OPERATE     *           .            POST   /v1/event-management/annotate                 EventManagementService.AnnotateEvents
OPERATE     *           .            POST   /v1/event-management/status                   EventManagementService.SetEventStatus
ADMINISTER  api_client  .            POST   /v1/api-clients                               ApiClientService.CreateApiClient
ADMINISTER  -           .            GET    /v1/api-clients                               ApiClientService.ListApiClients
ADMINISTER  -           .            GET    /v1/api-clients/{}                            ApiClientService.GetApiClient
ADMINISTER  -           .            DELETE /v1/api-clients/{}                            ApiClientService.DeleteApiClient
ADMINISTER  key         .            POST   /v1/api-clients/{}/keys                       ApiClientService.CreateApiKey
ADMINISTER  -           .            GET    /v1/api-clients/{}/keys                       ApiClientService.ListApiKeys
ADMINISTER  -           .            DELETE /v1/api-clients/{}/keys/{}                    ApiClientService.DeleteApiKey
ADMINISTER  -           .            GET    /v1/audit-log                                 AuditLogService.ListAuditEntries
SIGN_IN     *           .            POST   /v1/console-sessions                          SessionService.CreateSession
SELF        -           .            GET    /v1/console-sessions/current                  SessionService.GetSession
SELF        -           .            DELETE /v1/console-sessions/current                  SessionService.DeleteSession
`;

const permissionNames = new Map<number, string>(Object.entries(Permission).map(([name, number]) => [number, name]));

test("every route leads to its RPC, with its bodies and its permission", () => {
  const found = methods.flatMap((method) => {
    const { body, responseBody } = getOption(method, http);
    const name = permissionNames.get(getOption(method, permission));
    return routesOf(method).map((route) => [name, body || "-", responseBody || ".", route, nameOf(method)].join(" "));
  });
  const wanted = table
    .trim()
    .split("\n")
    .map((line) => line.replaceAll(/ +/g, " "));
  expect(found.sort()).toEqual(wanted.sort());
});

test("the receiver's streams need the permission to ingest", () => {
  const streams = methods.filter((method) => routesOf(method).length === 0);
  expect(streams.map(nameOf)).toEqual([
    "DataReceiverService.PutModel",
    "DataReceiverService.PutMetric",
    "DataReceiverService.PutEvent",
  ]);
  for (const method of streams) expect(getOption(method, permission)).toBe(Permission.INGEST);
});

test("these errors and no others have an HTTP status of their own", () => {
  const found = methods.flatMap((method) =>
    getOption(method, status_override).map(({ code, httpStatus }) => `${nameOf(method)} ${code} ${httpStatus}`),
  );
  expect(found.sort()).toEqual([
    "CredentialService.CreateCredential 16 500",
    "CredentialService.CreateCredential 3 500",
    "CredentialService.DeleteCredential 16 500",
    "CredentialService.DeleteCredential 3 500",
    "CredentialService.ListCredentials 16 500",
    "CredentialService.ListCredentials 3 500",
    "CredentialService.ReplaceCredential 16 500",
    "CredentialService.ReplaceCredential 3 500",
    "DestinationService.DeleteDestination 9 412",
    "EntityFieldDictionaryService.DeleteEntityField 5 400",
    "MaintenanceWindowService.CreateMaintenanceWindow 6 400",
    "MetricDictionaryService.GetMetricEntry 5 400",
    "TriggerService.DeleteTrigger 9 412",
  ]);
});
