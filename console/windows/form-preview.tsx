import { toJsonString } from "@bufbuild/protobuf";
import { type MaintenanceWindow, MaintenanceWindowSchema } from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import { MaintenanceWindowService } from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { useAnswer } from "../data/answer.ts";
import { clientOf } from "../data/calls.ts";
import { useSettled } from "../data/settled.ts";
import { Problem } from "../ui/problem.tsx";
import ui from "../ui/ui.module.css";
import { ClockChangeCard, RunTable } from "./clock-change.tsx";
import { EntityNames, targetsText } from "./entities.tsx";
import { recurrenceWords } from "./recurrence-words.ts";
import type { WindowFormState } from "./schedule-fields.tsx";
import { Timeline } from "./timeline.tsx";
import { UnmutedRules } from "./unmuted.tsx";

const windows = clientOf(MaintenanceWindowService);
const shownMs = 5 * 604_800_000;
const runsMax = 500;
const listedMax = 5;

function textOf(value: MaintenanceWindow): string {
  try {
    return toJsonString(MaintenanceWindowSchema, value);
  } catch {
    return "";
  }
}

/** What the server would make of the form's window, as a person types. */
export function FormPreview({ form, id }: { form: WindowFormState; id: string }) {
  const { value, labelOf } = form;
  const settled = useSettled(textOf(value));
  const answer = useAnswer(async (signal) => {
    const start = Date.now();
    // A name that is not typed yet keeps nothing from being seen.
    const specification = { ...value, name: value.name || "new" };
    const timeRange = { start: BigInt(start) };
    const preview = await windows.previewMaintenanceWindow({ id, specification, timeRange, runsMax }, { signal });
    return { preview, window: value, start };
  }, settled);
  const { value: seen, failure, again } = answer.value;
  const end = (seen?.start ?? 0) + shownMs;
  const runs = seen?.preview.runs ?? [];
  const shown = runs.filter(({ start }) => Number(start) < end);
  const more = shown.length === runs.length && seen?.preview.moreRuns === true;
  // Other failures say nothing of the form: what the server said last stays.
  const refused = failure?.invalid ? failure : undefined;
  const wrong = (refused?.fields ?? []).map(({ field, description }) => {
    const path = field.replace(/^specification\.?/, "");
    return { path, text: `${labelOf(path) ?? path}: ${description}` };
  });
  return (
    <section class={ui.preview} aria-label="Preview" aria-live="polite">
      <h2>What the server would do</h2>
      {!wrong.some(({ path }) => path.startsWith("schedule")) && <p>Runs {recurrenceWords(value)}.</p>}
      {refused === undefined ? (
        <Problem failure={failure} again={again} />
      ) : (
        <div>
          <p class={ui.quiet}>The preview waits until this is in order:</p>
          <ul>
            {wrong.length === 0 && <li>{refused.message}</li>}
            {wrong.map(({ text }) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      )}
      {seen && !refused && (
        <>
          <section class={ui.card} aria-label="Runs">
            <h2>The next 5 weeks</h2>
            <Timeline
              label="The next 5 weeks"
              start={seen.start}
              end={end}
              rows={[{ id, name: value.name, runs: shown, more }]}
            />
            {more && <p class={ui.hint}>These are the first {shown.length} runs; there are more.</p>}
            {runs.length === 0 ? (
              <p>It has no run to come by itself.</p>
            ) : (
              <RunTable
                label="The next runs"
                runs={runs.slice(0, listedMax)}
                zone={seen.window.schedule?.timeZone || "UTC"}
              />
            )}
          </section>
          <UnmutedRules preview={seen.preview} />
          <ClockChangeCard window={seen.window} change={seen.preview.clockChange} runs={runs.length > 0} />
          <section class={ui.card} aria-label="Entities">
            <h2>Entities that a run would take in if it began now: {targetsText(seen.preview.targets)}</h2>
            <EntityNames
              label="Entities that a run would take in"
              entities={seen.preview.targets?.entities.slice(0, 20) ?? []}
              more={(seen.preview.targets?.count ?? 0n) > 20n}
            />
          </section>
        </>
      )}
    </section>
  );
}
