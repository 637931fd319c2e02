import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Status } from "#gen/belfry/events/v1/event_pb.ts";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { SilenceService } from "#gen/belfry/notifications/v1/silence_service_pb.ts";
import { address, goTo } from "../data/address.ts";
import { clientOf, failureOf, failureOfOneRead } from "../data/calls.ts";
import { say, sayFailure } from "../data/notice.ts";
import { may } from "../data/session.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import { silenceLink } from "../silences/link.ts";
import { More } from "../ui/more.tsx";
import { narrow } from "../ui/narrow.ts";
import { countText } from "../ui/quantity.ts";
import ui from "../ui/ui.module.css";
import { Annotate } from "./annotate.tsx";
import { calledOf } from "./entity-names.ts";
import eventsLook from "./events.module.css";
import type { EventRow } from "./list-rows.ts";

const management = clientOf(EventManagementService);
const itemsMax = 500;

type Occurrence = EventRow["occurrence"];

/** An action on occurrences: its name, its name when done, and its call. */
interface Action {
  readonly name: string;
  readonly done: string;
  /** It leaves alone what is closed. */
  readonly sparesClosed?: boolean;
  send(rows: readonly EventRow[]): Promise<readonly { success: boolean; error: string }[]>;
  /** The action that undoes this one, from the state that the rows had before. */
  readonly back?: Action;
}

const idsOf = ({ event, occurrence }: EventRow) => ({ eventId: event.id, occurrenceId: occurrence.id });

/** An action that sets the acknowledgement or the status. */
interface SettingAction extends Action {
  /** Tells whether the action would change this occurrence. */
  changes(row: EventRow): boolean;
}

interface Setting {
  readonly acknowledged?: boolean | undefined;
  readonly status?: Status | undefined;
}

const send = async (rows: readonly EventRow[], settingOf: (row: EventRow) => Setting) => {
  const statuses = rows.map((row) => {
    const { acknowledged, status } = settingOf(row);
    return {
      ...idsOf(row),
      ...(acknowledged !== undefined && { acknowledged }),
      ...(status !== undefined && { statusWrapper: { status } }),
    };
  });
  return (await management.setEventStatus({ statuses })).statusResponses;
};

function setting(
  name: string,
  done: string,
  change: Setting,
  changes: (occurrence: Occurrence) => boolean,
): SettingAction {
  const before = ({ occurrence }: EventRow) => ({
    ...(change.acknowledged !== undefined && { acknowledged: occurrence.acknowledged ?? false }),
    ...(change.status !== undefined && { status: occurrence.status }),
  });
  return {
    name,
    done,
    changes: ({ occurrence }) => changes(occurrence),
    send: (rows) => send(rows, () => change),
    back: { name: "Undo", done: "as before", send: (rows) => send(rows, before) },
  };
}

const isClosed = ({ status }: Occurrence) => status === Status.CLOSED;
const isEnded = ({ status }: Occurrence) => status === Status.CLOSED || status === Status.SUPPRESSED;

const settings: readonly SettingAction[] = [
  {
    ...setting("Acknowledge", "acknowledged", { acknowledged: true }, (of) => !of.acknowledged && !isClosed(of)),
    sparesClosed: true,
  },
  setting("Unacknowledge", "no longer acknowledged", { acknowledged: false }, (of) => of.acknowledged ?? false),
  setting("Close", "closed", { status: Status.CLOSED }, (of) => !isClosed(of)),
  setting("Suppress", "suppressed", { status: Status.SUPPRESSED }, (of) => !isEnded(of)),
  setting("Reopen", "open again", { status: Status.OPEN }, isEnded),
];

/** Returns the actions that would change at least one row. A closed occurrence is reopened before it can be suppressed. */
const settingsFor = (rows: readonly EventRow[]) =>
  settings.filter(
    ({ name, changes }) =>
      rows.some(changes) && !(name === "Suppress" && rows.some(({ occurrence }) => isClosed(occurrence))),
  );

const annotating = (annotation: string): Action => ({
  name: "Annotate",
  done: "annotated",
  async send(rows) {
    const annotations = rows.map((row) => ({ ...idsOf(row), annotation }));
    return (await management.annotateEvents({ annotations })).annotationResponses;
  },
});

