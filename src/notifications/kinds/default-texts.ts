import type { Notification } from "../notification.ts";
import { severityName } from "../rendering/variables.ts";

/** What a rule without a message says. */
export const defaultMessage =
  "{{#clear}}Cleared: {{/clear}}{{#event}}{{{event.severity}}}: {{/event}}{{{headline}}}{{#event}} ({{{entity.name}}}){{/event}}";

/** What a summary says in place of its rule's message, which is about one match. */
export const summaryMessage = "{{#clear}}Cleared: {{/clear}}{{{event.severity}}}: {{{headline}}}";

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
    case "clear":
      return "Cleared";
  }
}
