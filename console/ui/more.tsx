import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import ui from "./ui.module.css";

interface MoreProps {
  readonly label: string;
  /** Closes it after a press of a tool, too: for tools that each do something once. */
  readonly closes?: boolean;
  readonly children: ComponentChildren;
}

/** Hides rarely used tools behind a button. Closes on Escape or a press outside. */
export function More({ label, closes = false, children }: MoreProps) {
  const element = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const press = ({ target }: PointerEvent) => {
      if (element.current && !element.current.contains(target as Node)) element.current.open = false;
    };
    document.addEventListener("pointerdown", press);
    return () => document.removeEventListener("pointerdown", press);
  }, []);
  const close = (details: HTMLDetailsElement) => {
    details.open = false;
    details.querySelector("summary")?.focus();
  };
  return (
    <details
      ref={element}
      class={ui.more}
      onKeyDown={(event) => {
        // A dialog that one of the tools has opened closes first.
        if (event.key !== "Escape" || (event.target as Element).closest("dialog")) return;
        close(event.currentTarget);
      }}
    >
      <summary aria-label={label}>⋯</summary>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it hears the presses of the buttons in it */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a button that is pressed by keyboard clicks, too */}
      <div
        class={ui.moreBody}
        onClick={({ target }) => {
          // The focus is on the page then, and a dialog that the tool opens gives it back there.
          if (closes && element.current && (target as Element).closest("button")) close(element.current);
        }}
      >
        {children}
      </div>
    </details>
  );
}
