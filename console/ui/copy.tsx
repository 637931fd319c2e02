import { useSignal } from "@preact/signals";
import ui from "./ui.module.css";

interface CopyProps {
  readonly text: string;
  /** Name of the copied text, where there is more than one such button. */
  readonly what?: string;
  /** Called when the browser has no clipboard for the page, as without TLS. */
  refused?(): void;
}

/** A button that copies a text, and says whether it did. */
export function CopyButton({ text, what, refused }: CopyProps) {
  const said = useSignal("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = "Copied.";
    } catch {
      refused?.();
      said.value = "The browser does not allow it: select the text and copy it.";
    }
  };
  return (
    <span class={ui.copy}>
      <span class={ui.hint} role="status">
        {said.value}
      </span>
      <button type="button" aria-label={what && `Copy ${what}`} onClick={() => void copy()}>
        Copy
      </button>
    </span>
  );
}
