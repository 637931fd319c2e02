import { computed } from "@preact/signals";
import { preference } from "../data/preferences.ts";

/** Filters that a person named in this browser: each is an address, which can be sent to others as it is. */
export const savedText = preference<string>("saved-filters", "[]");
export const saved = computed((): { name: string; query: string }[] => {
  try {
    return JSON.parse(savedText.value);
  } catch {
    return [];
  }
});
