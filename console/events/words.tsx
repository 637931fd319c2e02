import { Severity, Status } from "#gen/belfry/events/v1/event_pb.ts";
import ui from "../ui/ui.module.css";

/** How severities and statuses are called and drawn: a word and a shape, never a colour alone. */
export const severities = [
  { value: Severity.CRITICAL, word: "Critical", sign: "◆", tone: "critical" },
  { value: Severity.ERROR, word: "Error", sign: "▲", tone: "error" },
  { value: Severity.WARNING, word: "Warning", sign: "■", tone: "warning" },
  { value: Severity.INFO, word: "Info", sign: "●", tone: "info" },
  { value: Severity.DEBUG, word: "Debug", sign: "○", tone: "debug" },
  { value: Severity.DEFAULT, word: "Not given", sign: "–", tone: "debug" },
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

export function SeverityMark({ value }: { value: Severity | undefined }) {
  const { word, sign, tone } = severityOf(value);
  return (
    <span class={ui.severity} data-tone={tone}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}
