import { useId, useRef } from "preact/hooks";
import { CopyButton } from "./copy.tsx";
import ui from "./ui.module.css";

/** Lines to paste elsewhere, with a button that copies them. */
export function Lines({ title, text, where }: { title: string; text: string; where: string }) {
  const id = useId();
  const element = useRef<HTMLPreElement>(null);
  const select = () => {
    if (element.current) getSelection()?.selectAllChildren(element.current);
  };
  return (
    <figure class={ui.linesToPaste} aria-labelledby={id}>
      <figcaption>
        <span>
          <strong id={id}>{title}</strong> <span class={ui.quiet}>{where}</span>
        </span>
        <CopyButton text={text} what={title} refused={select} />
      </figcaption>
      <pre ref={element}>{text}</pre>
    </figure>
  );
}
