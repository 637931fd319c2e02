import { useSignal } from "@preact/signals";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { say, sayFailure } from "../data/notice.ts";
import { may } from "../data/session.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import { AskFirst } from "../ui/ask-first.tsx";
import { Annotate } from "./annotate.tsx";
import { annotateMatching, type Done, doMatching, type MatchingAction } from "./matching.ts";
import type { QueryInit } from "./query.ts";

interface MatchingActionsProps {
  /** Count of the occurrences, and of the unacknowledged among them where it is known. */
  readonly count: number;
  readonly unacknowledged?: number;
  /** Their name in labels of buttons, as in `of disk full`. */
  readonly of: string;
  /** The query that finds them. */
  query(): QueryInit;
  changed(): void;
  /** True if the shortcuts a (acknowledge, or withdraw that), c (close) and n (annotate) act on these. */
  readonly letters: boolean;
}

const words = { acknowledge: "acknowledged", unacknowledge: "no longer acknowledged", close: "closed" } as const;
const names = { acknowledge: "Acknowledge", unacknowledge: "Unacknowledge" } as const;

/** Acknowledges, closes or annotates all that a query finds, whether it is loaded or not, with the way back. */
export function MatchingActions({ count, unacknowledged, of, query, changed, letters }: MatchingActionsProps) {
  const progress = useSignal("");
  const writing = useSignal(false);
  const run = async (word: string, act: (report: (so: number) => void) => Promise<Done>) => {
    // The question of Close, and the dialog of Annotate, show it.
    if (progress.peek() !== "") throw new Error("Another action on these is still running. Try again once it is done.");
    progress.value = "…";
    const done = await act((so) => {
      progress.value = `${so.toLocaleString("en")} ${word}…`;
    });
    progress.value = "";
    changed();
    const text = `${done.count.toLocaleString("en")} ${word}`;
    const { undo } = done;
    if (done.error !== "") sayFailure(`${text}; the others not: ${done.error}`);
    else if (undo === undefined) say(text);
    else
      say(text, async () => {
        await undo();
        changed();
      });
  };
  const set = (action: MatchingAction) => run(words[action], (report) => doMatching(action, query(), report));
  const sets = may(EventManagementService.method.setMatchingStatus);
  const annotates = may(EventManagementService.method.annotateEvents);
  const wanted = (
    unacknowledged === undefined
      ? ["acknowledge", "unacknowledge"]
      : [unacknowledged > 0 ? "acknowledge" : "unacknowledge"]
  ) as readonly ("acknowledge" | "unacknowledge")[];
  const [first = "acknowledge"] = wanted;
  /** Does at once what asks no question; nothing while another action runs. */
  const press = (action: MatchingAction) => {
    if (progress.peek() === "") void set(action);
  };
  const annotate = () => {
    writing.value = true;
  };
  useShortcuts({
    ...(letters && sets && { a: () => press(first) }),
    ...(letters && annotates && { n: annotate }),
  });
  const number = count.toLocaleString("en");
  return (
    <>
      {sets &&
        wanted.map((action, place) => (
          <button
            // By place: the button that takes the place of the one that was pressed has its focus.
            key={place}
            type="button"
            aria-label={`${names[action]} all ${number} ${of}`}
            // A disabled button would lose the focus.
            aria-disabled={progress.value !== ""}
            // The second press of a double one, or of a key that is held, would do the opposite.
            onKeyDown={(event) => {
              if (event.repeat) event.preventDefault();
            }}
            onClick={({ detail }) => {
              if (detail <= 1) press(action);
            }}
          >
            {names[action]}
          </button>
        ))}
      {sets && (
        <AskFirst
          action="Close"
          letter={letters ? "c" : undefined}
          label={`Close all ${number} ${of}…`}
          question={`Close all ${number} ${of}?`}
          act={() => set("close")}
        />
      )}
      {annotates && (
        <button type="button" aria-label={`Annotate all ${number} ${of}…`} onClick={annotate}>
          Annotate…
        </button>
      )}
      {writing.value && (
        <Annotate
          count={count}
          close={() => {
            writing.value = false;
          }}
          write={(text) => run("annotated", (report) => annotateMatching(text, query(), report))}
        />
      )}
      <span role="status">{progress.value}</span>
    </>
  );
}
