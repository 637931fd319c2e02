import { signal } from "@preact/signals";

/** True while the page is visible by the browser's account: its tab is in front, its window not minimised. */
export const inSight = signal(true);

/** Follows the browser's tabs. Called once, at the start. */
export function startInSight(): void {
  const follow = () => {
    inSight.value = document.visibilityState === "visible";
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
