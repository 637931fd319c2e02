import { useSignal } from "@preact/signals";
import { EventManagementService } from "#gen/belfry/events/v1/management_service_pb.ts";
import { say, sayFailure } from "../data/notice.ts";
import { may } from "../data/session.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import { AskFirst } from "../ui/ask-first.tsx";
import { doMatching, type MatchingAction } from "./matching.ts";
import type { QueryInit } from "./query.ts";

interface MatchingActionsProps {
  /** Count of the occurrences, and of the unacknowledged among them. */
  readonly count: number;
  readonly unacknowledged: number;
  /** Their name in labels of buttons, as in `of disk full`. */
  readonly of: string;
  /** The query that finds them. */
  query(): QueryInit;
  changed(): void;
  /** Letters do it, too: a acknowledges, c closes. */
  readonly letters: boolean;
}

const words = { acknowledge: "acknowledged", close: "closed" } as const;

/** Acknowledges or closes all that a query finds, whether it is loaded or not, with the way back. */
export function MatchingActions({ count, unacknowledged, of, query, changed, letters }: MatchingActionsProps) {
  const progress = useSignal("");
  const run = async (action: MatchingAction) => {
    if (progress.peek() !== "") return;
    progress.value = "…";
    const done = await doMatching(action, query(), (so) => {
      progress.value = `${so.toLocaleString("en")} ${words[action]}…`;
    });
    progress.value = "";
    changed();
    const text = `${done.count.toLocaleString("en")} ${words[action]}`;
    const { undo } = done;
    if (done.error !== "") sayFailure(`${text}; the others not: ${done.error}`);
    else if (undo === undefined) say(text);
    else
      say(text, async () => {
        await undo();
        changed();
      });
  };
  const allowed = may(EventManagementService.method.setMatchingStatus);
  useShortcuts(allowed && letters && unacknowledged > 0 ? { a: () => void run("acknowledge") } : {});
  if (!allowed) return null;
  const number = count.toLocaleString("en");
  return (
    <>
      {unacknowledged > 0 && (
        <button
          type="button"
          aria-label={`Acknowledge all ${number} ${of}`}
          // A disabled button would lose the focus.
          aria-disabled={progress.value !== ""}
          onClick={() => void run("acknowledge")}
        >
          Acknowledge
        </button>
      )}
      <AskFirst
        action="Close"
        letter={letters ? "c" : undefined}
        label={`Close all ${number} ${of}…`}
        question={`Close all ${number} ${of}?`}
        act={() => run("close")}
      />
      <span role="status">{progress.value}</span>
    </>
  );
}
