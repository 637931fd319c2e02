/** What was used lately, by key: bounded by the characters of its keys and what each entry weighs more. */
export interface RecentMap<T> {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
}

/**
 * When it has taken half of `charactersMax` it starts over, and what is found in the half before moves over, so that what is used
 * least lately is forgotten.
 * @param entryCharacters what an entry weighs besides its key
 */
export function recentMap<T>(charactersMax: number, entryCharacters = 200): RecentMap<T> {
  let young = new Map<string, T>();
  let old = new Map<string, T>();
  let characters = 0;
  function set(key: string, value: T) {
    if (!young.has(key)) characters += key.length + entryCharacters;
    young.set(key, value);
    if (characters * 2 < charactersMax) return;
    old = young;
    young = new Map();
    characters = 0;
  }
  return {
    get(key) {
      const found = young.get(key);
      if (found !== undefined) return found;
      const older = old.get(key);
      if (older !== undefined) set(key, older);
      return older;
    },
    set,
  };
}
