/** What was used lately, by key: bounded by the characters of its keys and what each entry weighs more. */
export interface RecentMap<T> {
  get(key: string): T | undefined;
  /** @param characters what this entry weighs besides its key, where that is another number than usual */
  set(key: string, value: T, characters?: number): void;
}

/**
 * When it has taken half of `charactersMax` it starts over, and what is found in the half before moves over, so that what is used
 * least lately is forgotten.
 * @param entryCharacters what an entry weighs besides its key
 */
export function recentMap<T>(charactersMax: number, entryCharacters = 200): RecentMap<T> {
  let young = new Map<string, { value: T; weight: number }>();
  let old = new Map<string, { value: T; weight: number }>();
  let characters = 0;
  function put(key: string, entry: { value: T; weight: number }) {
    const before = young.get(key);
    characters += entry.weight - (before === undefined ? -key.length : before.weight);
    young.set(key, entry);
    if (characters * 2 < charactersMax) return;
    old = young;
    young = new Map();
    characters = 0;
  }
  return {
    get(key) {
      const found = young.get(key);
      if (found !== undefined) return found.value;
      const older = old.get(key);
      if (older !== undefined) put(key, older);
      return older?.value;
    },
    set: (key, value, weight = entryCharacters) => put(key, { value, weight }),
  };
}
