import { type AlertmanagerParts, alertmanager } from "./alertmanager/alertmanager.ts";
import { alertmanagerWebhook } from "./alertmanager/webhook.ts";
import type { Integration } from "./integration.ts";
import { type OpenTelemetryParts, openTelemetry } from "./opentelemetry/opentelemetry.ts";
import { type RemoteWriteParts, remoteWrite } from "./prometheus/remote-write.ts";

/** What the integrations work with: functions of the receiver and of the events. */
export type IntegrationParts = AlertmanagerParts & RemoteWriteParts & OpenTelemetryParts;

/** Every protocol of other tools that is spoken here. */
export function integrations(parts: IntegrationParts): readonly Integration[] {
  return [alertmanager(parts), alertmanagerWebhook(parts), remoteWrite(parts), openTelemetry(parts)];
}
