import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { exclusiveWith } from "../../src/transcoding/json/oneof-siblings.ts";
import { messages } from "./schema.ts";

/**
 * What messages look like in JSON: their members in order, each with its kind. `?`: left out when unset; else there is always
 * a value, null for a message. `int64`: a string of digits. Names are those of other messages and of enums.
 */
const table = `
users.UserAccount: createdAt: time, createdBy: string, email: string, firstName: string, groups: [string], id: string,
  lastName: string, updatedAt: time, password?: string
users.CreateUserAccountResponse: user: UserAccount
users.ListUserAccountsResponse: users: [UserAccount], nextPageToken: string, totalCount: int64
users.ListUserGroupsResponse: groups: [UserGroup], nextPageToken: string, totalCount: int64
users.SearchUserAccountIdsResponse: ids: [string]
users.UserGroup: name: string, cloudRoles: [string], restrictionFilters: [string]
credentials.Credential: id: string, info: CredentialInfo
credentials.CredentialInfo: name: string, type: string, description: string, tags: [string], usedBy: CredentialUsers,
  allowedApiClients: [string], allowedHosts: [string], boundHosts: [string]
credentials.CredentialUsers: collections: CredentialUses, destinations: CredentialUses
credentials.CredentialUses: ids: [string]
credentials.CreateCredentialResponse: info: Credential
credentials.ListCredentialsResponse: credentials: [Credential], nextPageToken: string, totalCount: int64
credentials.ReplaceCredentialResponse: info: Credential
credentials.DeleteCredentialResponse: id: string
notifications.Trigger: name: string, description: string, tags: [string], type: TriggerType, ruleNames: [string],
  recentNotificationCount: int64, trouble: string, etag: string
notifications.TriggerType: event?: EventSource, metricThreshold?: MetricThresholdSource, staleData?: StaleDataSource
notifications.EventSource: query: TriggerQuery
notifications.TriggerQuery: clause: TriggerClause
notifications.MetricThresholdSource: metricName: string, entityQuery: Query, min?: number, max?: number, metricClause:
  Clause
notifications.StaleDataSource: metricName: string, eventName: string, entityQuery: Query, durationSec: int64
notifications.PreviewTriggerRequest: type: TriggerType, timeRange: TimeRange
notifications.PreviewTriggerResponse: count: int64, events: [Event], partial: boolean
notifications.ListTriggersResponse: triggers: [Trigger], totalCount: int64, nextPageToken: string
notifications.Destination: name: string, description: string, tags: [string], type: DestinationType, ruleNames:
  [string], recentNotificationCount: int64, maxPerMinute: number, disabledReason: string, breakerState: BreakerState,
  etag: string
notifications.DestinationType: email?: EmailDestination, event?: EventDestination, officeChat?: OfficeChatDestination,
  incidentPaging?: IncidentPagingDestination, itsm?: ItsmDestination, teamChat?: TeamChatDestination, webhook?:
  WebhookDestination
notifications.EmailDestination: to: string, subject: string, body: string
notifications.EventDestination: nameTemplate: string, typeTemplate: string, summaryTemplate: string, severity:
  Severity, bodyTemplate: string
notifications.OfficeChatDestination: webhookUrl: string, text: string, facts: [Fact]
notifications.Fact: name: string, value: string
notifications.IncidentPagingDestination: integrationKey: string, credentialId: string
notifications.ItsmDestination: baseUrl: string, shortDescription: string, basic?: BasicAuthorization, oauth?:
  OAuthAuthorization, credentialId: string, closeState: number, closeCode: string, closeNotes: string
notifications.BasicAuthorization: username: string, password: string
notifications.OAuthAuthorization: username: string, password: string, clientId: string, clientSecret: string,
  tokenUrl: string, authUrl: string, refreshToken: string
notifications.TeamChatDestination: channel: string, token: string, color: string, credentialId: string
notifications.WebhookDestination: url: string, signingSecret: string, headers: {string}
notifications.ListDestinationsResponse: destinations: [Destination], totalCount: int64, nextPageToken: string
notifications.TestDestinationResponse: destination: Destination, answer: string
notifications.Rule: name: string, description: string, enabled: boolean, triggerNames: [string], destinationNames:
  [string], message: string, repeat: boolean, repeatInterval?: int64, delaySec: int64, sendUpdates: boolean, tags:
  [string], muteDuringMaintenance: boolean, recentNotificationCount: int64, repeatWhile: RepeatWhile, etag:
  string
notifications.ListRulesRequest: name: string, description: string, enabled?: boolean, triggerNames: [string],
  destinationNames: [string], message: string, repeat?: boolean, repeatInterval?: int64, delaySec?: int64,
  sendUpdates?: boolean, tags: [string], pageSize: number, pageToken: string
notifications.ListRulesResponse: rules: [Rule], totalCount: int64, nextPageToken: string
notifications.DeleteRuleResponse: rule: Rule
notifications.PreviewRuleRequest: name: string, eventId?: string, event?: Event
notifications.PreviewMessageRequest: message: string, occurrenceId: string, ruleName: string, triggerNames: [string],
  destinationNames: [string]
notifications.PreviewMessageResponse: text: string, emptyNames: [string], variables: [TemplateVariable], previews:
  [Preview], matches: boolean, steps: [ExplanationStep]
notifications.TemplateVariable: name: string, value: string
notifications.Preview: destination: string, subject: string, body: string
notifications.Delivery: id: string, rule: string, trigger: string, destination: string, eventId: string, occurrenceId:
  string, status: DeliveryStatus, attempts: number, error: string, nextTryTime: time, createTime: time, entityId: string,
  metricName: string, occasion: string, tries: [DeliveryAttempt], subject: string
notifications.ListDeliveriesResponse: deliveries: [Delivery], nextPageToken: string, totalCount: int64
dictionary.EntityField: name: string, label: string, description: string, tags: [string], layer: string, default:
  EntityField
dictionary.ListEntityFieldsResponse: entityFields: [EntityField], nextPageToken: string, totalCount: int64
dictionary.EventField: name: string, label: string, description: string, tags: [string], layer: string, default:
  EventField
dictionary.ListEventFieldsResponse: eventFields: [EventField], nextPageToken: string, totalCount: int64
dictionary.MetricEntry: name: string, layer: string, label: string, description: string, tags: [string], units:
  string, minimum: string, maximum: string, scaleFactor: string, scaleFactorUnits: string, isRate: boolean, default:
  MetricEntry
dictionary.BatchGetMetricEntriesRequest: name: [string]
dictionary.BatchGetMetricEntriesResponse: metrics: [MetricEntry]
dictionary.ListMetricEntriesResponse: metrics: [MetricEntry], nextPageToken: string, totalCount: int64
receiver.PutModelsRequest: detailedResponse: boolean, models: [Model]
receiver.PutModelsResponse: failed: number, succeeded: number, message: string, failedModels: [FailedModel]
receiver.PutMetricsRequest: detailedResponse: boolean, compactMetrics: [CompactMetric], taggedMetrics: [TaggedMetric],
  metrics: [Metric]
receiver.PutMetricsResponse: failed: number, succeeded: number, message: string, failedCompactMetrics:
  [FailedCompactMetric], failedTaggedMetrics: [FailedTaggedMetric], failedMetrics: [FailedMetric]
receiver.PutEventsRequest: detailedResponse: boolean, events: [Event]
receiver.PutEventsResponse: failed: number, succeeded: number, message: string, failedEvents: [FailedEvent]
entities.SearchEntitiesRequest: search_input: EntitySearch, fields: [string]
entities.EntitySearch: query: Query, sortby: [EntitySort], page_input: PageInput, group_by: [EntityGrouping]
entities.EntitySort: field_kind: FieldKind, field: string, order: Order
entities.SearchEntitiesResponse: entities: EntityPage, pageInfo: PageInfo
entities.EntityPage: entities: [Entity], groups: [EntityGroup]
entities.EntityGroup: values: [any], count: int64
entities.Entity: id: string, factIds: [string], schemaIds: [string], name: string, timestamp: int64, tenant: string,
  fields: object, dimensions: {string}, coreProperties: object, createTime: int64, updateTime: int64, productionState:
  int64, priority: int64, livenessTime: int64, customProperties: object
entities.ListDefaultFieldsRequest: option: FieldSelection, searchable_only: boolean
entities.ListDefaultFieldsResponse: fields: [string], fieldSources: {string}
properties.EntitySelection: with_ids?: EntityIds, query?: Query
properties.SetCustomPropertiesResponse: entity_ids: [string]
properties.DeleteCustomPropertiesRequest: input: EntitySelection, property_keys: [string]
properties.CustomPropertyUpdater: id: string, name: string, description: string, entity_input: Query, properties:
  object, enabled: boolean, sequence: number, tags: [string]
properties.UpdaterResult: id: string, error: string
properties.ListCustomPropertyUpdatersResponse: updaters: [CustomPropertyUpdater], page_info: UpdaterPageInfo
properties.UpdaterPageInfo: has_next: boolean, cursor: string
properties.SwitchCustomPropertyUpdatersRequest: ids: [string], action: UpdaterAction
maintenance.MaintenanceWindow: id: string, tenant: string, query?: WindowQuery, withIds?: EntityIds, runMode: RunMode,
  schedule: Schedule, maintenanceState?: number, exitState: number, status: WindowStatus, createTime: int64,
  updateTime: int64, deleted: boolean, createdBy: string, updatedBy: string, name: string, description: string, owner:
  string, notification: WindowNotification, tags: [string], doNotPropagateToChildren: boolean, overrideExitState:
  boolean, force: boolean, runState: RunState, nextStart?: int64, etag: string
maintenance.WindowQuery: type: string, timeRange: TimeRange, clause: Clause
maintenance.WindowNotification: message: string, rules: [string]
maintenance.Schedule: start: int64, duration: int64, skipNext: int64, recurrence: Recurrence, timeZone: string
maintenance.Recurrence: type: int64, interval: int64, dayOfWeek: string, dayOfMonth: any, month: any, year: any,
  cronMinutes: any, cronHours: any
maintenance.CreateMaintenanceWindowResponse: id: string
maintenance.ListMaintenanceWindowsResponse: maintWindows: [MaintenanceWindow], pageInfo: PageInfo
maintenance.WindowSearch: query: Query, page_input: PageInput
maintenance.ListMaintenanceRunsRequest: ids: [string], timeRange: TimeRange, runsMax: number
maintenance.ListMaintenanceRunsResponse: windows: [MaintenanceRuns]
maintenance.MaintenanceRuns: id: string, runs: [MaintenanceRun], more: boolean, heldCount: int64
maintenance.MaintenanceRun: start: int64, end?: int64, localStart: string, localEnd: string
maintenance.PreviewMaintenanceWindowRequest: id: string, specification: MaintenanceWindow, timeRange: TimeRange,
  runsMax: number
maintenance.PreviewMaintenanceWindowResponse: runs: [MaintenanceRun], moreRuns: boolean, clockChange: ClockChange,
  targets: MaintenanceTargets, heldCount: int64, held: [MaintenanceEntity]
maintenance.ClockChange: time: int64, localBefore: string, localAfter: string, before: MaintenanceRun, after:
  [MaintenanceRun]
maintenance.MaintenanceTargets: count: int64, more: boolean, entities: [MaintenanceEntity]
maintenance.MaintenanceEntity: id: string, name: string, child: boolean
metrics.SearchMetricsRequest: entityClause: Clause, metricClause: Clause, timeRange: MetricTimeRange, downsample:
  Downsample, pageSize: number, pageToken: string
metrics.MetricTimeRange: start: time, end: time
metrics.SearchMetricsResponse: metrics: [MetricSeries], nextPageToken: string
metrics.MetricSeries: id: string, name: string, dictionary: SeriesDictionary, timestamps: [int64], values: [number],
  labels: {string}, type?: Type, temporality?: Temporality
metrics.SeriesDictionary: name: string, layer: string, label: string, description: string, units: string, minimum:
  number|null, maximum: number|null, tags: [string], scaleFactor: number|null, scaleFactorUnits: string|null,
  scaleFactorString: string|null, default: SeriesDictionary, isRate: boolean, defaultGroupingFields: [string]
events.Event: id: string, entity?: string, entityName?: string, name?: string, count?: int64, occurrences:
  [Occurrence], matchedCount?: int64, dedupKey?: string
events.Occurrence: id: string, eventId: string, severity?: Severity, status?: Status, summary?: string, startTime?:
  int64, lastSeen?: int64, endTime?: int64, instanceCount?: int64, type?: string, body?: string, acknowledged?:
  boolean, dimensions: {string}, metadataFields: object, coreProperties: object, annotations: [Annotation],
  expiresAt?: int64
events.Annotation: id: string, annotation: string, createdBy: string, createTime: int64, updateTime: int64
events.GetEventRequest: id: string, occurrenceIds: [string], fields: [string]
events.GetEventResponse: result: Event
events.EventQuery: timeRange: TimeRange, clause: Clause, severities: [Severity], statuses: [Status], sortBy:
  [EventSort], pageInput: PageInput, activeCriteria: ActiveCriteria, fields: [EventField]
events.EventSort: byField: EventFieldOrder
events.SearchEventsResponse: results: [Event], pageInfo: PageInfo
events.CountEventsResponse: results: {FieldCounts}
events.FieldCounts: values: [ValueCount]
events.ValueCount: value: any, count: int64
events.CountEventFrequencyResponse: timestamps: [int64], results: {FieldFrequency}
events.FieldFrequency: values: [ValueFrequency]
events.ValueFrequency: value: any, counts: [int64]
events.WatchEventsResponse: change: Change, event: Event, cursor: string
events.AnnotationResult: eventId: string, occurrenceId: string, annotationId?: string, success: boolean, error: string
events.AnnotateEventsResponse: annotationResponses: [AnnotationResult]
events.StatusItem: eventId: string, occurrenceId: string, acknowledged?: boolean, statusWrapper: StatusWrapper
events.StatusResult: eventId: string, occurrenceId: string, success: boolean, error: string
events.SetEventStatusResponse: statusResponses: [StatusResult]
clause.Clause: and?: AllOf, or?: AnyOf, not?: NoneOf, filter?: Filter, in?: OneOf, range?: Range, withIds?: WithIds
clause.Filter: field: string, operation: Operation, value: any
clause.OneOf: field: string, values: [any]
clause.Range: path: string, gte: any, gt: any, lte: any, lt: any
clause.TriggerClause: and?: TriggerAllOf, or?: TriggerAnyOf, not?: TriggerNoneOf, equals?: TriggerComparison,
  greaterAndEquals?: TriggerComparison, lessAndEquals?: TriggerComparison, in?: TriggerOneOf, contains?: TriggerText,
  startsWith?: TriggerText, endsWith?: TriggerText
clause.TriggerValue: stringVal?: string, numberVal?: number, boolVal?: boolean
paging.PageInput: limit: number, cursor: string, direction: Direction
paging.PageInfo: startCursor: string, endCursor: string, count: int64, totalCount: int64, hasNext: boolean, hasPrev:
  boolean, pending: Pending
tenants.ApiClient: id: string, name: string, type: ApiClientType, role: string, createTime: time
tenants.ListApiClientsResponse: apiClients: [ApiClient], nextPageToken: string, totalCount: int64
tenants.ApiKey: id: string, prefix: string, description: string, createTime: time, expireTime: time, lastUsedTime:
  time
tenants.CreateApiKeyResponse: key: ApiKey, secret: string
tenants.AuditEntry: id: string, time: time, client: AuditClient, rpc: string, resource: string, outcome: string,
  requestId: string, keyPrefix: string, session: string
tenants.Session: id: string, tenant: string, client: string, clientType: ApiClientType, role: string, keyPrefix: string,
  expireTime: time
tenants.CreateSessionRequest: key?: string, firstToken?: string
tenants.ListAuditEntriesResponse: entries: [AuditEntry], nextPageToken: string, totalCount: int64
`;

