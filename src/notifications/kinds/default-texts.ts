import { matcherText } from "../../clause/label-matcher.ts";
import { annotationsOf } from "../../events/labels.ts";
import type { Notification } from "../subject/notification.ts";
import { cutText } from "../templates/template.ts";
import { labelsApart } from "../templates/titles.ts";
import {
  eventLinkText,
  eventUrl,
  hasEnded,
  hasMembers,
  isoTime,
  notifiedLabels,
  onlyOccurrence,
  severityName,
} from "../templates/variables.ts";

/** What a rule without a message says, and a mail's subject: whether it is over, how bad it is, and the title. */
export const defaultMessage =
  "{{#ended}}Resolved: {{/ended}}{{^ended}}{{#event}}{{{event.severity}}}: {{/event}}{{/ended}}{{{title}}}";

/** What a summary says in place of its rule's message, which is about one match. */
export const summaryMessage = "{{#clear}}Resolved: {{/clear}}{{{event.severity}}}: {{{headline}}}";

/** What a rule without a message says of a group: a line for each member, as many as fit. */
export const groupMessage = `${defaultMessage}{{#members}}\n{{{.}}}{{/members}}`;

/** A message for where one line is wanted: of a group without its members. */
export const firstLine = (notification: Notification, message: string) =>
  hasMembers(notification) ? (message.trim().split("\n", 1)[0] as string) : message.trim();

const labelsMax = 20;
const labelCharsMax = 200;

/** A line beneath a title. */
export interface TextLine {
  readonly title: string;
  readonly value: string;
}

/** Lists all that is known, where there is room. */
export function allFactsOf(notification: Notification): TextLine[] {
  const { event, metric, rule, trigger, clear } = notification;
  const seenMs = clear ? undefined : event?.timeMs;
  const measuredMs = metric?.value === undefined ? undefined : metric.timeMs;
  return [
    ...(event === undefined ? [] : [{ title: "Severity", value: severityName(event.severity) }]),
    ...textLines(notification).filter(({ value }) => value.trim() !== ""),
    ...(seenMs === undefined ? [] : [{ title: "Last seen", value: readableTime(seenMs) }]),
    ...(measuredMs === undefined ? [] : [{ title: "Measured", value: readableTime(measuredMs) }]),
    // A rule's own matchers are no trigger, and have no name.
    { title: "Rule", value: trigger.name === "" ? rule.name : `${rule.name} (trigger ${trigger.name})` },
  ];
}

/**
 * Lists what stands beneath a title: since when and until when, how often, the bound that was crossed, and the labels that the title does
 * not say; of a group what all members share.
 */
export function textLines(notification: Notification): TextLine[] {
  const { summary, group, event, metric, entity, clear, timeMs } = notification;
  if (summary !== undefined) return [];
  const isGroup = hasMembers(notification);
  const known = isGroup ? group?.labels : metric?.labels;
  const labels = labelsApart(notifiedLabels(notification), entity, known);
  const startMs = event?.startMs;
  const timesSeen = isGroup ? 0 : Number(event?.count ?? 0);
  const facts = [
    ...(startMs === undefined ? [] : [["Since", readableTime(startMs)] as const]),
    ...(clear ? [["Ended", endText(timeMs, startMs)] as const] : []),
    ...boundOf(notification),
    ...(timesSeen > 1 ? [["Seen", `${timesSeen} times`] as const] : []),
    ...labels.slice(0, labelsMax),
    ...(labels.length > labelsMax ? [["…", `${labels.length - labelsMax} more`] as const] : []),
  ];
  return facts.map(([name, value]) => ({ title: cutText(name, labelCharsMax), value: cutText(value, labelCharsMax) }));
}

/** What was crossed, or did not come. */
function boundOf({ trigger: { threshold, thresholdType }, metric }: Notification): [name: string, value: string][] {
  const facts: [name: string, value: string][] = [];
  if (threshold !== undefined && thresholdType === "duration")
    facts.push(["Expected", `every ${durationText(threshold * 1000)}`]);
  else if (threshold !== undefined)
    facts.push(["Threshold", `${thresholdType === "min" ? "below" : "above"} ${threshold}`]);
  if (metric?.value === undefined && metric?.timeMs !== undefined)
    facts.push(["Last data", readableTime(metric.timeMs)]);
  return facts;
}

