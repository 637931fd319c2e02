import { signal } from "@preact/signals";

/** Whether the page is too narrow for columns, as on a phone or at 400 %. */
const query = matchMedia("(max-width: 760px)");
export const narrow = signal(query.matches);
query.addEventListener("change", ({ matches }) => {
  narrow.value = matches;
});
