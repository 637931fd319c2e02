import { signal } from "@preact/signals";

/** Whether a person may see the page. */
export const inSight = signal(true);

/** Follows the browser's tabs. Called once, at the start. */
export function startInSight(): void {
  const follow = () => {
    inSight.value = document.visibilityState === "visible";
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
