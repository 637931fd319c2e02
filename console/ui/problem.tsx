import { type Failure, serverAway } from "../data/calls.ts";
import ui from "./ui.module.css";

/** Shows a failure in its place, with a button to try again. The frame alone reports that the server is away. */
export function Problem({ failure, again }: { failure: Failure | undefined; again?: () => void }) {
  if (failure === undefined || (failure.away && serverAway.value)) return null;
  return (
    <div class={ui.problem} role="alert">
      <p>{failure.message}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows the hint of a search in a quiet line below it; an empty one shows nothing. */
export function Doubt({ hint }: { hint: string | undefined }) {
  return (
    <p class={`${ui.hint} ${ui.waiting}`} role="status">
      {hint && `Note: ${hint}`}
    </p>
  );
}

/** Fills the place of an empty list: describes its rows, and how they get there. */
export function Empty({ title, children }: { title: string; children?: preact.ComponentChildren }) {
  return (
    <div class={ui.empty}>
      <p class={ui.emptyTitle}>{title}</p>
      {children}
    </div>
  );
}
