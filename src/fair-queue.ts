/** Things that wait, in lines by the keys of whom they are for. Keys take turns; within the same keys it goes by arrival. */
export interface FairQueue<T> {
  /** How many wait. */
  readonly size: number;
  /** Lines up. Every item has as many keys: those of a first key share its turn, and take turns within it. */
  add(keys: readonly unknown[], item: T): void;
  /** Leaves the line. May be repeated. */
  remove(keys: readonly unknown[], item: T): void;
  /** Takes out the next that `may` be served, and puts its keys behind all others. Only the first of each line is looked at. */
  next(may?: (item: T) => boolean): T | undefined;
}

/** Lines by their next key, in the order of their turns; beneath the last key the items. Those that are empty are not kept. */
type Lines<T> = Map<unknown, Lines<T>> | Set<T>;

/** Makes an empty queue. It knows only the keys for which something waits. */
export function fairQueue<T>(): FairQueue<T> {
  const root: Map<unknown, Lines<T>> = new Map();
  let size = 0;

  function removed(lines: Lines<T>, [key, ...keys]: readonly unknown[], item: T): boolean {
    if (lines instanceof Set) return lines.delete(item);
    const beneath = lines.get(key);
    if (beneath === undefined || !removed(beneath, keys, item)) return false;
    if (beneath.size === 0) lines.delete(key);
    return true;
  }

  function taken(lines: Lines<T>, may: (item: T) => boolean): T | undefined {
    if (lines instanceof Set) {
      for (const item of lines) return may(item) && lines.delete(item) ? item : undefined;
      return undefined;
    }
    for (const [key, beneath] of lines) {
      const item = taken(beneath, may);
      if (item === undefined) continue;
      lines.delete(key);
      if (beneath.size > 0) lines.set(key, beneath);
      return item;
    }
    return undefined;
  }

  return {
    get size() {
      return size;
    },
    add(keys, item) {
      let lines = root;
      for (const key of keys.slice(0, -1)) {
        const beneath = (lines.get(key) ?? new Map()) as Map<unknown, Lines<T>>;
        lines.set(key, beneath);
        lines = beneath;
      }
      const line = (lines.get(keys.at(-1)) ?? new Set()) as Set<T>;
      lines.set(keys.at(-1), line.add(item));
      size += 1;
    },
    remove(keys, item) {
      if (removed(root, keys, item)) size -= 1;
    },
    next(may = () => true) {
      const item = taken(root, may);
      if (item !== undefined) size -= 1;
      return item;
    },
  };
}
