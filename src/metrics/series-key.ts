/** Pieces of a key: 64 dimensions, 64 labels, the metric, its metadata, and room for more. */
export const piecesMax = 132;

/**
 * The bytes by which something is looked up, in pieces that count as if they followed each other. One object serves all look-ups: points
 * are many, and none waits between setting it and using it.
 */
export const seriesKey = {
  bytes: new Uint8Array() as Uint8Array,
  pieces: 0,
  starts: new Int32Array(piecesMax),
  ends: new Int32Array(piecesMax),
  hash: 0,
};

const hashSeed = (Math.random() * 2 ** 32) | 0;

/** Four bytes at a time: to hash is a good part of what a known point costs. */
export function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = hashSeed;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    const four =
      (bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24);
    hash = Math.imul(hash ^ four, 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  for (; at < to; at += 1) hash = Math.imul(hash ^ (bytes[at] as number), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return hash ^ (hash >>> 13);
}

/** Makes these bytes the key. */
export function setKey(bytes: Uint8Array, from = 0, to = bytes.length, hash = hashOf(bytes, from, to)): void {
  seriesKey.bytes = bytes;
  seriesKey.pieces = 1;
  seriesKey.starts[0] = from;
  seriesKey.ends[0] = to;
  seriesKey.hash = hash;
}

/** A key that is kept until what it names is known. */
export interface KeptKey {
  /** Whose key it is: `ownerOf`. */
  readonly owner: number;
  readonly bytes: Uint8Array;
  readonly hash: number;
  /** What else must be the same as it was (0: nothing). */
  readonly version: number;
  /** The memory that a point of it takes as a message. */
  readonly memoryBytes: number;
}

/** A copy of the key. */
export function keptKey(owner: number, version = 0, memoryBytes = 0): KeptKey {
  let length = 0;
  for (let i = 0; i < seriesKey.pieces; i++) length += (seriesKey.ends[i] as number) - (seriesKey.starts[i] as number);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (let i = 0; i < seriesKey.pieces; i++) {
    const piece = seriesKey.bytes.subarray(seriesKey.starts[i], seriesKey.ends[i]);
    bytes.set(piece, at);
    at += piece.length;
  }
  return { owner, bytes, hash: seriesKey.hash, version, memoryBytes };
}

/** What keys are of; those of different kinds may have the same bytes. */
export const kinds = {
  /** A point of PutMetrics in binary, without time and value. */
  form: 0,
  names: 1,
  /** Labels of remote write, 1.0 and 2.0, and what the latter names them with. */
  labels: 2,
  references: 3,
  symbol: 4,
  /** Of OTLP; each but the first belongs to one of the kind before. */
  resource: 5,
  scope: 6,
  metric: 7,
  shape: 8,
  point: 9,
} as const;

/** What a key belongs to. @param id a number of `idOf` @param rank below 4,096 */
export const ownerOf = (kind: number, id = 0, rank = 0): number => (id * 4096 + rank) * 16 + kind;
