import { effect, type Signal, untracked, useSignal, useSignalEffect } from "@preact/signals";
import { screenName } from "../data/address.ts";
import { failureOf } from "../data/calls.ts";
import { notice, say, sayFailure, unsay } from "../data/notice.ts";
import ui from "../ui/ui.module.css";
import frameLook from "./frame.module.css";

/** How long it stands, unless a person points at it or it has the focus. */
const standsMs = 10_000;
/** What is done by going elsewhere is said there. */
const goesOnMs = 1000;

/** Takes a notice away after its time, and with the screen that it was said on. */
function useEnd(held: Signal<boolean>): void {
  useSignalEffect(() => {
    const now = notice.value;
    if (now === undefined || now.failed || held.value) return;
    const ending = setTimeout(unsay, standsMs);
    return () => clearTimeout(ending);
  });
  useSignalEffect(() => {
    const now = notice.value;
    const said = performance.now();
    const screen = screenName.peek();
    const end = effect(() => {
      if (screenName.value !== screen && performance.now() - said > goesOnMs && untracked(() => notice.value) === now)
        unsay();
    });
    return end;
  });
}

/** The place for what was just done, read out by screen readers as it changes. */
export function NoticePlace() {
  const now = notice.value;
  const held = useSignal(false);
  useEnd(held);
  const hold = (on: boolean) => () => {
    held.value = on;
  };
  const takeBack = async () => {
    if (now?.undo === undefined) return;
    say("Taking it back…");
    try {
      await now.undo();
      say("Taken back.");
    } catch (error) {
      sayFailure(`It could not be taken back: ${failureOf(error).message}`);
    }
  };
  return (
    <div
      class={frameLook.notice}
      role="status"
      aria-label="Done"
      onPointerEnter={hold(true)}
      onPointerLeave={hold(false)}
      onFocusIn={hold(true)}
      onFocusOut={hold(false)}
    >
      {now && (
        <>
          <span>{now.text}</span>
          {now.undo && (
            <button type="button" onClick={() => void takeBack()}>
              Undo
            </button>
          )}
          <button type="button" class={ui.plain} aria-label="Close the message" onClick={unsay}>
            ×
          </button>
        </>
      )}
    </div>
  );
}
