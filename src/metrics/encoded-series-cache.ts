import { fromBinary } from "@bufbuild/protobuf";
import { MetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { countBinary } from "../wire/count-binary.ts";
import { presentLabels } from "./labels.ts";
import { agrees, type Notes, noNotes, withNotes } from "./notes.ts";
import { chunkEnd, metricIn, scanned, scanPoint } from "./point-scanner.ts";
import type { StoredSeries } from "./series.ts";
import type { KnownSeries } from "./series-memory.ts";

/**
 * The forms in which points of known series come, as bytes: a point that has a form of a confirmed series holds to all rules
 * of its metric, dimensions and metadata, and its series has the number that stands here.
 */
export interface EncodedSeriesCache {
  /** The forms as they are now. They may be added to while a request is read; what stands there stays. */
  table(): EncodedSeriesTable;
  /** The point in these bytes, which is good and came without anything to store of its series, names this series. */
  learn(tenantId: string, point: Uint8Array, series: KnownSeries): void;
  /** What is said of series has changed: points with metadata say something new again. */
  changed(): void;
}

/** Forms that are known. */
export interface EncodedSeriesTable {
  /** The memory that they take, about. */
  bytes(): number;
  /** The place of the form of the point in `scanned`; -1: it is not known, or was confirmed too long ago. */
  find(tenant: number, bytes: Uint8Array, nowMs: number): number;
  /** The number of a tenant here; 0: no form of it is known. */
  tenant(tenantId: string): number;
  /** The number of its series. */
  number(place: number): number;
  /** The memory that its point takes as a message (`src/wire/message-limits.ts`). */
  memoryBytes(place: number): number;
  entity(place: number): SeenEntity;
  /** Its metric, without decoding the rest. */
  metric(place: number): string;
  /** Decodes its bytes. */
  series(place: number): StoredSeries;
}

/** An entity, and when its liveness needs to be noted again, ms. */
export interface SeenEntity {
  id: Buffer;
  nextMs: number;
}

const pageBytes = 2 ** 20;
const unbounded = { itemsMax: Number.POSITIVE_INFINITY, memoryBytesMax: Number.POSITIVE_INFINITY };
/** Bytes of a form beside its own. */
const columnBytes = 60;
/** Forms of one hash that are looked at: more are one sender's doing, and stay unknown. */
const chainMax = 8;
/** How long a number is trusted (`series-memory.ts`). */
const trustMs = 600_000;

/** Forms of all tenants in this many bytes at most: when they are full, all start again. */
export function encodedSeriesCache(bytesMax = 256 * 2 ** 20): EncodedSeriesCache {
  let current = formTable();
  return {
    table: () => current,
    learn(tenantId, point, series) {
      const view = new DataView(point.buffer, point.byteOffset, point.byteLength);
      if (!scanPoint(point, view, 0, point.byteLength) || scanned.chunks < 2) return;
      if (current.bytes() > bytesMax) current = formTable();
      current.add(tenantId, point, series);
    },
    changed: () => current.changed(),
  };
}

function formTable() {
  let size = 1024;
  let count = 0;
  let usedBytes = 0;
  let epoch = 1;
  /** By hash: the place of the newest form after it, plus 1. */
  let heads = new Int32Array(size * 2);
  /** Of each form: the next of its hash, its hash, its tenant, where its bytes begin, how many there are, its chunks … */
  let next = new Int32Array(size);
  let hashes = new Int32Array(size);
  let owners = new Int32Array(size);
  let starts = new Float64Array(size);
  let lengths = new Int32Array(size);
  let chunks = new Uint8Array(size);
  /** … what counts of it for metadata (0: it has none), its memory, its entity, number and time of confirmation. */
  let epochs = new Int32Array(size);
  let memory = new Int32Array(size);
  let entityAt = new Int32Array(size);
  let numbers = new Float64Array(size);
  let confirmed = new Float64Array(size);
  const pages: Buffer[] = [];
  let pageUsed = pageBytes;
  const tenants = new Map<string, number>();
  const entities: SeenEntity[] = [];
  const entityPlaces = new Map<string, number>();
  /** What is said of the series of which something is. */
  const notes = new Map<number, Notes>();

  const slot = (hash: number, tenant: number) => ((hash ^ Math.imul(tenant, 0x9e3779b1)) >>> 0) & (heads.length - 1);

  /** Whether the chunks in `scanned` are those of a form, in any order. */
  function same(place: number, bytes: Uint8Array): boolean {
    if (chunks[place] !== scanned.chunks) return false;
    const start = starts[place] as number;
    const page = pages[Math.floor(start / pageBytes)] as Buffer;
    const from = start % pageBytes;
    const to = from + (lengths[place] as number);
    let at = from;
    for (let i = 0; i < scanned.chunks; i++) {
      const length = (scanned.ends[i] as number) - (scanned.starts[i] as number);
      if (at + length > to || !equal(page, at, bytes, scanned.starts[i] as number, length))
        return sameUnordered(page, from, to, bytes);
      at += length;
    }
    return at === to;
  }

  function find(tenant: number, bytes: Uint8Array, nowMs: number): number {
    const { hash } = scanned;
    for (let place = (heads[slot(hash, tenant)] as number) - 1; place >= 0; place = (next[place] as number) - 1) {
      if (hashes[place] !== hash || owners[place] !== tenant || !same(place, bytes)) continue;
      const trusted = nowMs - (confirmed[place] as number) < trustMs;
      return trusted && (epochs[place] === 0 || epochs[place] === epoch) ? place : -1;
    }
    return -1;
  }

  function grow() {
    const wider = <T extends Int32Array | Float64Array | Uint8Array>(old: T): T => {
      const made = new (old.constructor as new (length: number) => T)(size * 2);
      made.set(old as never);
      return made;
    };
    next = wider(next);
    hashes = wider(hashes);
    owners = wider(owners);
    starts = wider(starts);
    lengths = wider(lengths);
    chunks = wider(chunks);
    epochs = wider(epochs);
    memory = wider(memory);
    entityAt = wider(entityAt);
    numbers = wider(numbers);
    confirmed = wider(confirmed);
    size *= 2;
    heads = new Int32Array(size * 2);
    for (let place = 0; place < count; place++) chain(place);
  }

  function chain(place: number) {
    const at = slot(hashes[place] as number, owners[place] as number);
    next[place] = heads[at] as number;
    heads[at] = place + 1;
  }

  /** Writes the chunks in `scanned` after each other; answers where. */
  function keep(bytes: Uint8Array): { start: number; length: number } {
    let length = 0;
    for (let i = 0; i < scanned.chunks; i++) length += (scanned.ends[i] as number) - (scanned.starts[i] as number);
    if (pageUsed + length > pageBytes) {
      pages.push(Buffer.allocUnsafeSlow(pageBytes));
      pageUsed = 0;
    }
    const page = pages.at(-1) as Buffer;
    const start = (pages.length - 1) * pageBytes + pageUsed;
    for (let i = 0; i < scanned.chunks; i++) {
      const part = bytes.subarray(scanned.starts[i], scanned.ends[i]);
      page.set(part, pageUsed);
      pageUsed += part.byteLength;
    }
    return { start, length };
  }

  function bytesOf(place: number): Buffer {
    const start = starts[place] as number;
    const from = start % pageBytes;
    return (pages[Math.floor(start / pageBytes)] as Buffer).subarray(from, from + (lengths[place] as number));
  }

  function entityPlace(id: Buffer, tenant: number): number {
    const key = `${tenant} ${id.toString("latin1")}`;
    const known = entityPlaces.get(key);
    if (known !== undefined) return known;
    usedBytes += 300;
    // Its own bytes: those of a row keep the whole answer of the database.
    const place = entities.push({ id: Buffer.from(id), nextMs: 0 }) - 1;
    entityPlaces.set(key, place);
    return place;
  }

  function tenantOf(tenantId: string): number {
    const known = tenants.get(tenantId);
    if (known !== undefined) return known;
    tenants.set(tenantId, tenants.size + 1);
    return tenants.size;
  }

  /** A form that is known already, to be written again; -1: none; -2: there are too many of its hash. */
  function known(tenant: number, bytes: Uint8Array): number {
    let left = chainMax;
    for (let at = heads[slot(scanned.hash, tenant)] as number; at > 0; at = next[at - 1] as number) {
      if (hashes[at - 1] !== scanned.hash || owners[at - 1] !== tenant) continue;
      if (same(at - 1, bytes)) return at - 1;
      left -= 1;
      if (left === 0) return -2;
    }
    return -1;
  }

  function add(tenantId: string, bytes: Uint8Array, series: KnownSeries) {
    const tenant = tenantOf(tenantId);
    let place = known(tenant, bytes);
    if (place === -2) return;
    if (place === -1) {
      // Only what one message says once: one metric, at most one of metadata, each dimension and label once.
      if (!plain(bytes, series)) return;
      if (count === size) grow();
      place = count;
      count += 1;
      const { start, length } = keep(bytes);
      hashes[place] = scanned.hash;
      owners[place] = tenant;
      starts[place] = start;
      lengths[place] = length;
      chunks[place] = scanned.chunks;
      memory[place] = countBinary(MetricSchema, bytes, unbounded);
      chain(place);
      usedBytes += columnBytes + length;
    }
    epochs[place] = scanned.metadata ? epoch : 0;
    entityAt[place] = entityPlace(series.entityId, tenant);
    numbers[place] = series.number;
    confirmed[place] = series.confirmedMs;
    if (agrees(noNotes, series)) notes.delete(place);
    else notes.set(place, withNotes(noNotes, series));
  }

  return {
    find,
    add,
    changed() {
      epoch += 1;
    },
    bytes: () => usedBytes,
    tenant: (tenantId: string) => tenants.get(tenantId) ?? 0,
    number: (place: number) => numbers[place] as number,
    memoryBytes: (place: number) => memory[place] as number,
    entity: (place: number) => entities[entityAt[place] as number] as SeenEntity,
    metric: (place: number) => metricIn(bytesOf(place)),
    series(place: number): StoredSeries {
      const { metric, labels } = fromBinary(MetricSchema, bytesOf(place));
      const { id: entityId } = entities[entityAt[place] as number] as SeenEntity;
      const own = { number: numbers[place] as number, entityId, metric, labels: presentLabels(labels) };
      return { ...own, ...(notes.get(place) ?? noNotes) };
    },
  };
}

function plain(bytes: Uint8Array, series: KnownSeries): boolean {
  const { dimensions, labels, metric } = fromBinary(MetricSchema, bytes);
  const extra = scanned.metadata ? 2 : 1;
  const members = Object.keys(dimensions).length + Object.keys(labels).length;
  return metric === series.metric && members === scanned.chunks - extra;
}

function equal(a: Uint8Array, atA: number, b: Uint8Array, atB: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (a[atA + i] !== b[atB + i]) return false;
  return true;
}

/** Where each chunk of a form begins, and whether it was found already. */
const places = new Int32Array(scanned.starts.length);
const taken = new Uint8Array(scanned.starts.length);

/** Whether the chunks in `scanned` are those that stand from `from` to `to`, each once. */
function sameUnordered(page: Uint8Array, from: number, to: number, bytes: Uint8Array): boolean {
  let count = 0;
  for (let at = from; at < to; ) {
    places[count] = at;
    taken[count] = 0;
    count += 1;
    at = chunkEnd(page, at);
  }
  for (let i = 0; i < scanned.chunks; i++) {
    const start = scanned.starts[i] as number;
    const length = (scanned.ends[i] as number) - start;
    let found = false;
    for (let j = 0; j < count && !found; j++) {
      const at = places[j] as number;
      if (taken[j] === 1 || at + length > to || !equal(page, at, bytes, start, length)) continue;
      taken[j] = 1;
      found = true;
    }
    if (!found) return false;
  }
  return true;
}
