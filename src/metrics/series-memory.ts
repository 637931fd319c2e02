import { crc32 } from "node:zlib";
import { fromBinary } from "@bufbuild/protobuf";
import { MetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { namesIn, namesText, presentLabels } from "./labels.ts";
import { agrees, type Notes, noNotes } from "./notes.ts";
import { metricIn } from "./point-scanner.ts";
import type { NumberedSeries, StoredSeries } from "./series.ts";
import { type KeptKey, kinds, seriesKey, setKey } from "./series-key.ts";

/**
 * The series that this process has seen lately, of all tenants, by the bytes or names that points name them with: what is sent in
 * the same way as before holds to all rules, and its series has the number that stands here.
 */
export interface SeriesMemory {
  /** What is known of a tenant; it goes on to learn while a request is read. */
  of(tenantId: string): TenantSeries;
  /** How many keys of series are known. */
  size(): number;
  /** About how many bytes are kept. */
  bytes(): number;
}

/** The series of one tenant. */
export interface TenantSeries {
  /**
   * Sets `found` to what `seriesKey` names; false: it is not known, was confirmed too long ago, or says of its series what is not stored.
   * @param version of what is said of series beside their points; where it has changed `saidOf` a metric is compared
   */
  find(owner: number, nowMs: number, version?: number, saidOf?: (metric: string) => Readonly<Notes>): boolean;
  /** After the commit of what confirmed it: the key names this series. @param said what it says of the series */
  learn(kept: KeptKey, series: StoredSeries, said: Notes, nowMs: number): void;
  /** The number that `seriesKey` stands for among those of its owner. One that was forgotten gets another. @param check is called before one is given */
  idOf(owner: number, check?: () => void): number;
}

/** An entity, and when its liveness needs to be noted again, ms. */
export interface SeenEntity {
  id: Buffer;
  nextMs: number;
}

/** What `find` has found: an entry of a segment. A segment that is held keeps what it has. */
export const found = { segment: undefined as unknown as Segment, entry: 0 };

/** Keys that were learnt one after the other; they are forgotten together. */
export interface Segment {
  readonly numbers: Float64Array;
  readonly memory: Int32Array;
  readonly entities: SeenEntity[];
  readonly entityOf: Map<string, SeenEntity>;
  readonly hashes: Int32Array;
  readonly owners: Float64Array;
  readonly versions: Int32Array;
  /** Of the notes that it says, and of those that were stored when it was learnt; 0: it says none. */
  readonly said: Int32Array;
  readonly notes: Int32Array;
  /** When the statement was sent that answered it, ms; infinity: it is no series. */
  readonly confirmed: Float64Array;
  /** The entry of the same slot that was learnt before. */
  readonly nexts: Int32Array;
  /** Where the key begins, and where it and the names after it end. */
  readonly starts: Int32Array;
  readonly keyEnds: Int32Array;
  readonly ends: Int32Array;
  /** 1: it was found since it came here. */
  readonly hits: Uint8Array;
  readonly bytes: Buffer;
  count: number;
  used: number;
  /** What it counts as. */
  weight: number;
}

/** How long a number is trusted: a series that is marked as unused is removed an hour later, unless it is looked up by then. */
const trustMs = 600_000;
const entriesBits = 10;
const entriesMax = 2 ** entriesBits;
const entriesMin = 16;
/** Segments until all is learnt anew: entries are numbered by 31 bits. */
const segmentsMax = 2 ** 20;
/** Bytes of keys and names that an entry has on average, of its columns, of an entity, and of the notes of a series. */
const [keyBytes, columnBytes, entityBytes, notesBytes] = [128, 84, 300, 40];
/** Entries of one hash that are kept: more are one sender's doing. */
const chainMax = 8;

/** Keys of all tenants in this many bytes at most: the tenant that has most forgets what it learnt first and has not used since. */
export function seriesMemory(bytesMax = 384 * 2 ** 20): SeriesMemory {
  const tenants = new Map<string, OwnSeries>();
  let bytes = 0;

  function trim() {
    for (let share = 1; bytes > bytesMax; ) {
      const before = bytes;
      let largest: OwnSeries | undefined;
      for (const each of tenants.values()) if (largest === undefined || each.bytes() > largest.bytes()) largest = each;
      if (largest === undefined || largest.bytes() === 0) return;
      largest.forgetOldest(share);
      // Where everything is used less of it is kept, so that there is room soon.
      if (bytes >= before) share /= 2;
    }
  }

  function weigh(more: number) {
    bytes += more;
  }

  return {
    of(tenantId) {
      let own = tenants.get(tenantId);
      if (own === undefined) {
        // Nobody has asked for them for so long that they have to be looked up again anyway.
        for (const [id, each] of tenants) {
          if (each.idleMs() < trustMs) break;
          each.forgetAll();
          tenants.delete(id);
        }
        own = ownSeries(weigh, trim);
      }
      tenants.delete(tenantId);
      tenants.set(tenantId, own);
      own.touch();
      return own;
    },
    size() {
      let size = 0;
      for (const each of tenants.values()) size += each.size();
      return size;
    },
    bytes: () => bytes,
  };
}

type OwnSeries = ReturnType<typeof ownSeries>;

/** 0: nothing is said. */
const hashOfNotes = (said: Readonly<Notes>) =>
  agrees(noNotes, said) ? 0 : crc32(`${said.units}\0${said.description}\0${said.instrument}`) | 1;
/** Owners differ in their higher bits: all bits of the hash depend on these. */
function ownerHash(owner: number): number {
  let hash = Math.imul(owner | 0, 0x9e3779b1) ^ Math.imul((owner / 2 ** 32) | 0, 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

const noEntity: SeenEntity = { id: Buffer.alloc(0), nextMs: Number.POSITIVE_INFINITY };
const noNames = Buffer.alloc(0);

/** @param weigh hears of the bytes that are taken, and given back @param trim is called when there is more */
function ownSeries(weigh: (bytes: number) => void, trim: () => void) {
  const segments: Segment[] = [];
  /** The number of the first of them: entries are counted on and on. */
  let first = 0;
  /** By hash: the newest entry. */
  let heads = new Int32Array(2 * entriesMin).fill(-1);
  let entries = 0;
  let series = 0;
  let lastId = 0;
  let bytes = 0;
  let usedMs = 0;
  /** Of the stored notes of series, by number, where keys say any: what is forgotten is looked up again. */
  const notes = new Map<number, number>();

  function take(more: number) {
    bytes += more;
    weigh(more);
  }

  /** Sets `found` to the entry of `key`. */
  function seek(owner: number): boolean {
    const hash = seriesKey.hash ^ ownerHash(owner);
    const oldest = first * entriesMax;
    for (let at = heads[hash & (heads.length - 1)] as number; at >= oldest; ) {
      const segment = segments[(at >> entriesBits) - first] as Segment;
      const entry = at & (entriesMax - 1);
      if (segment.hashes[entry] === hash && segment.owners[entry] === owner && isKey(segment, entry)) {
        found.segment = segment;
        found.entry = entry;
        return true;
      }
      at = segment.nexts[entry] as number;
    }
    return false;
  }

  /** Whether no more entries of this hash are kept. */
  function isFull(hash: number): boolean {
    let same = 0;
    for (let at = heads[hash & (heads.length - 1)] as number; at >= first * entriesMax; ) {
      const segment = segments[(at >> entriesBits) - first] as Segment;
      if (segment.hashes[at & (entriesMax - 1)] === hash) same += 1;
      at = segment.nexts[at & (entriesMax - 1)] as number;
    }
    return same >= chainMax;
  }

  function chain(at: number, hash: number): number {
    const slot = hash & (heads.length - 1);
    const next = heads[slot] as number;
    heads[slot] = at;
    return next;
  }

  function grow() {
    heads = new Int32Array(2 * heads.length).fill(-1);
    for (const [i, { count, nexts, hashes }] of segments.entries())
      for (let entry = 0; entry < count; entry++)
        nexts[entry] = chain((first + i) * entriesMax + entry, hashes[entry] as number);
  }

  /** Sets `found` to a new entry of `key`; false: it is not kept. */
  function add(owner: number, names: Uint8Array): boolean {
    const hash = seriesKey.hash ^ ownerHash(owner);
    if (isFull(hash)) return false;
    let length = names.length;
    for (let i = 0; i < seriesKey.pieces; i++)
      length += (seriesKey.ends[i] as number) - (seriesKey.starts[i] as number);
    let segment = segments.at(-1);
    if (!segment || segment.count === segment.hashes.length || segment.used + length > segment.bytes.length) {
      if (first + segments.length === segmentsMax) forgetAll();
      const count = segment === undefined ? entriesMin : Math.min(entriesMax, 2 * segment.hashes.length);
      segment = newSegment(count, Math.max(length, count * keyBytes));
      take(segment.weight);
      segments.push(segment);
    }
    if (entries * 2 >= heads.length) grow();
    const entry = segment.count++;
    entries += 1;
    segment.hashes[entry] = hash;
    segment.owners[entry] = owner;
    segment.starts[entry] = segment.used;
    for (let i = 0; i < seriesKey.pieces; i++)
      put(segment, seriesKey.bytes.subarray(seriesKey.starts[i], seriesKey.ends[i]));
    segment.keyEnds[entry] = segment.used;
    put(segment, names);
    segment.ends[entry] = segment.used;
    segment.nexts[entry] = chain((first + segments.length - 1) * entriesMax + entry, hash);
    found.segment = segment;
    found.entry = entry;
    return true;
  }

  /** The entity in a segment: its entries share it. */
  function entityIn(segment: Segment, id: Buffer): SeenEntity {
    const text = id.toString("latin1");
    const known = segment.entityOf.get(text);
    if (known !== undefined) return known;
    // Its own bytes: those of a row keep the whole answer of the database.
    const entity = { id: Buffer.from(id), nextMs: 0 };
    segment.entityOf.set(text, entity);
    segment.weight += entityBytes;
    take(entityBytes);
    return entity;
  }

  function setNotes(number: number, hash: number) {
    if (!notes.has(number)) take(notesBytes);
    notes.set(number, hash);
    if (notes.size <= entries) return;
    for (const oldest of notes.keys()) {
      notes.delete(oldest);
      take(-notesBytes);
      break;
    }
  }

  function drop(): Segment | undefined {
    const segment = segments.shift();
    if (segment === undefined) return undefined;
    first += 1;
    entries -= segment.count;
    for (let entry = 0; entry < segment.count; entry++) if (segment.confirmed[entry] !== Infinity) series -= 1;
    take(-segment.weight);
    return segment;
  }

  function forgetAll() {
    while (drop() !== undefined);
    first = 0;
    heads.fill(-1);
    take(-notes.size * notesBytes);
    notes.clear();
  }

  return {
    find(owner: number, nowMs: number, version = 0, saidOf?: (metric: string) => Readonly<Notes>): boolean {
      if (!seek(owner)) return false;
      const { segment, entry } = found;
      if (nowMs - (segment.confirmed[entry] as number) >= trustMs) return false;
      if (segment.versions[entry] !== version) {
        if (!saidOf || segment.said[entry] !== hashOfNotes(saidOf(metricOf(segment, entry)))) return false;
        segment.versions[entry] = version;
      }
      if (segment.said[entry] !== 0 && notes.get(segment.numbers[entry] as number) !== segment.notes[entry])
        return false;
      segment.hits[entry] = 1;
      return true;
    },
    learn(
      { owner, bytes: own, hash, version, memoryBytes }: KeptKey,
      stored: StoredSeries,
      said: Notes,
      nowMs: number,
    ) {
      const { number, entityId, metric, labels } = stored;
      setKey(own, 0, own.length, hash);
      if (!seek(owner)) {
        if (!add(owner, owner === kinds.form ? noNames : Buffer.from(namesText(metric, labels)))) return;
        series += 1;
      }
      const { segment, entry } = found;
      segment.entities[entry] = entityIn(segment, entityId);
      segment.numbers[entry] = number;
      segment.memory[entry] = memoryBytes;
      segment.versions[entry] = version;
      segment.confirmed[entry] = nowMs;
      segment.said[entry] = hashOfNotes(said);
      segment.notes[entry] = hashOfNotes(stored);
      if (segment.said[entry] !== 0 || notes.has(number)) setNotes(number, segment.notes[entry] as number);
      trim();
    },
    idOf(owner: number, check?: () => void): number {
      if (seek(owner)) {
        found.segment.hits[found.entry] = 1;
        return found.segment.numbers[found.entry] as number;
      }
      check?.();
      lastId += 1;
      const id = lastId;
      if (!add(owner, noNames)) return id;
      const { segment, entry } = found;
      segment.entities[entry] = noEntity;
      segment.numbers[entry] = id;
      segment.confirmed[entry] = Infinity;
      trim();
      return id;
    },
    /** Forgets the oldest segment, but for a share of it: what was used since it was learnt. */
    forgetOldest(share: number) {
      const old = drop();
      if (old === undefined || segments.length === 0) return forgetAll();
      let left = old.count * share;
      for (let entry = 0; entry < old.count && left >= 1; entry++) {
        if (old.hits[entry] === 0) continue;
        left -= 1;
        const owner = old.owners[entry] as number;
        const hash = (old.hashes[entry] as number) ^ ownerHash(owner);
        setKey(old.bytes, old.starts[entry], old.keyEnds[entry], hash);
        if (!add(owner, old.bytes.subarray(old.keyEnds[entry], old.ends[entry]))) continue;
        const { segment, entry: at } = found;
        if (old.confirmed[entry] !== Infinity) series += 1;
        const entity = old.entities[entry] as SeenEntity;
        segment.entities[at] = entity === noEntity ? noEntity : entityIn(segment, entity.id);
        for (const column of ["numbers", "memory", "versions", "said", "notes", "confirmed"] as const)
          segment[column][at] = old[column][entry] as number;
      }
    },
    forgetAll,
    size: () => series,
    bytes: () => bytes,
    touch() {
      usedMs = performance.now();
    },
    idleMs: () => performance.now() - usedMs,
  };
}

function newSegment(entries: number, keys: number): Segment {
  const integers = () => new Int32Array(entries);
  const numbers = () => new Float64Array(entries);
  return {
    numbers: numbers(),
    memory: integers(),
    entities: [],
    entityOf: new Map(),
    hashes: integers(),
    owners: numbers(),
    versions: integers(),
    said: integers(),
    notes: integers(),
    confirmed: numbers(),
    nexts: integers(),
    starts: integers(),
    keyEnds: integers(),
    ends: integers(),
    hits: new Uint8Array(entries),
    bytes: Buffer.allocUnsafeSlow(keys),
    count: 0,
    used: 0,
    weight: entries * columnBytes + keys,
  };
}

function put(segment: Segment, piece: Uint8Array): void {
  segment.bytes.set(piece, segment.used);
  segment.used += piece.length;
}

/** Whether `key` is the one of an entry. */
function isKey({ bytes, starts, keyEnds }: Segment, entry: number): boolean {
  let at = starts[entry] as number;
  const end = keyEnds[entry] as number;
  for (let i = 0; i < seriesKey.pieces; i++) {
    const to = seriesKey.ends[i] as number;
    let from = seriesKey.starts[i] as number;
    if (to - from > end - at) return false;
    for (; from < to; from += 1, at += 1) if (seriesKey.bytes[from] !== bytes[at]) return false;
  }
  return at === end;
}

const isForm = ({ owners }: Segment, entry: number) => owners[entry] === kinds.form;

/** The metric of an entry. */
export function metricOf(segment: Segment, entry: number): string {
  const { bytes, starts, keyEnds, ends } = segment;
  if (isForm(segment, entry)) return metricIn(bytes.subarray(starts[entry], keyEnds[entry]));
  const names = bytes.subarray(keyEnds[entry], ends[entry]);
  const end = names.indexOf(0);
  return names.toString("utf8", 0, end < 0 ? names.length : end);
}

/** The series of an entry. */
export function seriesOf(segment: Segment, entry: number): NumberedSeries {
  const { bytes, starts, keyEnds, ends, numbers, entities } = segment;
  const own = { number: numbers[entry] as number, entityId: (entities[entry] as SeenEntity).id };
  if (!isForm(segment, entry)) return { ...own, ...namesIn(bytes.toString("utf8", keyEnds[entry], ends[entry])) };
  const { metric, labels } = fromBinary(MetricSchema, bytes.subarray(starts[entry], keyEnds[entry]));
  return { ...own, metric, labels: presentLabels(labels) };
}
