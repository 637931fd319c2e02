import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import ui from "./ui.module.css";

/** Hides rarely used tools behind a button. Escape and a press beside them hide them again. */
export function More({ label, children }: { label: string; children: ComponentChildren }) {
  const element = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const press = ({ target }: PointerEvent) => {
      if (element.current && !element.current.contains(target as Node)) element.current.open = false;
    };
    document.addEventListener("pointerdown", press);
    return () => document.removeEventListener("pointerdown", press);
  }, []);
  return (
    <details
      ref={element}
      class={ui.more}
      onKeyDown={(event) => {
        // A dialog that one of the tools has opened closes first.
        if (event.key !== "Escape" || (event.target as Element).closest("dialog")) return;
        event.currentTarget.open = false;
        event.currentTarget.querySelector("summary")?.focus();
      }}
    >
      <summary aria-label={label}>⋯</summary>
      <div class={ui.moreBody}>{children}</div>
    </details>
  );
}
