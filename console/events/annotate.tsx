import { useSignal } from "@preact/signals";
import { type Failure, failureOf } from "../data/calls.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Problem } from "../ui/problem.tsx";
import { countText } from "../ui/quantity.ts";
import ui from "../ui/ui.module.css";

interface AnnotateProps {
  count: number;
  close(): void;
  write(text: string): Promise<void>;
}

/** Asks for a note on so many occurrences. */
export function Annotate({ count, close, write }: AnnotateProps) {
  const text = useSignal(sessionStorage.getItem("belfry.note") ?? "");
  const failure = useSignal<Failure | undefined>(undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await write(text.value);
    } catch (error) {
      failure.value = failureOf(error);
      return;
    }
    sessionStorage.removeItem("belfry.note");
    close();
  };
  return (
    <Dialog title={count === 1 ? "Annotate this occurrence" : `Annotate ${countText(count)} occurrences`} close={close}>
      <form onSubmit={submit}>
        <label for="note">Note</label>
        <textarea
          id="note"
          rows={5}
          required
          maxLength={60_000}
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
            // A reload does not lose what was typed.
            sessionStorage.setItem("belfry.note", currentTarget.value);
          }}
        />
        <Problem failure={failure.value} />
        <div class={ui.buttons}>
          <button type="submit" class={ui.primary}>
            Annotate
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
