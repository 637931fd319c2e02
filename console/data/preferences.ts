import { effect, type Signal, signal } from "@preact/signals";
import { store, stored } from "./storage.ts";

/** A choice of a person in this browser, for all its tabs, kept across visits; never anything secret. It is read when it is first looked at. */
export function preference<T extends string>(name: string, first: T): { value: T } {
  const read = () => (stored(name) ?? first) as T;
  const begin = () => {
    const begun = signal(read());
    // Another tab has stored something.
    addEventListener("storage", () => {
      begun.value = read();
    });
    return begun;
  };
  let held: Signal<T> | undefined;
  const signalOf = () => {
    held ??= begin();
    return held;
  };
  return {
    get value() {
      return signalOf().value;
    },
    set value(chosen) {
      store(name, chosen);
      signalOf().value = chosen;
    },
  };
}

export const theme = preference<"system" | "light" | "dark">("theme", "system");

/** Follows the theme that is chosen. Called once, at the start. */
export function startTheme(): void {
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}

export const zone = preference<"local" | "UTC">("zone", "local");
