import { useSignal } from "@preact/signals";

/** A button that copies a text, and says whether it did. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const said = useSignal("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = "Copied.";
    } catch {
      said.value = "The browser does not allow it: select the text and copy it.";
    }
  };
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {label}
      </button>
      <span class="hint" role="status">
        {said.value}
      </span>
    </>
  );
}
