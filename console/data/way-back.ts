import { useLayoutEffect } from "preact/hooks";
import { hereWith } from "./address.ts";

/** The addresses at which lists were seen last, with their filters, by their titles. */
const seen = new Map<string, string>();

/** Notes this address as the one of the list with this title. */
export function useWayBack(title: string): void {
  // After each time that it is drawn: an address that shows another screen is none of the list.
  useLayoutEffect(() => {
    seen.set(title, hereWith({}));
  });
}

/** The link to a list as it was seen last; `href` until then. */
export const wayBack = (title: string, href: string) => seen.get(title) ?? href;

/** Forgets all of them: another session has filters of its own. */
export function forgetWaysBack(): void {
  seen.clear();
}
