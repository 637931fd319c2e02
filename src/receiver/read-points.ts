import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { MetricSchema, TaggedMetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import { type PutMetricsRequest, PutMetricsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { scannedPoint, scanPoint } from "../metrics/point-scanner.ts";
import { type KeptKey, keptKey, kinds, seriesKey } from "../metrics/series-key.ts";
import { found, type Segment, type SeriesMemory, type TenantSeries } from "../metrics/series-memory.ts";
import type { MessageReader, OwnReader } from "../protocols/message-reader.ts";
import type { ReadingCall } from "../transcoding/json/parse.ts";
import { countBinary } from "../wire/count-binary.ts";
import { messageBoundsOf } from "../wire/message-limits.ts";

/** One list of a request as it was read from its bytes: columns, one place a point. */
export interface ReadList {
  /** Where each point begins and ends. */
  starts: number[];
  ends: number[];
  /** The segment that has its series, and the entry there; undefined: the point is among the messages of the request. */
  segments: (Segment | undefined)[];
  entries: number[];
  times: number[];
  values: number[];
}

/** What was read of a request beside its messages: those hold only points whose form is not known. */
export interface ScannedPoints {
  bytes: Uint8Array;
  lists: { canonical: ReadList; tagged: ReadList };
}

const read = new WeakMap<Message, ScannedPoints>();

/** What was read of a request by `pointReader`; undefined: its messages are all there is. */
export function scannedPointsOf(request: PutMetricsRequest): ScannedPoints | undefined {
  return read.get(request);
}

/** The point at a place of a list, decoded. */
export function decodePoint<S extends DescMessage>(
  schema: S,
  bytes: Uint8Array,
  { starts, ends }: ReadList,
  i: number,
) {
  return fromBinary(schema, bytes.subarray(starts[i], ends[i]), { readUnknownFields: false });
}

const unbounded = { itemsMax: Number.POSITIVE_INFINITY, memoryBytesMax: Number.POSITIVE_INFINITY };

/** The key of a point that says nothing twice: one metric, at most one of metadata, and each of so many dimensions and labels once. */
export function formKey(bytes: Uint8Array, members: number): KeptKey | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!scanPoint(bytes, view, 0, bytes.byteLength) || seriesKey.pieces !== members + (scannedPoint.metadata ? 2 : 1))
    return undefined;
  return keptKey(kinds.form, 0, countBinary(MetricSchema, bytes, unbounded));
}

function tagOf(schema: DescMessage): number {
  const field = PutMetricsRequestSchema.fields.find(({ message }) => message === schema);
  const tag = field === undefined ? 128 : (field.number << 3) | 2;
  if (tag > 127) throw new Error(`the list of ${schema.typeName} has no tag of one byte`);
  return tag;
}

const tags = { canonical: tagOf(MetricSchema), tagged: tagOf(TaggedMetricSchema) };
const sliceBytes = 64 * 1024;

/**
 * Reads requests of PutMetrics: points whose form is known into columns, and what else there is by `whole`. What it accepts
 * and refuses is what `whole` would.
 */
export function pointReader(memory: SeriesMemory, nowMs: () => number): OwnReader {
  // A point with tags has fewer members.
  const lessBytes = messageBoundsOf(MetricSchema).bytes - messageBoundsOf(TaggedMetricSchema).bytes;

  return (whole, tenantId): MessageReader => ({
    ...whole,
    async read(bytes, binary, call) {
      const { bytesMax, limits } = whole;
      if (!binary || bytes.byteLength > bytesMax) return await whole.read(bytes, binary, call);
      const all = await scan(bytes, memory.of(tenantId() ?? ""), nowMs(), call);
      if (all === undefined) return await whole.read(bytes, true, call);
      const { lists, rest } = all;
      const count = lists.canonical.times.length + lists.tagged.times.length;
      const memoryBytes = memoryOf(lists.canonical, 0) + memoryOf(lists.tagged, lessBytes);
      if (count > limits.itemsMax) return await whole.read(bytes, true, call);
      let restBytes = 0;
      const reserve = (more: number) => {
        restBytes += more;
        call.reserve(more);
      };
      const message = await readOrNone(whole, rest, { ...call, reserve });
      const items = count + ((message as PutMetricsRequest | undefined)?.compactMetrics.length ?? 0);
      // What is wrong with it, and where, is said by the one that reads it whole.
      if (message === undefined || items > limits.itemsMax || memoryBytes + restBytes > limits.memoryBytesMax)
        return await whole.read(bytes, true, call);
      call.reserve(memoryBytes);
      read.set(message, { bytes, lists });
      return message;
    },
  });
}

