import { matcherText } from "../../clause/label-matcher.ts";
import { annotationsOf } from "../../events/labels.ts";
import type { Notification } from "../notification.ts";
import { cutText } from "../rendering/template.ts";
import { labelsApart } from "../rendering/titles.ts";
import {
  eventLinkText,
  eventUrl,
  hasEnded,
  hasMembers,
  isoTime,
  labelsOf,
  onlyOccurrence,
  severityName,
} from "../rendering/variables.ts";

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

/** Lists what stands beneath a title: since when, how often, and the labels that the title does not say; of a group what all members share. */
export function factsOf(notification: Notification): { title: string; value: string }[] {
  const { summary, group, event, metric, entity } = notification;
  if (summary !== undefined) return [];
  const isGroup = hasMembers(notification);
  const known = isGroup ? group?.labels : metric?.labels;
  const labels = labelsApart(labelsOf(notification), entity, known);
  const startMs = event?.startMs;
  const timesSeen = isGroup ? 0 : Number(event?.count ?? 0);
  const facts = [
    ...(startMs === undefined ? [] : [["Since", readableTime(startMs)] as const]),
    ...(timesSeen > 1 ? [["Seen", `${timesSeen} times`] as const] : []),
    ...labels.slice(0, labelsMax),
    ...(labels.length > labelsMax ? [["…", `${labels.length - labelsMax} more`] as const] : []),
  ];
  return facts.map(([name, value]) => ({ title: cutText(name, labelCharsMax), value: cutText(value, labelCharsMax) }));
}

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
  const own = shown === "" ? [] : [{ text: eventLinkText(notification), url: shown }];
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
  return matchers.length === 0 ? "" : `${form}?matchers=${encodeURIComponent(matchers.join("\n"))}`;
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
