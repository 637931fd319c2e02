import type { Failure } from "../data/calls.ts";

/** What went wrong, where it went wrong, and the way to try again. */
export function Problem({ failure, again }: { failure: Failure | undefined; again?: () => void }) {
  if (failure === undefined) return null;
  return (
    <div class="problem" role="alert">
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
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}
