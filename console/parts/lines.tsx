import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";

/** Copies a text. Where the browser has no clipboard, as on a page without TLS, it says what to do instead. */
export function CopyButton({ text, what, select }: { text: string; what: string; select?: () => void }) {
  const outcome = useSignal<"copied" | "selected" | undefined>(undefined);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      outcome.value = "copied";
    } catch {
      select?.();
      outcome.value = "selected";
    }
    setTimeout(() => {
      outcome.value = undefined;
    }, 3000);
  };
  return (
    <>
      <button type="button" aria-label={`Copy ${what}`} onClick={() => void copy()}>
        {outcome.value === "copied" ? "Copied" : "Copy"}
      </button>
      <span class={outcome.value === "selected" ? "quiet" : "unseen"} role="status">
        {outcome.value === "copied" && "Copied"}
        {outcome.value === "selected" && "Select the text and copy it by Ctrl-C or ⌘C."}
      </span>
    </>
  );
}

/** Lines to paste elsewhere, with a button that copies them. */
export function Lines({ title, text, where }: { title: string; text: string; where: string }) {
  const id = useId();
  const element = useRef<HTMLPreElement>(null);
  const select = () => {
    if (element.current) getSelection()?.selectAllChildren(element.current);
  };
  return (
    <figure class="lines-to-paste" aria-labelledby={id}>
      <figcaption>
        <span>
          <strong id={id}>{title}</strong> <span class="quiet">{where}</span>
        </span>
        <CopyButton text={text} what={title} select={select} />
      </figcaption>
      <pre ref={element}>{text}</pre>
    </figure>
  );
}
