import { create } from "@bufbuild/protobuf";
import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { TriggerTypeSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import type { Notification } from "../subject/notification.ts";
import { sampleGroup } from "../templates/group-notification.ts";

/** An event that there is none of, for those who have none yet. */
export function sampleSubject(
  timeMs: number,
): Pick<Notification, "event" | "entity" | "subjectId" | "clear" | "occasion"> {
  return {
    occasion: "first",
    clear: false,
    subjectId: "sample",
    event: {
      id: "sample",
      name: "sample event",
      type: "sample",
      summary: "A sample, made up",
      body: "",
      metadata: {},
      severity: Severity.ERROR,
      status: Status.OPEN,
      acknowledged: false,
      timeMs,
      startMs: timeMs,
      count: 1n,
    },
    entity: { id: "sample", name: "sample entity", dimensions: { source: "sample" } },
  };
}

/** Returns notifications of made-up events, and of their end: of none, of one, and of a group of two. Templates see no other occasion. */
export function sampleNotifications(): Notification[] {
  const timeMs = Date.UTC(2026, 0, 1);
  return (["first", "clear"] as const).flatMap((occasion) => {
    const one: Notification = {
      ...sampleSubject(timeMs),
      id: "sample",
      occasion,
      clear: occasion === "clear",
      timeMs,
      tenant: { id: "sample", name: "sample" },
      rule: {
        name: "sample",
        message: "",
        enabled: true,
        repeatIntervalSec: 3600n,
        triggerNames: [],
        destinationNames: ["sample"],
      },
      trigger: { name: "sample", type: create(TriggerTypeSchema) },
      chain: [],
    };
    const none: Notification = { ...one, summary: { id: "sample", count: 0, names: [] } };
    return [none, one, sampleGroup(one, 2)];
  });
}