interface Outcome {
  readonly action: Action;
  readonly finished: number;
  readonly of: number;
  readonly failed: readonly { row: EventRow; error: string }[];
}

/** Does it to all rows, a few hundred in a request, and reports after each. */
async function perform(action: Action, rows: readonly EventRow[], report: (outcome: Outcome) => void): Promise<void> {
  const failed: { row: EventRow; error: string }[] = [];
  report({ action, finished: 0, of: rows.length, failed });
  for (let from = 0; from < rows.length; from += itemsMax) {
    const part = rows.slice(from, from + itemsMax);
    try {
      const results = await action.send(part);
      results.forEach(({ success, error }, at) => {
        const row = part[at];
        if (!success && row !== undefined) failed.push({ row, error });
      });
    } catch (error) {
      const { message } = failureOf(error);
      failed.push(...part.map((row) => ({ row, error: message })));
    }
    report({ action, finished: Math.min(from + itemsMax, rows.length), of: rows.length, failed: [...failed] });
  }
}

/** Says what was done, with the way back, after which `reread` brings the rows up to date. */
function sayDone(action: Action, rows: readonly EventRow[], reread: Reread): void {
  const { back, done } = action;
  const undo = async () => {
    if (back === undefined) return;
    let failed: Outcome["failed"] = [];
    await perform(back, rows, (now) => {
      failed = now.failed;
    });
    await reread(rows);
    const [first] = failed;
    if (first !== undefined)
      throw new Error(`${countText(failed.length)} of ${countText(rows.length)} stay: ${first.error}`);
  };
  say(`${countText(rows.length)} ${done}`, back && undo);
}

/** Reads rows again that were changed: an action that follows at once has to know from what it changes them. */
type Reread = (rows: readonly EventRow[]) => unknown;

interface ActionsProps {
  readonly rows: readonly EventRow[];
  /** The row that keys are about where none is selected. */
  readonly current?: EventRow | undefined;
  readonly reread: Reread;
  /** Acknowledging is what the screen is for. */
  readonly main?: boolean;
}

