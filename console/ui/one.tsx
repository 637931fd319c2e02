import type { ComponentChildren } from "preact";
import { address, linkTo } from "../data/address.ts";
import type { Failure } from "../data/calls.ts";
import { Problem } from "./problem.tsx";
import { ScreenHead } from "./screen-head.tsx";
import ui from "./ui.module.css";

interface OneProps {
  readonly title: string;
  /** The list that it is of. */
  readonly of: string;
  readonly failure?: Failure | undefined;
  again?: () => void;
  /** Actions on the thing as a whole. */
  readonly tools?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** One thing of a list: its heading, with the way back to the list. */
export function One({ title, of, failure, again, tools, children }: OneProps) {
  return (
    <>
      <ScreenHead
        title={title}
        tools={
          <>
            <a class={ui.button} href={linkTo(address.value.path.slice(0, 2))}>
              All {of}
            </a>
            {tools}
          </>
        }
      />
      <Problem failure={failure} {...(again && { again })} />
      <div class={ui.pad}>{children}</div>
    </>
  );
}
