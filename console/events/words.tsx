import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import { Sign } from "../ui/sign.tsx";
import ui from "../ui/ui.module.css";

/** Words and tones of severities; a tone has a shape, never a colour alone. */
export const severities = [
  { value: Severity.CRITICAL, word: "Critical", tone: "critical" },
  { value: Severity.ERROR, word: "Error", tone: "error" },
  { value: Severity.WARNING, word: "Warning", tone: "warning" },
  { value: Severity.INFO, word: "Info", tone: "info" },
  { value: Severity.DEBUG, word: "Debug", tone: "debug" },
  { value: Severity.DEFAULT, word: "Not given", tone: "debug" },
] as const;

export const statuses = [
  { value: Status.OPEN, word: "Open" },
  { value: Status.SUPPRESSED, word: "Suppressed" },
  { value: Status.CLOSED, word: "Closed" },
  { value: Status.DEFAULT, word: "No status" },
] as const;

export const severityOf = (value: Severity | undefined) =>
  severities.find((each) => each.value === value) ?? severities[5];
export const statusWord = (value: Status | undefined) => statuses.find((each) => each.value === value)?.word ?? "–";

/** A severity: its sign with its word, which `short` leaves to who hears the page. */
export function SeverityMark({ value, short }: { value: Severity | undefined; short?: boolean }) {
  const { word, tone } = severityOf(value);
  return (
    <span class={ui.severity} data-tone={tone}>
      <Sign tone={tone} /> <span class={short ? ui.unseen : undefined}>{word}</span>
    </span>
  );
}
