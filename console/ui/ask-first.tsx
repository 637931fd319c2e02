import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { type Failure, failureOf } from "../data/calls.ts";
import { useShortcuts } from "../data/shortcuts.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./problem.tsx";
import ui from "./ui.module.css";

interface AskFirstProps {
  /** Text of the button and of the dialog's button. */
  readonly action: string;
  /** The button's name where several on a page say the same. */
  readonly label?: string;
  /** The question, as in `Delete the group "Storage"?`. */
  readonly question: string;
  /** Consequences of the action, and the users of the thing. */
  readonly children?: ComponentChildren;
  act(): Promise<unknown>;
  /** Reads again what uses it: when the question opens, and after a refusal. */
  look?(): void;
  /** Shortcut that opens the question. */
  readonly letter?: string | undefined;
}

/** A button for what deletes or ends something: it asks first, and says where it stands why it was refused. */
export function AskFirst({ action, label, question, children, act, look, letter }: AskFirstProps) {
  const asking = useSignal(false);
  const busy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const close = () => {
    asking.value = false;
    failure.value = undefined;
  };
  const run = async () => {
    busy.value = true;
    try {
      await act();
      close();
    } catch (error) {
      failure.value = failureOf(error);
      look?.();
    } finally {
      busy.value = false;
    }
  };
  const ask = () => {
    asking.value = true;
    look?.();
  };
  useShortcuts(letter === undefined ? {} : { [letter]: ask });
  return (
    <>
      <button type="button" aria-label={label} class={ui.danger} onClick={ask}>
        {action}…
      </button>
      {asking.value && (
        <Dialog title={question} close={close}>
          {children}
          <Problem failure={failure.value} />
          <div class={ui.buttons}>
            <button type="button" class={`${ui.danger} ${ui.primary}`} disabled={busy.value} onClick={() => void run()}>
              {action}
            </button>
            <button type="button" onClick={close}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
