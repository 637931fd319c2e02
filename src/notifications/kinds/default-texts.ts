import type { Notification } from "../notification.ts";
import { severityName } from "../rendering/variables.ts";

/** What a rule without a message says. */
export const defaultMessage =
  "{{#clear}}Cleared: {{/clear}}{{#event}}{{{event.severity}}}: {{/event}}{{{headline}}}{{#event}} ({{{entity.name}}}){{/event}}";

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
