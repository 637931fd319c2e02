import { signal } from "@preact/signals";

/** The page is too narrow for columns, as on a phone or at 400 %. */
export const narrow = signal(false);

/** The page is wide enough for a list and its filters side by side. */
export const wide = signal(false);

/** The pointer is a finger: what it presses is 44 pixels high. */
export const coarse = signal(false);

/** Follows the page's width and its pointer. Called once, at the start. */
export function startNarrow(): void {
  for (const [size, range] of [
    [narrow, "(max-width: 760px)"],
    [wide, "(min-width: 1440px)"],
    [coarse, "(pointer: coarse)"],
  ] as const) {
    const query = matchMedia(range);
    size.value = query.matches;
    query.addEventListener("change", ({ matches }) => {
      size.value = matches;
    });
  }
}
