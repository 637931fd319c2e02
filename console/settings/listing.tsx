import type { ComponentChildren } from "preact";
import { address, linkTo, setParameters } from "../data/address.ts";
import type { Failure } from "../data/calls.ts";
import { Problem } from "../ui/problem.tsx";

interface ListingProps {
  readonly title: string;
  /** Undefined until it is known. */
  readonly total: number | undefined;
  readonly failure: Failure | undefined;
  again(): void;
  /** What the filter by text looks into. Absent: there is none. */
  readonly filter?: string;
  /** What the link to an empty form says. Absent: nothing can be made. */
  readonly make?: string | false;
  /** More beside them. */
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A section's list: its heading with how many there are, its filter, and the link to what is new. */
export function Listing({ title, total, failure, again, filter, make, tools, children }: ListingProps) {
  return (
    <>
      <div class="screen-head">
        <h1>{title}</h1>
        <p class="count" role="status">
          {total === undefined ? (failure ? "" : "Loading…") : `${total.toLocaleString("en")} in all`}
        </p>
        <div class="tools">
          {filter && (
            <input
              type="search"
              aria-label={filter}
              placeholder={filter}
              value={address.value.parameters.get("text") ?? ""}
              onInput={({ currentTarget }) => setParameters({ text: currentTarget.value }, false)}
            />
          )}
          {tools}
          {make && (
            <a class="button" href={linkTo(address.value.path.slice(0, 2), { new: "1" })}>
              {make}
            </a>
          )}
        </div>
      </div>
      <Problem failure={failure} again={again} />
      {children}
    </>
  );
}

/** Whether a row's texts hold what was typed into the filter, whatever the case. */
export function passesFilter(...texts: readonly string[]): boolean {
  const wanted = (address.value.parameters.get("text") ?? "").toLowerCase();
  return wanted === "" || texts.some((text) => text.toLowerCase().includes(wanted));
}

interface OneProps {
  readonly title: string;
  /** The list that it is of. */
  readonly of: string;
  readonly failure?: Failure | undefined;
  again?: () => void;
  /** What can be done with it as a whole. */
  readonly tools?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** One thing of a list: its heading, with the way back to the list. */
export function One({ title, of, failure, again, tools, children }: OneProps) {
  return (
    <>
      <div class="screen-head">
        <h1>{title}</h1>
        <div class="tools">
          <a class="button" href={linkTo(address.value.path.slice(0, 2))}>
            All {of}
          </a>
          {tools}
        </div>
      </div>
      <Problem failure={failure} {...(again && { again })} />
      <div class="pad">{children}</div>
    </>
  );
}
