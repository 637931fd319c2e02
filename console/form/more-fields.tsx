import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import formLook from "./form.module.css";

interface MoreFieldsProps {
  /** They say something: they are open when the form opens. */
  readonly said: boolean;
  readonly children: ComponentChildren;
}

/** Folds the fields of a form that most leave as they are. An error at one of them opens them. */
export function MoreFields({ said, children }: MoreFieldsProps) {
  const open = useMemo(() => said, []);
  return (
    <details
      class={formLook.more}
      open={open}
      // A browser reports what it refuses only where that is in sight.
      onInvalidCapture={({ currentTarget }) => {
        currentTarget.open = true;
      }}
    >
      <summary>More</summary>
      <div class={formLook.moreBody}>{children}</div>
    </details>
  );
}
