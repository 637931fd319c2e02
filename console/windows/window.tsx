import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import {
  type MaintenanceWindow,
  RunMode,
  RunState,
  WindowStatus,
} from "#gen/belfry/maintenance/v1/maintenance_window_pb.ts";
import {
  MaintenanceWindowService,
  type PreviewMaintenanceWindowResponse,
} from "#gen/belfry/maintenance/v1/maintenance_window_service_pb.ts";
import { searchClauses } from "../clause/search-clause.ts";
import { clauseWords } from "../clause/words.ts";
import { goTo, linkTo } from "../data/address.ts";
import { clientOf, type Failure, failureOf } from "../data/calls.ts";
import { useOne } from "../data/one.ts";
import { may } from "../data/session.ts";
import { stateText } from "../entities/states.ts";
import { AskFirst } from "../ui/ask-first.tsx";
import { Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { nowMs, Time } from "../ui/time.tsx";
import { Trouble } from "../ui/trouble.tsx";
import ui from "../ui/ui.module.css";
import { ClockChangeCard, RunTable } from "./clock-change.tsx";
import { EntitiesCard, takesIn } from "./entities.tsx";
import { deleteWindow, endNow, readWindow, startNow } from "./one.ts";
import { recurrenceWords } from "./recurrence-words.ts";
import { SilentCard } from "./silent.tsx";
import { Timeline, WeeksChoice, weeksHere } from "./timeline.tsx";
import { WindowState } from "./words.tsx";

const windows = clientOf(MaintenanceWindowService);
const weekMs = 604_800_000;
/** How soon the page looks again for what the server is about to do. */
const rereadMs = 1000;

/** One window: when it runs, what it holds, what it keeps silent. */
export function OneWindow({ id }: { id: string }) {
  const answer = useOne("window", async (signal) => {
    // Others start, stop and change it.
    nowMs.value;
    const start = Date.now();
    const end = start + weeksHere() * weekMs;
    const timeRange = { start: BigInt(start), end: BigInt(end) };
    const window = await readWindow(id, signal);
    if (window === null) return null;
    const preview = await windows.previewMaintenanceWindow({ id, timeRange, runsMax: 500 }, { signal });
    return { window, preview, start, end };
  });
  const { value, failure, again } = answer.value;
  useEffect(() => {
    const outdatedMs = value ? outdatedAtMs(value) : undefined;
    if (outdatedMs === undefined) return;
    const waitMs = Math.min(Math.max(outdatedMs - Date.now(), rereadMs), weekMs);
    const waiting = setTimeout(again, waitMs);
    return () => clearTimeout(waiting);
  }, [value]);
  return (
    <div class={ui.screen}>
      <ScreenHead
        title={value?.window.name ?? "Maintenance window"}
        above={["Maintenance", linkTo(["windows"])]}
        tools={value && <Tools window={value.window} held={value.preview.heldCount} changed={again} />}
      />
      <Problem failure={failure} again={again} />
      {value === null && <p class={ui.pad}>There is no such window. It may have been deleted.</p>}
      <Trouble text={value?.window.trouble ?? ""} />
      {value && (
        <div class={ui.scroll}>
          <div class={ui.twoWide}>
            <Now window={value.window} preview={value.preview} />
            <ClockChangeCard
              window={value.window}
              change={value.preview.clockChange}
              runs={value.preview.runs.length > 0}
            />
            <EntitiesCard window={value.window} preview={value.preview} />
            <SilentCard window={value.window} preview={value.preview} />
            <About window={value.window} />
          </div>
          <Runs {...value} />
        </div>
      )}
    </div>
  );
}

interface Read {
  readonly window: MaintenanceWindow;
  readonly preview: PreviewMaintenanceWindowResponse;
}

/** When what was read is out of date by itself: at the next start or end, and soon while entities enter a run or leave it. */
function outdatedAtMs({ window, preview }: Read): number | undefined {
  const running = window.runState === RunState.IN_PROGRESS;
  if (takesIn(window, preview) || (!running && preview.heldCount > 0n)) return Date.now();
  const [first] = preview.runs;
  const next = running ? first?.end : first?.start;
  return next === undefined ? undefined : Number(next);
}

interface ToolsProps {
  readonly window: MaintenanceWindow;
  readonly held: bigint;
  changed(): void;
}

function Tools({ window, held, changed }: ToolsProps) {
  const failure = useSignal<Failure | undefined>(undefined);
  const running = window.runState === RunState.IN_PROGRESS;
  const { startMaintenanceWindow, stopMaintenanceWindow, replaceMaintenanceWindow, deleteMaintenanceWindows } =
    MaintenanceWindowService.method;
  const run = async (act: typeof startNow) => {
    failure.value = undefined;
    try {
      await act(window, changed);
    } catch (error) {
      failure.value = failureOf(error);
      changed();
    }
  };
  return (
    <>
      {running && may(stopMaintenanceWindow) && (
        <button type="button" class={ui.danger} onClick={() => void run(endNow)}>
          End now
        </button>
      )}
      {!running && window.status === WindowStatus.ENABLED && may(startMaintenanceWindow) && (
        <button type="button" onClick={() => void run(startNow)}>
          Start now
        </button>
      )}
      {may(replaceMaintenanceWindow) && (
        <a class={ui.button} href={linkTo(["windows", window.id], { edit: "1" })}>
          Change
        </a>
      )}
      {may(deleteMaintenanceWindows) && (
        <AskFirst
          action="Delete"
          question={`Delete the window "${window.name}"?`}
          act={async () => {
            await deleteWindow(window);
            goTo(linkTo(["windows"]));
          }}
        >
          <p>
            {running
              ? `It runs now: its run ends, and the ${held.toLocaleString("en")} entities that it holds go back to their states.`
              : "It does not run now, and will not run any more."}
          </p>
        </AskFirst>
      )}
      <Problem failure={failure.value} />
    </>
  );
}

function Now({ window, preview }: Read) {
  const running = window.runState === RunState.IN_PROGRESS;
  const [first] = preview.runs;
  const skipped = Number(window.schedule?.skipNext ?? 0n);
  return (
    <section class={ui.card} aria-labelledby="now">
      <h2 id="now">Now and next</h2>
      <p>
        <WindowState window={window} />
      </p>
      <p>Runs {recurrenceWords(window)}.</p>
      <dl class={ui.facts}>
        {running && first && (
          <>
            <dt>Began</dt>
            <dd>
              <Time at={first.start} />
            </dd>
            <dt>Ends</dt>
            <dd>{first.end === undefined ? "no end is in sight" : <Time at={first.end} />}</dd>
          </>
        )}
        <dt>Next start</dt>
        <dd>
          <NextStart window={window} preview={preview} />
        </dd>
        {skipped > 0 && (
          <>
            <dt>Skipped</dt>
            <dd>{skipped === 1 ? "the next run" : `the next ${skipped} runs`}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

/** The start of the next run. One that falls into the run that goes on only makes that longer. */
function NextStart({ window, preview }: Read) {
  const { nextStart } = window;
  const [first, second] = preview.runs;
  const running = window.runState === RunState.IN_PROGRESS ? first : undefined;
  if (nextStart === undefined) return nextWords(window);
  if (running === undefined || (running.end !== undefined && nextStart >= running.end)) return <Time at={nextStart} />;
  if (second !== undefined) return <Time at={second.start} />;
  const isKnown = running.end === undefined || Number(window.schedule?.recurrence?.type ?? 0n) === 0;
  return (
    <>
      {isKnown ? "none" : "not in the weeks shown"}: that at <Time at={nextStart} /> makes this run longer
    </>
  );
}

function nextWords({ status, runMode }: MaintenanceWindow): string {
  if (status === WindowStatus.DISABLED) return "none: it is disabled";
  return runMode === RunMode.MANUAL ? "when it is started" : "none";
}

function Runs({ window, preview, start, end }: Read & { readonly start: number; readonly end: number }) {
  const { runs, moreRuns } = preview;
  return (
    <section class={ui.card} aria-labelledby="runs">
      <div class={ui.cardHead}>
        <h2 id="runs">Runs to come</h2>
        <WeeksChoice />
      </div>
      <Timeline
        label="The weeks to come"
        start={start}
        end={end}
        rows={[{ id: window.id, name: window.name, runs, more: moreRuns }]}
      />
      {runs.length === 0 ? (
        <p class={ui.quiet}>No run in this time.</p>
      ) : (
        <RunTable label="Runs to come" runs={runs} zone={window.schedule?.timeZone || "UTC"} />
      )}
      {moreRuns && <p class={ui.hint}>These are the first {runs.length}; there are more.</p>}
    </section>
  );
}

function About({ window }: { window: MaintenanceWindow }) {
  const { description, owner, tags, notification, target } = window;
  const clause = target.case === "query" ? target.value.clause : undefined;
  const rows: readonly (readonly [string, string])[] = [
    ["Description", description],
    ["Owner", owner],
    ["Tags", tags.join(", ")],
    ["State of its entities", stateText(BigInt(window.maintenanceState ?? 0))],
    ["After a run", window.overrideExitState ? stateText(BigInt(window.exitState)) : "what they had"],
    ["Children", window.doNotPropagateToChildren ? "stay as they are" : "follow"],
    ["Decommissioned", window.force ? "take part" : "stay as they are"],
    ["Entities with", clause ? clauseWords(searchClauses, clause) : ""],
    ["Message", notification?.message ?? ""],
    ["Sent by rules", notification?.rules.join(", ") ?? ""],
  ];
  return (
    <section class={ui.card} aria-labelledby="about">
      <h2 id="about">About</h2>
      <dl class={ui.facts}>
        {rows
          .filter(([, text]) => text !== "")
          .map(([name, text]) => (
            <div key={name} class={ui.fact}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
      </dl>
      <p class={ui.hint}>
        Made by {window.createdBy} <Time at={window.createTime} short />, changed by {window.updatedBy}{" "}
        <Time at={window.updateTime} short />
      </p>
    </section>
  );
}
