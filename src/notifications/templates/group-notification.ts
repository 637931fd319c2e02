import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { annotationsOf, common, fingerprintOf, isAlert } from "../../events/labels.ts";
import { type AlertSnapshot, type GroupSnapshot, type Notification, standInEntity } from "../subject/notification.ts";
import { groupText, hasMembers, headline, linesMax, memberLines, notifiedLabels } from "./variables.ts";

type Base = Omit<Notification, "subjectId" | "event" | "entity" | "metric" | "group">;

const summaryCharsMax = 128;

/** Returns the notification of a group. The event and entity of its only member are its own. */
export function aboutGroup(base: Base, group: NonNullable<Notification["group"]>): Notification {
  const only = hasMembers({ group }) ? undefined : group.alerts[0];
  const shared = { ...base, subjectId: group.key, group };
  if (only === undefined) {
    const { name } = base.rule;
    return { ...shared, event: standInEvent(base, group), entity: { id: "", ...standInEntity(name) } };
  }
  return {
    ...shared,
    ...(only.event && { event: { ...only.event, count: BigInt(only.event.count) } }),
    ...(only.metric && { metric: only.metric }),
    entity: only.entity,
  };
}

/** Stands for all members of a group. */
function standInEvent(
  { clear, rule, timeMs }: Base,
  group: NonNullable<Notification["group"]>,
): NonNullable<Notification["event"]> {
  const { firing, resolved, severity, acknowledged, labels } = group;
  const startsMs = group.alerts.map(({ startMs }) => startMs);
  return {
    id: "",
    name: rule.name,
    type: "group",
    summary: [...groupText(group)].slice(0, summaryCharsMax).join(""),
    body: memberLines(group, linesMax).join("\n"),
    severity: severity as Severity,
    status: clear ? Status.CLOSED : Status.OPEN,
    acknowledged,
    timeMs,
    ...(startsMs.length > 0 && { startMs: Math.min(...startsMs) }),
    count: BigInt(firing + resolved),
    metadata: { ...labels },
  };
}

/** Returns a group of so many members like the one that a notification is about, each with a name of its own, for previews. */
export function sampleGroup(notification: Notification, count: number): Notification {
  const first = memberOf(notification);
  const alerts = Array.from({ length: count }, (_, i): AlertSnapshot => {
    if (i === 0) return first;
    const name = `sample ${i + 1}`;
    return { ...first, subjectId: name, headline: name, labels: { ...first.labels, alertname: name } };
  });
  const resolved = notification.clear ? count : 0;
  const group: GroupSnapshot = {
    labels: common(alerts.map(({ labels }) => labels)),
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    beyond: false,
    firing: count - resolved,
    resolved,
    severity: first.severity,
    acknowledged: false,
    alerts,
  };
  return aboutGroup(notification, { ...group, key: "sample" });
}

function memberOf(notification: Notification): AlertSnapshot {
  const { event, metric, entity, clear, timeMs, subjectId, trigger } = notification;
  const identity = event && { ...event, id: Buffer.from(event.id, "base64url"), entityId: Buffer.alloc(0) };
  return {
    subjectId,
    resolved: clear,
    headline: headline(notification),
    severity: event?.severity ?? Severity.ERROR,
    labels: notifiedLabels(notification),
    ...(event ? annotationsOf(event, event) : { annotations: {}, generatorURL: "" }),
    startMs: event?.startMs ?? metric?.timeMs ?? timeMs,
    endMs: clear ? timeMs : null,
    fingerprint: event && identity ? fingerprintOf(identity, isAlert(event, event)) : "0".repeat(16),
    entity,
    triggerName: trigger.name,
    ...(event && { event: { ...event, count: String(event.count) } }),
    ...(metric && { metric }),
  };
}
