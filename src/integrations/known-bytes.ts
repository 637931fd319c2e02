/** A hash of bytes; theirs alone are no secret, and of one hash only a few are kept. */
export function hashOf(view: DataView, from: number, to: number): number {
  let hash = to - from;
  let at = from;
  for (; at + 4 <= to; at += 4) hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1) ^ (hash >>> 15);
  for (; at < to; at += 1) hash = Math.imul(hash ^ view.getUint8(at), 0x9e3779b1);
  return hash ^ (hash >>> 13);
}

/** What was used lately, by bytes and by whose they are: what it is looked up by is never made into a text. */
export interface KnownBytes<T> {
  find(owner: string | number, hash: number, bytes: Uint8Array, from: number, to: number): T | undefined;
  /** @param own a copy: it is kept. @param weight what it takes besides, in bytes */
  set(owner: string | number, hash: number, own: Uint8Array, value: T, weight?: number): void;
}

interface Entry<T> {
  readonly owner: string | number;
  readonly own: Uint8Array;
  readonly value: T;
  readonly weight: number;
  readonly next: Entry<T> | undefined;
}

const entryBytes = 300;
/** Entries whose hash is the same: more are not kept. */
const chainMax = 8;

function equal(own: Uint8Array, bytes: Uint8Array, from: number): boolean {
  for (let i = 0; i < own.length; i++) if (own[i] !== bytes[from + i]) return false;
  return true;
}

/** Begins without any. When it has taken half of its bytes it starts over, and what is found in the half before moves over. */
export function knownBytes<T>(bytesMax: number): KnownBytes<T> {
  let young = new Map<number, Entry<T>>();
  let old = new Map<number, Entry<T>>();
  let used = 0;

  function set(owner: string | number, hash: number, own: Uint8Array, value: T, weight = entryBytes) {
    const next = young.get(hash);
    let chain = 0;
    for (let each = next; each !== undefined; each = each.next) chain += 1;
    if (chain === chainMax) return;
    young.set(hash, { owner, own, value, weight, next });
    used += own.length + weight;
    if (used * 2 < bytesMax) return;
    old = young;
    young = new Map();
    used = 0;
  }

  return {
    find(owner, hash, bytes, from, to) {
      for (const entries of [young, old]) {
        for (let each = entries.get(hash); each !== undefined; each = each.next) {
          if (each.own.length !== to - from || each.owner !== owner || !equal(each.own, bytes, from)) continue;
          if (entries === old) set(owner, hash, each.own, each.value, each.weight);
          return each.value;
        }
      }
      return undefined;
    },
    set,
  };
}

/** A copy of its own: of a Buffer `slice` would be none. */
export const copyOf = (bytes: Uint8Array, from: number, to: number): Uint8Array =>
  Uint8Array.prototype.slice.call(bytes, from, to);
