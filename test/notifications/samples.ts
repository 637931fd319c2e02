import type { MessageInitShape } from "@bufbuild/protobuf";
import { Severity } from "#gen/belfry/events/v1/event_pb.ts";
import type { DestinationTypeSchema } from "#gen/belfry/notifications/v1/destination_pb.ts";
import type { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";

/** What a trigger looks at: events whose name contains a text. */
export function eventTrigger(text: string): MessageInitShape<typeof TriggerTypeSchema> {
  const clause = { kind: { case: "contains", value: { field: "name", value: text } } } as const;
  return { source: { case: "event", value: { query: { clause } } } };
}

/** A destination that takes POSTs at this path. */
export function webhook(path: string): MessageInitShape<typeof DestinationTypeSchema> {
  return { type: { case: "webhook", value: { url: `https://hooks.example.com/${path}` } } };
}

/** A destination that makes events of this name. */
export function eventDestination(text: string): MessageInitShape<typeof DestinationTypeSchema> {
  const value = { nameTemplate: text, typeTemplate: text, summaryTemplate: text, severity: Severity.INFO };
  return { type: { case: "event", value } };
}

/** The same as JSON. */
export const eventJson = (text: string) => ({
  event: { query: { clause: { contains: { field: "name", value: text } }, matchers: [] } },
});
export const webhookJson = (path: string) => ({ webhook: { url: `https://hooks.example.com/${path}` } });

export const triggersPath = "/v1/notification/triggers";
export const destinationsPath = "/v1/notification/destinations";
export const rulesPath = "/v1/notification/rules";
