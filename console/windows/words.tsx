import type { MaintenanceRun } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import { type MaintenanceWindow, RunState, WindowStatus } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import ui from "../ui/ui.module.css";
import { localParts } from "./zone-clock.ts";

/** What a window is doing, as a sign and a word. */
export function WindowState({ window }: { window: Pick<MaintenanceWindow, "status" | "runState"> }) {
  const [sign, word, tone] = stateOf(window);
  return (
    <span class={ui.state} data-tone={tone}>
      <span aria-hidden="true">{sign}</span> {word}
    </span>
  );
}

function stateOf({ status, runState }: Pick<MaintenanceWindow, "status" | "runState">) {
  if (status === WindowStatus.DISABLED) return ["–", "Disabled", "quiet"] as const;
  if (runState === RunState.IN_PROGRESS) return ["●", "Running", "good"] as const;
  return runState === RunState.COMPLETED ? (["✓", "Over", "quiet"] as const) : (["○", "Scheduled", "info"] as const);
}

/** A local time of the server, with its offset. */
export function Local({ text }: { text: string }) {
  const { date, time, offset } = localParts(text);
  return (
    <time dateTime={text}>
      {date}, {time} <span class={ui.quiet}>{offset}</span>
    </time>
  );
}

export const noEnd = "no end: each run begins before the one before it ends";

/** The start and the end of a run by the clock of the window's zone, as texts say it. */
export function runText({ localStart, localEnd }: MaintenanceRun): string {
  const from = localParts(localStart);
  if (localEnd === "") return `from ${from.date}, ${from.time}, without an end`;
  const to = localParts(localEnd);
  const end = to.date === from.date ? to.time : `${to.date}, ${to.time}`;
  return `${from.date}, ${from.time} to ${end}`;
}
