import { failureOf } from "../data/calls.ts";
import { notice, say, unsay } from "../data/notice.ts";
import ui from "../ui/ui.module.css";
import frameLook from "./frame.module.css";

/** The place for what was just done, read out by screen readers as it changes. */
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
    <div class={frameLook.notice} role="status" aria-label="Done">
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