const endText = (endMs: number, startMs: number | undefined) =>
  `${readableTime(endMs)}${startMs !== undefined && startMs < endMs ? `, after ${durationText(endMs - startMs)}` : ""}`;

/** `42 s`, `30 min`, `2 h 5 min`, `3 d 4 h`. */
function durationText(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  const [whole, part] =
    hours < 24 ? [`${hours} h`, `${minutes % 60} min`] : [`${Math.floor(hours / 24)} d`, `${hours % 24} h`];
  return part.startsWith("0 ") ? whole : `${whole} ${part}`;
}

/** The text of an event; the members of a group are in the message of a rule that says nothing else. */
export const bodyOf = (notification: Notification) =>
  hasMembers(notification) && notification.rule.message === "" ? "" : (notification.event?.body ?? "");

/** `2026-11-22 10:00:00 UTC`. */
export const readableTime = (ms: number) =>
  isoTime(ms)
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");

/** A page to go on from. */
export interface Link {
  readonly text: string;
  readonly url: string;
}

const urlCharsMax = 1000;

/** Links to the console's page of what a notification is about, to what its sender names, and to a silence of it; of a summary the first alone. */
export function linksOf(notification: Notification, publicUrl: string): Link[] {
  const shown = eventUrl(notification, publicUrl);
  const own = shown === "" ? entityLink(notification, publicUrl) : [{ text: eventLinkText(notification), url: shown }];
  if (notification.summary !== undefined) return own;
  const { annotations, generatorURL } = sourceOf(notification);
  const runbook = annotations.runbook_url ?? annotations.runbook ?? "";
  const links = [
    { text: "Runbook", url: runbook },
    { text: "Source", url: generatorURL },
    { text: "Silence", url: hasEnded(notification) ? "" : silenceUrl(notification, publicUrl) },
  ];
  return [
    ...own,
    ...links.filter(({ url }) => /^https?:\/\//i.test(url) && URL.canParse(url) && url.length <= urlCharsMax),
  ];
}

/** A series has no page of its own; its entity has. */
const entityLink = ({ entity }: Notification, publicUrl: string): Link[] =>
  entity.id === ""
    ? []
    : [{ text: "Show entity", url: `${publicUrl}/console/#/entities/${encodeURIComponent(entity.id)}` }];

/** Returns the annotations and the source of an alert; of a group what all of its members share. */
function sourceOf({ group, event }: Notification): {
  annotations: Readonly<Record<string, string>>;
  generatorURL: string;
} {
  if (group !== undefined) {
    const [only] = group.alerts;
    const isOne = group.firing + group.resolved === 1;
    return { annotations: group.commonAnnotations, generatorURL: isOne ? (only?.generatorURL ?? "") : "" };
  }
  return event === undefined ? { annotations: {}, generatorURL: "" } : annotationsOf(event, event);
}

/** Returns the address of the form of a silence of what a notification is about, with its labels as matchers. */
function silenceUrl({ group, event, subjectId, entity }: Notification, publicUrl: string): string {
  const form = `${publicUrl}/console/#/silences/new`;
  const only = group === undefined ? event && subjectId : onlyOccurrence(group);
  if (only !== undefined) return `${form}?occurrence=${encodeURIComponent(only)}`;
  if (group === undefined) return entity.id === "" ? "" : `${form}?entity=${encodeURIComponent(entity.id)}`;
  const matchers = Object.entries(group.labels).map(([name, value]) => matcherText({ name, operator: "=", value }));
  return matchers.length === 0 ? "" : `${form}?matchers=${encodeURIComponent(matchers.join("\n").toWellFormed())}`;
}

/** What a notification adds to those before it; empty for the first. */
export function occasionText({ occasion, event }: Notification): string {
  switch (occasion) {
    case "first":
      return "";
    case "repeat":
      return "Again";
    case "acknowledged":
      return "Acknowledged";
    case "unacknowledged":
      return "No longer acknowledged";
    case "severity":
      return event === undefined ? "Severity changed" : `Severity is now ${severityName(event.severity)}`;
    case "members":
      return "Updated";
    case "clear":
      return "Resolved";
  }
}
