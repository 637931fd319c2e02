import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { subject } from "../data/subject.ts";
import { wayBack } from "../data/way-back.ts";
import ui from "./ui.module.css";

interface ScreenHeadProps {
  readonly title: string;
  /** Title of the page where `title` does not tell pages apart. */
  readonly pageTitle?: string;
  /** The way back, above the title: the title of the list that the thing is of, with its address, and what else there is to say. */
  readonly above?: readonly [label: string, href: string, more?: string];
  /** Beside the title, read out as it changes. */
  readonly count?: ComponentChildren;
  readonly tools?: ComponentChildren;
}

/** The head of a screen. */
export function ScreenHead({ title, pageTitle = title, above, count, tools }: ScreenHeadProps) {
  useLayoutEffect(() => {
    subject.value = pageTitle;
    return () => {
      subject.value = "";
    };
  }, [pageTitle]);
  return (
    <div class={ui.screenHead}>
      <div>
        {above && (
          <p class={ui.hint}>
            <a href={wayBack(above[0], above[1])}>{above[0]}</a> {above[2]}
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