async function readOrNone(whole: MessageReader, bytes: Uint8Array, call: ReadingCall): Promise<Message | undefined> {
  try {
    return await whole.read(bytes, true, call);
  } catch {
    return undefined;
  }
}

export const emptyList = (): ReadList => ({ starts: [], ends: [], segments: [], entries: [], times: [], values: [] });

/** The memory that its points take as messages. @param less how much less each takes than it did when it was learnt */
function memoryOf({ segments, entries }: ReadList, less: number): number {
  let bytes = 0;
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i];
    if (segment !== undefined) bytes += (segment.memory[entries[i] as number] as number) - less;
  }
  return bytes;
}

/** The points of a request, and the bytes of what has no known form; undefined: it is better read whole. */
async function scan(bytes: Uint8Array, known: TenantSeries, nowMs: number, call: ReadingCall) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const lists = { canonical: emptyList(), tagged: emptyList() };
  const pieces: Uint8Array[] = [];
  let restFrom = 0;
  let restTo = 0;
  let pausedAt = 0;
  for (let at = 0; at < bytes.byteLength; ) {
    const from = at;
    const tag = bytes[at] as number;
    let segment: Segment | undefined;
    if (tag === tags.canonical || tag === tags.tagged) {
      at = afterLength(bytes, at + 1);
      const start = at;
      at += lengthAt(bytes, from + 1);
      if (!(at <= bytes.byteLength)) return undefined;
      const list = tag === tags.tagged ? lists.tagged : lists.canonical;
      const good =
        scanPoint(bytes, view, start, at) && !(tag === tags.tagged && (scannedPoint.metadata || scannedPoint.labels));
      if (good && known.find(kinds.form, nowMs)) segment = found.segment;
      list.starts.push(start);
      list.ends.push(at);
      list.segments.push(segment);
      list.entries.push(found.entry);
      list.times.push(good ? scannedPoint.timeMs : 0);
      list.values.push(good ? scannedPoint.value : 0);
    } else {
      at = skip(bytes, at);
      if (!(at <= bytes.byteLength)) return undefined;
    }
    if (segment === undefined) {
      if (from !== restTo) {
        if (restTo > restFrom) pieces.push(bytes.subarray(restFrom, restTo));
        restFrom = from;
      }
      restTo = at;
    }
    if (at - pausedAt < sliceBytes) continue;
    pausedAt = at;
    await call.pace();
  }
  pieces.push(bytes.subarray(restFrom, restTo));
  return { lists, rest: pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces) };
}

/** The number that is at a place in at most four bytes; NaN: none does. */
function lengthAt(bytes: Uint8Array, at: number): number {
  let length = 0;
  for (let i = 0; i < 4; i++) {
    const byte = bytes[at + i];
    if (byte === undefined) return Number.NaN;
    length += (byte & 127) * 128 ** i;
    if (byte < 128) return length;
  }
  return Number.NaN;
}

function afterLength(bytes: Uint8Array, at: number): number {
  let end = at;
  while ((bytes[end] as number) > 127) end += 1;
  return end + 1;
}

/** Where the field ends that begins here; NaN: it is not one of the usual. */
function skip(bytes: Uint8Array, at: number): number {
  const tag = bytes[at] as number;
  if (tag > 127) return Number.NaN;
  if ((tag & 7) === 0) return afterLength(bytes, at + 1);
  if ((tag & 7) === 2) return afterLength(bytes, at + 1) + lengthAt(bytes, at + 1);
  return Number.NaN;
}
