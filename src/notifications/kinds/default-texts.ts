import type { Notification } from "../notification.ts";
import { cutText } from "../rendering/template.ts";
import { hasMembers, labelsOf, severityName } from "../rendering/variables.ts";

/** What a rule without a message says. */
export const defaultMessage =
  "{{#clear}}Resolved: {{/clear}}{{#event}}{{{event.severity}}}: {{/event}}{{{headline}}}{{#event}} ({{{entity.name}}}){{/event}}";

/** What a summary says in place of its rule's message, which is about one match. */
export const summaryMessage = "{{#clear}}Resolved: {{/clear}}{{{event.severity}}}: {{{headline}}}";

/** What a rule without a message says of a group: a line for each member, as many as fit. */
export const groupMessage =
  "{{#ended}}Resolved: {{/ended}}{{^ended}}{{{event.severity}}}: {{/ended}}{{{headline}}}{{#lines}}\n{{{.}}}{{/lines}}";

/** A message for where one line is wanted: of a group without its members. */
export const firstLine = (notification: Notification, message: string) =>
  hasMembers(notification) ? (message.trim().split("\n", 1)[0] as string) : message.trim();

const labelsMax = 20;
const labelCharsMax = 200;

/** The labels of what a notification reports, as chats show them: a line each, and how many more there are. */
export function labelFacts(notification: Notification): { title: string; value: string }[] {
  if (notification.summary !== undefined) return [];
  const labels = Object.entries(labelsOf(notification));
  const shown = labels.slice(0, labelsMax).map(([name, value]) => ({
    title: cutText(name, labelCharsMax),
    value: cutText(value, labelCharsMax),
  }));
  return labels.length > labelsMax ? [...shown, { title: "…", value: `${labels.length - labelsMax} more` }] : shown;
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
