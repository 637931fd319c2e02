import { signal } from "@preact/signals";

/** Whether the page is too narrow for columns, as on a phone or at 400 %. */
export const narrow = signal(false);

/** Follows the page's width. Called once, at the start. */
export function startNarrow(): void {
  const query = matchMedia("(max-width: 760px)");
  narrow.value = query.matches;
  query.addEventListener("change", ({ matches }) => {
    narrow.value = matches;
  });
}
