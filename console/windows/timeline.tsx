import { useComputed } from "@preact/signals";
import type { MaintenanceRun } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import { address, linkTo, setParameters } from "../data/address.ts";
import { zoneName } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import windowsLook from "./windows.module.css";
import { runText } from "./words.tsx";

const dayMs = 86_400_000;
const choices = [1, 2, 5, 13] as const;

/** How many weeks the address asks for. Reads signals. */
export function weeksHere(): number {
  const weeks = Number(address.value.parameters.get("weeks"));
  return (choices as readonly number[]).includes(weeks) ? weeks : 5;
}

export function WeeksChoice() {
  return (
    <select
      aria-label="Weeks to show"
      value={String(weeksHere())}
      onChange={({ currentTarget }) => setParameters({ weeks: currentTarget.value })}
    >
      {choices.map((weeks) => (
        <option key={weeks} value={String(weeks)}>
          {weeks === 1 ? "The next week" : `The next ${weeks} weeks`}
        </option>
      ))}
    </select>
  );
}

/** What a row shows: the runs of one window. */
export interface TimelineRow {
  readonly id: string;
  readonly name: string;
  readonly runs: readonly MaintenanceRun[];
  readonly more: boolean;
}

interface TimelineProps {
  readonly label: string;
  readonly rows: readonly TimelineRow[];
  readonly start: number;
  readonly end: number;
  /** Whether names lead to the windows. */
  readonly named?: boolean;
}

const namedRuns = 5;

/** Runs along the time to come, a row a window; what the picture shows is said in words too. */
export function Timeline({ label, rows, start, end, named }: TimelineProps) {
  const place = (ms: number) => (100 * (Math.min(end, Math.max(start, ms)) - start)) / (end - start);
  const days = useDays(start, end);
  return (
    <section class={named ? `${windowsLook.timeline} ${windowsLook.named}` : windowsLook.timeline} aria-label={label}>
      <div class={windowsLook.timelineRow} aria-hidden="true">
        {named && <span />}
        <div class={windowsLook.timelineAxis}>
          {days.map(({ ms, text }) => (
            <span key={ms} style={{ left: `${place(ms)}%` }}>
              {text}
            </span>
          ))}
        </div>
      </div>
      <ul>
        {rows.map(({ id, name, runs, more }) => (
          <li key={id} class={windowsLook.timelineRow}>
            {named && (
              <a class={windowsLook.timelineName} href={linkTo(["windows", id])}>
                {name}
              </a>
            )}
            <div class={windowsLook.timelineTrack} aria-hidden="true">
              {days.map(({ ms }) => (
                <span key={ms} class={windowsLook.timelineDay} style={{ left: `${place(ms)}%` }} />
              ))}
              {runs.map((run) => {
                const from = place(Number(run.start));
                const to = run.end === undefined ? 100 : place(Number(run.end));
                const now = Number(run.start) <= start;
                return (
                  <span
                    key={run.start}
                    class={now ? `${windowsLook.timelineRun} ${windowsLook.now}` : windowsLook.timelineRun}
                    title={runText(run)}
                    style={{ left: `${from}%`, width: `${to - from}%` }}
                  />
                );
              })}
            </div>
            <span class={ui.unseen}>{rowText(runs, more)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function rowText(runs: readonly MaintenanceRun[], more: boolean): string {
  if (runs.length === 0) return "no run in this time";
  const count = more ? `more than ${runs.length} runs` : runs.length === 1 ? "one run" : `${runs.length} runs`;
  const first = runs.slice(0, namedRuns).map(runText).join("; ");
  return `${count}${runs.length > namedRuns ? `, the first ${namedRuns}` : ""}: ${first}`;
}

/** The beginnings of days that the axis names, in the person's zone. */
function useDays(start: number, end: number): { ms: number; text: string }[] {
  const format = useComputed(
    () => new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: zoneName.value }),
  ).value;
  const step = Math.max(1, Math.round((end - start) / dayMs / 7)) * dayMs;
  const offset = offsetMs(start, zoneName.value);
  const first = Math.ceil((start + offset) / dayMs) * dayMs - offset;
  const days: { ms: number; text: string }[] = [];
  // An hour off after a change of the clock is no more than a hair here.
  for (let ms = first; ms < end; ms += step) days.push({ ms, text: format.format(ms + dayMs / 2) });
  return days;
}

function offsetMs(ms: number, timeZone: string): number {
  const wall = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone }).format(ms);
  return Date.parse(`${wall.replace(" ", "T")}Z`) - Math.floor(ms / 1000) * 1000;
}
