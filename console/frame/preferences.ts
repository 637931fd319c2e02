import { effect, signal } from "@preact/signals";

/** What a person chose in this browser, kept across visits; never anything secret. */
export function preference<T extends string>(name: string, first: T) {
  const key = `belfry.${name}`;
  const held = signal((read(key) ?? first) as T);
  effect(() => {
    try {
      localStorage.setItem(key, held.value);
    } catch {
      // A browser without storage forgets it with the page.
    }
  });
  return held;
}

function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export const theme = preference<"system" | "light" | "dark">("theme", "system");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export const zone = preference<"local" | "UTC">("zone", "local");
