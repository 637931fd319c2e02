import { replacing } from "../data/session.ts";
import { Dialog } from "../ui/dialog.tsx";
import ui from "../ui/ui.module.css";

/** Asks whether a link may replace the session of this browser. */
export function ReplaceSession() {
  const asked = replacing.value;
  if (asked === undefined) return null;
  return (
    <Dialog title="Log in by this link?" close={() => asked.answer(false)}>
      <p>{asked.question}</p>
      <div class={ui.buttons}>
        <button type="button" onClick={() => asked.answer(false)}>
          Stay logged in
        </button>
        <button type="button" class={ui.primary} onClick={() => asked.answer(true)}>
          Log in by the link
        </button>
      </div>
    </Dialog>
  );
}
