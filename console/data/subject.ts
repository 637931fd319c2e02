import { signal } from "@preact/signals";

/** The name of the thing that the screen shows, for the title of the page; empty where the screen shows a list. */
export const subject = signal("");
