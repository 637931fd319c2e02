/** What `scanSeries` has found: one object for all series, since they are many. */
export const scanned = { labelsEnd: 0, hash: 0, times: [] as number[], values: [] as number[] };

const tags = { label: 0x0a, sample: 0x12, value: 0x09, time: 0x10 };

/**
 * Scans a series of remote write 1.0 that has the usual form, labels and then samples, whose lengths take a byte each. False: it is
 * read in another way. What the labels hold is not looked at: bytes that are equal to good ones are good.
 */
export function scanSeries(bytes: Uint8Array, view: DataView, from: number, to: number): boolean {
  let at = from;
  while (bytes[at] === tags.label && at < to) {
    const length = bytes[at + 1] as number;
    if (!(length < 128)) return false;
    at += 2 + length;
  }
  if (at === from || at > to) return false;
  scanned.labelsEnd = at;
  scanned.hash = hashOf(view, from, at);
  scanned.times.length = 0;
  scanned.values.length = 0;
  for (let end = at; at < to; at = end) {
    if (bytes[at] !== tags.sample) return false;
    end = at + 2 + (bytes[at + 1] as number);
    if (!(end - at < 130 && end <= to) || !scanSample(bytes, view, at + 2, end)) return false;
  }
  return true;
}

function scanSample(bytes: Uint8Array, view: DataView, from: number, end: number): boolean {
  let at = from;
  let value = 0;
  if (bytes[at] === tags.value) {
    if (at + 9 > end) return false;
    value = view.getFloat64(at + 1, true);
    at += 9;
  }
  // Six bytes take us to the year 2109; more may be negative.
  if (bytes[at] !== tags.time || at + 1 >= end || end - at > 7) return false;
  let timeMs = 0;
  for (let i = end - 1; i > at; i--) {
    const byte = bytes[i] as number;
    if (byte < 128 !== (i === end - 1)) return false;
    timeMs = timeMs * 128 + (byte & 127);
  }
  scanned.times.push(timeMs);
  scanned.values.push(value);
  return true;
}

function hashOf(view: DataView, from: number, to: number): number {
  let hash = to - from;
  let at = from;
  for (; at + 4 <= to; at += 4) hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1) ^ (hash >>> 15);
  for (; at < to; at += 1) hash = Math.imul(hash ^ view.getUint8(at), 0x9e3779b1);
  return hash ^ (hash >>> 13);
}

/** Series by the bytes of their labels, those that were used lately: what they are looked up by is never made into a text. */
export interface SeriesByBytes<T> {
  /** Of what was scanned last, which began there. */
  find(tenantId: string, bytes: Uint8Array, from: number): T | undefined;
  set(tenantId: string, labels: Uint8Array, hash: number, value: T): void;
}

interface Entry<T> {
  readonly tenantId: string;
  readonly labels: Uint8Array;
  readonly value: T;
  readonly next: Entry<T> | undefined;
}

const entryBytes = 300;
/** Series whose hash is the same: more are looked up in another way. */
const chainMax = 8;

function equal(labels: Uint8Array, bytes: Uint8Array, from: number): boolean {
  for (let i = 0; i < labels.length; i++) if (labels[i] !== bytes[from + i]) return false;
  return true;
}

/** Begins without any. When it has taken half of its bytes it starts over, and what is found in the half before moves over. */
export function seriesByBytes<T>(bytesMax: number): SeriesByBytes<T> {
  let young = new Map<number, Entry<T>>();
  let old = new Map<number, Entry<T>>();
  let used = 0;

  function among(entries: ReadonlyMap<number, Entry<T>>, tenantId: string, bytes: Uint8Array, from: number) {
    const length = scanned.labelsEnd - from;
    let entry = entries.get(scanned.hash);
    while (entry !== undefined) {
      if (entry.labels.length === length && entry.tenantId === tenantId && equal(entry.labels, bytes, from))
        return entry;
      entry = entry.next;
    }
    return undefined;
  }

  function set(tenantId: string, labels: Uint8Array, hash: number, value: T) {
    const next = young.get(hash);
    let chain = 0;
    for (let each = next; each !== undefined; each = each.next) chain += 1;
    if (chain === chainMax) return;
    young.set(hash, { tenantId, labels, value, next });
    used += labels.length + entryBytes;
    if (used * 2 < bytesMax) return;
    old = young;
    young = new Map();
    used = 0;
  }

  return {
    find(tenantId, bytes, from) {
      const found = among(young, tenantId, bytes, from);
      if (found !== undefined) return found.value;
      const older = among(old, tenantId, bytes, from);
      if (older !== undefined) set(tenantId, older.labels, scanned.hash, older.value);
      return older?.value;
    },
    set,
  };
}