const shapes = table
  .trim()
  .split(/\n(?=\S)/)
  .map((row) => /^(?<name>\S+): (?<shape>.*)$/.exec(row.replaceAll(/\n\s*/g, " "))?.groups ?? {});

test.each(shapes)("$name", ({ name = "", shape }) => {
  const [domain, message] = name.split(".");
  const found = messages.find((desc) => desc.typeName === `belfry.${domain}.v1.${message}`);
  expect(found && shapeOf(found)).toBe(shape);
});

function shapeOf(message: DescMessage): string {
  return message.fields.map((field) => `${field.jsonName}${isLeftOut(field) ? "?" : ""}: ${kindOf(field)}`).join(", ");
}

function isLeftOut(field: DescField) {
  return exclusiveWith(field) !== undefined || (field.message === undefined && field.proto.proto3Optional);
}

function kindOf(field: DescField): string {
  if (field.fieldKind === "list") return `[${valueKind(field)}]`;
  if (field.fieldKind === "map") return `{${valueKind(field)}}`;
  return valueKind(field);
}

const known: Record<string, string> = {
  "google.protobuf.Timestamp": "time",
  "google.protobuf.Struct": "object",
  "google.protobuf.Value": "any",
  "google.protobuf.BoolValue": "boolean|null",
  "google.protobuf.DoubleValue": "number|null",
  "google.protobuf.StringValue": "string|null",
  "google.protobuf.FieldMask": "mask",
};

function valueKind({ message, enum: enumeration, scalar }: DescField): string {
  if (message !== undefined) return known[message.typeName] ?? message.name;
  if (enumeration !== undefined) return enumeration.name;
  if (scalar === ScalarType.STRING) return "string";
  if (scalar === ScalarType.BOOL) return "boolean";
  if (scalar === ScalarType.INT64) return "int64";
  return "number";
}
