import type { ComponentChildren } from "preact";
import ui from "./ui.module.css";

/** Hides rarely used tools behind a button. */
export function More({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <details class={ui.more}>
      <summary aria-label={label}>⋯</summary>
      <div class={ui.moreBody}>{children}</div>
    </details>
  );
}
