import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import ui from "./ui.module.css";

/** A question over the page. Escape and a press beside it close it; the focus goes back to where it was. */
export function Dialog({ title, close, children }: { title: string; close: () => void; children: ComponentChildren }) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: by keyboard Escape does it, as of any dialog
    <dialog
      ref={element}
      aria-labelledby={id}
      onClose={close}
      onClick={({ target, currentTarget }) => {
        if (target === currentTarget) currentTarget.close();
      }}
    >
      <div class={ui.dialogBody}>
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}
