/** Texts of this browser, kept across visits by origin: other ports of the same host neither read nor write them. */
const unstored = new Map<string, string>();

const keyOf = (name: string) => `belfry.${name}`;

/** Reads a stored text; null where there is none. */
export function stored(name: string): string | null {
  try {
    return localStorage.getItem(keyOf(name)) ?? unstored.get(name) ?? null;
  } catch {
    return unstored.get(name) ?? null;
  }
}

/** Stores a text, and removes it with null. A browser without storage forgets it with the page. */
export function store(name: string, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), text);
    unstored.delete(name);
  } catch {
    if (text === null) unstored.delete(name);
    else unstored.set(name, text);
  }
}
