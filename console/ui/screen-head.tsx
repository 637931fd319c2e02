import type { ComponentChildren } from "preact";
import ui from "./ui.module.css";

interface ScreenHeadProps {
  readonly title: string;
  /** The way back, above the title: the list that the thing is of, with its address, and what else there is to say. */
  readonly above?: readonly [label: string, href: string, more?: string];
  /** Beside the title, read out as it changes. */
  readonly count?: ComponentChildren;
  readonly tools?: ComponentChildren;
}

/** The head of a screen. */
export function ScreenHead({ title, above, count, tools }: ScreenHeadProps) {
  return (
    <div class={ui.screenHead}>
      <div>
        {above && (
          <p class={ui.hint}>
            <a href={above[1]}>{above[0]}</a> {above[2]}
          </p>
        )}
        <h1>{title}</h1>
      </div>
      {count !== undefined && (
        <p class={ui.count} role="status">
          {count}
        </p>
      )}
      {tools && (
        <div class={ui.tools} data-filters>
          {tools}
        </div>
      )}
    </div>
  );
}