/** Shows the buttons for what can be done with these rows, and what came of it. */
export function Actions({ rows, current, reread, main }: ActionsProps) {
  const outcome = useSignal<Outcome | undefined>(undefined);
  const writing = useSignal(false);
  /** Occurrences of the actions under way. */
  const busy = useRef(new Set<string>());
  const silencing = useSignal(false);
  const run = async (action: Action, chosen: readonly EventRow[]) => {
    for (const { occurrence } of chosen) busy.current.add(occurrence.id);
    await perform(action, chosen, (now) => {
      outcome.value = now;
      if (now.finished === now.of) for (const { occurrence } of chosen) busy.current.delete(occurrence.id);
    });
    const failed = new Set(outcome.peek()?.failed.map(({ row }) => row));
    const succeeded = chosen.filter((row) => !failed.has(row));
    await reread(chosen);
    if (succeeded.length > 0) sayDone(action, succeeded, reread);
  };
  const wanted = settingsFor(rows);
  const now = outcome.value;
  const targets = rows.length > 0 || current === undefined ? rows : [current];
  /** Runs an action, unless one on any of these is under way. */
  const start = (action: Action, among: readonly EventRow[]) => {
    const chosen = action.sparesClosed ? among.filter(({ occurrence }) => !isClosed(occurrence)) : among;
    if (!chosen.some(({ occurrence }) => busy.current.has(occurrence.id))) void run(action, chosen);
  };
  const pressed = (name: string) => {
    const action = settingsFor(targets).find((each) => each.name === name);
    if (action && may(EventManagementService.method.setEventStatus)) start(action, targets);
  };
  const shortcuts = {
    a() {
      const acknowledges = settingsFor(targets).some(({ name }) => name === "Acknowledge");
      pressed(acknowledges ? "Acknowledge" : "Unacknowledge");
    },
    c: () => pressed("Close"),
    n() {
      writing.value = may(EventManagementService.method.annotateEvents);
    },
  };
  useShortcuts(targets.length > 0 ? shortcuts : {});
  const buttons = (names: readonly string[]) =>
    rows.length > 0 &&
    may(EventManagementService.method.setEventStatus) &&
    wanted
      .filter(({ name }) => names.includes(name))
      .map((action, place) => (
        <button
          // By place: the button that takes the place of the one that was pressed has its focus.
          key={place}
          type="button"
          class={main && action.name === "Acknowledge" ? ui.primary : undefined}
          // The button that follows in its place may be the opposite, which the second press of a double one would do.
          onKeyDown={(event) => {
            if (event.repeat) event.preventDefault();
          }}
          onClick={({ detail }) => {
            if (detail <= 1) start(action, rows);
          }}
        >
          {action.name}
        </button>
      ));
  const [onlyRow] = rows.length === 1 ? rows : [];
  const silence = async () => {
    if (silencing.peek()) return;
    silencing.value = true;
    const here = address.peek();
    try {
      const matchers = await matchersOfRows(rows);
      // Who went elsewhere meanwhile stays there.
      if (address.peek() === here) goTo(silenceLink({ matchers: matchers.join("\n") }));
    } catch (error) {
      sayFailure(failureOfOneRead(error).message);
    } finally {
      silencing.value = false;
    }
  };
  const rareActions = rows.length > 0 && (
    <>
      {buttons(["Suppress"])}
      {may(EventManagementService.method.annotateEvents) && (
        <button
          type="button"
          onClick={() => {
            writing.value = true;
          }}
        >
          Annotate…
        </button>
      )}
    </>
  );
  return (
    <>
      {buttons(["Acknowledge", "Unacknowledge"])}
      {onlyRow && may(SilenceService.method.createSilence) && (
        <a class={ui.button} href={silenceLink({ occurrence: onlyRow.occurrence.id })}>
          Silence…
        </a>
      )}
      {rows.length > 1 && may(SilenceService.method.createSilence) && (
        <button type="button" aria-disabled={silencing.value} onClick={() => void silence()}>
          Silence…
        </button>
      )}
      {buttons(["Close", "Reopen"])}
      {narrow.value && rows.length > 0 && may(EventManagementService.method.annotateEvents) ? (
        <More label="More actions" closes>
          {rareActions}
        </More>
      ) : (
        rareActions
      )}
      {now && <Result outcome={now} again={(failed) => start(now.action, failed)} />}
      {writing.value && (
        <Annotate
          count={targets.length}
          close={() => {
            writing.value = false;
          }}
          write={(text) => run(annotating(text), targets)}
        />
      )}
    </>
  );
}

/**
 * Returns the matchers of a silence of several rows.
 * @throws if there are too many rows, or no label in common
 */
async function matchersOfRows(rows: readonly EventRow[]): Promise<string[]> {
  if (rows.length > itemsMax) throw new Error(`A silence is made from at most ${countText(itemsMax)} rows.`);
  const { sharedMatchers } = await import("./shared-matchers.ts");
  const matchers = await sharedMatchers(rows);
  if (matchers.length === 0) throw new Error("These occurrences have no label in common that a silence can match.");
  return matchers;
}

function Result({ outcome, again }: { outcome: Outcome; again(rows: readonly EventRow[]): void }) {
  const { action, finished, of, failed } = outcome;
  if (finished === of && failed.length === 0) return null;
  return (
    <div class={eventsLook.result} role="status">
      <span>
        {finished < of
          ? `${countText(finished)} of ${countText(of)}…`
          : `${countText(of - failed.length)} ${action.done}, ${countText(failed.length)} not`}
      </span>
      {finished === of && failed.length > 0 && (
        <details open={failed.length <= 5}>
          <summary>Why</summary>
          <ul>
            {failed.slice(0, 50).map(({ row, error }) => (
              <li key={row.occurrence.id}>
                {row.event.name} on {calledOf(row.event)}: {error}
              </li>
            ))}
          </ul>
          <button type="button" onClick={() => again(failed.map(({ row }) => row))}>
            Try these again
          </button>
        </details>
      )}
    </div>
  );
}
