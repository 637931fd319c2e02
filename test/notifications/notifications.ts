import { create } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Notification } from "../../src/notifications/subject/notification.ts";

export const eventId = "YWJjZGVmZ2hpamtsbW5vcHFyc3Q=";

type NotificationEvent = NonNullable<Notification["event"]>;

/** A notification of an event, the first of its match unless told otherwise. */
export function notificationOf(
  changes: Partial<Omit<Notification, "event">> & { event?: Partial<NotificationEvent> | undefined } = {},
): Notification {
  const whole: NotificationEvent = {
    id: eventId,
    name: "disk-full",
    type: "storage",
    summary: "Disk /var is 97 % full",
    body: "Only 1.2 GB are free.",
    severity: Severity.ERROR,
    status: Status.OPEN,
    acknowledged: false,
    timeMs: Date.UTC(2026, 10, 22, 9, 59, 30),
    startMs: Date.UTC(2026, 10, 22, 9, 30, 0),
    count: 3n,
    metadata: { mount: "/var", free: 1.2 },
  };
  const { event, ...others } = changes;
  return {
    id: "019abcde-0000-7000-8000-000000000001",
    occasion: "first",
    clear: false,
    timeMs: Date.UTC(2026, 10, 22, 10, 0, 0),
    tenant: { id: "019abcde-0000-7000-8000-0000000000aa", name: "acme" },
    rule: {
      name: "page-storage",
      message: "{{{event.summary}}} on {{{entity.name}}}",
      enabled: true,
      repeatIntervalSec: 3600n,
      triggerNames: ["disks"],
      destinationNames: ["ops"],
    },
    trigger: {
      name: "disks",
      type: create(TriggerTypeSchema, { source: { case: "event", value: { query: { clause: {} } } } }),
    },
    subjectId: `${eventId}:2`,
    ...("event" in changes && event === undefined ? {} : { event: { ...whole, ...event } }),
    entity: { id: "ZW50aXR5LWlkLW9mLTI4LWNoYXI=", name: "web-1", dimensions: { host: "web-1", site: "Köln" } },
    chain: [],
    ...others,
  };
}

/** A notification of a metric beyond its bound. */
export function metricNotification(changes: Partial<Notification> = {}): Notification {
  return notificationOf({
    event: undefined,
    subjectId: "series:42",
    metric: { name: "cpu.busy", value: 97.5, timeMs: Date.UTC(2026, 10, 22, 9, 59, 0) },
    trigger: {
      name: "cpu-high",
      threshold: 90,
      thresholdType: "max",
      type: create(TriggerTypeSchema, {
        source: { case: "metricThreshold", value: { metricName: "cpu.busy", max: 90 } },
      }),
    },
    ...changes,
  });
}
