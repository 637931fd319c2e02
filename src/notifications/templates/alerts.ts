import { annotationsOf, common, fingerprintOf, isAlert, type LabelView } from "../../events/labels.ts";
import type { AlertSnapshot, Notification } from "../subject/notification.ts";
import type { Markup } from "./markup.ts";
import type { listNames, Value, Variables } from "./template.ts";
import { calledOf, title, titleLines } from "./titles.ts";
import { type Described, headline, isoTime, linesMax, memberLines, notifiedLabels, variablesOf } from "./variables.ts";

/** An alert as version 4 of Alertmanager's webhook says it. */
export interface AlertView {
  readonly status: "firing" | "resolved";
  readonly labels: LabelView;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly endsAt: string;
  readonly generatorURL: string;
  readonly fingerprint: string;
}

/** How an alert that has not ended says so. */
const noTime = "0001-01-01T00:00:00Z";

type Told = Pick<
  AlertSnapshot,
  "resolved" | "labels" | "annotations" | "startMs" | "endMs" | "generatorURL" | "fingerprint"
>;

const alertOf = ({ resolved, labels, annotations, startMs, endMs, generatorURL, fingerprint }: Told): AlertView => ({
  status: resolved ? "resolved" : "firing",
  labels,
  annotations,
  startsAt: isoTime(startMs),
  endsAt: endMs === null ? noTime : isoTime(endMs),
  generatorURL,
  fingerprint,
});

/** Returns the alerts that a notification reports: of one match that one; of a summary or a window none. */
export function alertsOf(notification: Notification): AlertView[] {
  const { group, summary, event, metric, clear, timeMs, subjectId } = notification;
  if (group !== undefined) return group.alerts.map(alertOf);
  if (summary !== undefined) return [];
  const shared = { resolved: clear, labels: notifiedLabels(notification), endMs: clear ? timeMs : null };
  if (event === undefined) {
    const fingerprint = Buffer.from(subjectId, "base64url").toString("hex").slice(0, 16);
    const annotations = { summary: headline(notification) };
    return [alertOf({ ...shared, annotations, startMs: metric?.timeMs ?? timeMs, generatorURL: "", fingerprint })];
  }
  const identity = { ...event, id: Buffer.from(event.id, "base64url"), entityId: Buffer.alloc(0) };
  const fingerprint = fingerprintOf(identity, isAlert(event, event));
  return [alertOf({ ...shared, ...annotationsOf(event, event), startMs: event.startMs ?? event.timeMs, fingerprint })];
}

/** Returns what the alerts of a notification have in common: all of them, also those that it does not list. */
export function sharedOf(notification: Notification) {
  const { group } = notification;
  if (group !== undefined)
    return { groupLabels: group.labels, commonLabels: group.commonLabels, commonAnnotations: group.commonAnnotations };
  const alerts = alertsOf(notification);
  const commonLabels = common(alerts.map(({ labels }) => labels));
  const commonAnnotations = common(alerts.map(({ annotations }) => annotations));
  return { groupLabels: commonLabels, commonLabels, commonAnnotations };
}

function listsOf(
  notification: Notification,
  markup: Markup,
  max: number,
): Record<(typeof listNames)[number], readonly Value[]> {
  const { group } = notification;
  const alerts = alertsOf(notification).map((alert) => ({ ...alert }));
  return {
    alerts,
    firing: alerts.filter(({ status }) => status === "firing"),
    resolved: alerts.filter(({ status }) => status === "resolved"),
    lines: group ? memberLines(group, max, markup.size) : [headline(notification)],
    members: group ? titleLines(group, max, markup.size) : [title(notification, markup.size)],
  };
}

/** What templates may name of the alerts of a notification. */
function alertVariables(notification: Notification, markup: Markup, max: number): Variables {
  const { group } = notification;
  const lists = listsOf(notification, markup, max);
  const { firing, resolved } = group ?? { firing: lists.firing.length, resolved: lists.resolved.length };
  return {
    ...lists,
    count: firing + resolved,
    firingCount: firing,
    resolvedCount: resolved,
    silenced: group?.silenced ?? 0,
    ...sharedOf(notification),
  };
}

/** All that the templates of a notification may name. */
export const templateVariables = (
  notification: Notification,
  destination: Described | undefined,
  markup: Markup,
  publicUrl: string,
  /** How much of the lines of members, as the markup measures them. */
  max = linesMax,
): Variables => ({
  ...alertVariables(notification, markup, max),
  subject: notification.subjectId,
  title: title(notification, markup.size),
  displayName: calledOf(notification.entity),
  ...variablesOf(notification, destination, markup, publicUrl),
});
