import { signal } from "@preact/signals";
import { failureOf } from "../data/calls.ts";

/** What was just done, and how to take it back where the API can. It stands until the next one, or until it is closed. */
interface Notice {
  readonly text: string;
  readonly undo?: () => Promise<unknown>;
}

const notice = signal<Notice | undefined>(undefined);

/** Says what was done. With `undo` there is a button that takes it back. */
export function say(text: string, undo?: () => Promise<unknown>): void {
  notice.value = undo === undefined ? { text } : { text, undo };
}

/** Takes it out of sight: what another session did is no matter of this one, and cannot be taken back by it. */
export function unsay(): void {
  notice.value = undefined;
}

/** The place for it, read out by screen readers as it changes. */
export function NoticePlace() {
  const now = notice.value;
  const takeBack = async () => {
    if (now?.undo === undefined) return;
    say("Taking it back…");
    try {
      await now.undo();
      say("Taken back.");
    } catch (error) {
      say(`It could not be taken back: ${failureOf(error).message}`);
    }
  };
  return (
    <div class={now === undefined ? "notice empty" : "notice"} role="status" aria-label="Done">
      {now && (
        <>
          <span>{now.text}</span>
          {now.undo && (
            <button type="button" onClick={() => void takeBack()}>
              Undo
            </button>
          )}
          <button type="button" class="plain" aria-label="Close the message" onClick={unsay}>
            ×
          </button>
        </>
      )}
    </div>
  );
}
