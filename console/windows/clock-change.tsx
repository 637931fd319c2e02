import type { ClockChange, MaintenanceRun } from "#gen/belfry/maintenance/v1/maintenance_run_pb.ts";
import type { MaintenanceWindow } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { durationText, Time, timeText, zoneName } from "../ui/time.tsx";
import ui from "../ui/ui.module.css";
import windowsLook from "./windows.module.css";
import { Local, noEnd } from "./words.tsx";
import { localParts } from "./zone-clock.ts";

interface ClockChangeProps {
  readonly window: MaintenanceWindow;
  readonly change: ClockChange | undefined;
  /** Whether there is a run to come at all. */
  readonly runs: boolean;
}

/** Tells what the next change of the clock in the window's zone does to its runs. Shows nothing if no run is affected. */
export function ClockChangeCard({ window, change, runs }: ClockChangeProps) {
  const zone = window.schedule?.timeZone || "UTC";
  const repeats = Number(window.schedule?.recurrence?.type ?? 0n) !== 0;
  if (!runs || (change ? !touchesRuns(change) : !repeats)) return null;
  const around = change ? [...(change.before ? [change.before] : []), ...change.after] : [];
  return (
    <section class={ui.card} aria-labelledby="clock">
      <h2 id="clock">When the clock is changed</h2>
      {change === undefined ? (
        <p>The clock of {zone} is not changed.</p>
      ) : (
        <>
          <p>{sentence(window, change)}</p>
          <RunTable label="Runs before and after the change of the clock" runs={around} zone={zone} change={change} />
        </>
      )}
    </section>
  );
}

interface RunTableProps {
  readonly label: string;
  readonly runs: readonly MaintenanceRun[];
  readonly zone: string;
  readonly change?: ClockChange;
}

/** Runs as the server will begin and end them, by the clock of their zone and by the person's. */
export function RunTable({ label, runs, zone, change }: RunTableProps) {
  return (
    <table class={windowsLook.runTable} aria-label={label}>
      <thead>
        <tr>
          {change && <th scope="col">Run</th>}
          <th scope="col">By the clock of {zone}</th>
          <th scope="col">For you, {zoneName}</th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <tr key={run.start}>
            {change && <th scope="row">{run.start < change.time ? "before" : "after"}</th>}
            <td>
              <Local text={run.localStart} /> to {run.localEnd === "" ? noEnd : <Local text={run.localEnd} />}
            </td>
            <td>
              <Time at={run.start} /> {run.end !== undefined && <>to {timeText(Number(run.end))}</>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Whether a run goes on at the change of the clock, or begins after it. */
const touchesRuns = ({ time, before, after }: ClockChange) =>
  after.length > 0 || (before !== undefined && (before.end === undefined || before.end > time));

const offsetMs = (local: string) => Date.parse(`${local.slice(0, 19)}Z`) - Date.parse(local);

/** What it does, in words: made of what the server says about the runs around it. */
function sentence(window: MaintenanceWindow, { time, localBefore, localAfter, before, after }: ClockChange): string {
  const [from, to] = [localParts(localBefore), localParts(localAfter)];
  const shiftMs = offsetMs(localAfter) - offsetMs(localBefore);
  const forward = shiftMs > 0;
  const size = durationText(Math.abs(shiftMs));
  const what = `On ${to.date} the clock is put ${forward ? "forward" : "back"} by ${size}, from ${from.time} to ${to.time}.`;
  const through =
    before?.end !== undefined && before.end > time
      ? ` The run that begins before it lasts as long as every other, so it ends at ${localParts(before.localEnd).time} by the clock, ${size} ${forward ? "later" : "earlier"} than on other days.`
      : "";
  return what + through + afterwards(window, before, after, `${size} ${forward ? "earlier" : "later"}`);
}

function afterwards(
  { schedule }: MaintenanceWindow,
  before: MaintenanceRun | undefined,
  [first, second]: readonly MaintenanceRun[],
  inUtc: string,
): string {
  const type = Number(schedule?.recurrence?.type ?? 0n);
  if (first === undefined || before === undefined) return "";
  const [was, next, then] = [before, first, second].map((run) => run && localParts(run.localStart).time);
  if (type === 1 || type === 2) {
    return ` The runs are a fixed time apart, so their time of the day moves: ${was} before it, ${next} after it.`;
  }
  if (was === next) return ` Runs go on to begin at ${was} by the clock; in UTC they begin ${inUtc}.`;
  if (was === then) {
    return ` ${was} does not exist on that day, so that run begins at ${next}; those after it begin at ${was} again.`;
  }
  return ` The last run before it begins at ${was}, the first after it at ${next}.`;
}
