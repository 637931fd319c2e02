import { signal } from "@preact/signals";

/** What the screen shows, as the title of the page names it; empty where it shows nothing in particular. */
export const subject = signal("");
