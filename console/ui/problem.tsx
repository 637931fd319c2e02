import { type Failure, serverAway } from "../data/calls.ts";
import ui from "./ui.module.css";

/** What went wrong, where it went wrong, and the way to try again. That the server is away the frame says, once. */
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

/** What stands where a list is empty: what would be there, and how it gets there. */
export function Empty({ title, children }: { title: string; children?: preact.ComponentChildren }) {
  return (
    <div class={ui.empty}>
      <p class={ui.emptyTitle}>{title}</p>
      {children}
    </div>
  );
}
