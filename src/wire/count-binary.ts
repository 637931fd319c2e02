import { type DescField, ScalarType } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import {
  addBytes,
  type CountLimits,
  countElement,
  countValue,
  entryBytes,
  type FieldBounds,
  innerNodes,
  leaveNode,
  type MessageBounds,
  type MessageTally,
  messageBoundsOf,
  type Nodes,
  nodesOf,
  numberBytes,
  pathOfNode,
  stringBytes,
  tallyOf,
} from "./message-limits.ts";
import { invalidValue } from "./status.ts";

const varint = 0;
const fixed64 = 1;
const delimited = 2;
const fixed32 = 5;
/** What a field costs that nothing is made of, because it is unknown or comes again later: time, counted as memory. */
const passedOverBytes = 256;
const depthMax = 100; // of messages within each other, as for the decoder

/** The bytes of a message, how far they are read, and what was counted. */
interface Walk {
  readonly bytes: Uint8Array;
  readonly tally: MessageTally;
  at: number;
}

/**
 * Walks through the bytes of a message before they are decoded, and counts what would be made of them. It is stricter than
 * the decoder, which takes a field of any wire type, and a message that goes on after its end.
 * @returns the memory that the message becomes, about.
 * @throws code 3 for too many elements, for what is no such message, and for a message where it has come already (the
 * decoder would merge the two, each time again); code 8 for too large a batch, or too much memory.
 */
export function countBinary(desc: MessageBounds["desc"], bytes: Uint8Array, limits: CountLimits): number {
  const tally = tallyOf(limits);
  message({ bytes, tally, at: 0 }, messageBoundsOf(desc), bytes.length, undefined, 1);
  return tally.bytes;
}

function message(w: Walk, bounds: MessageBounds, end: number, around: Nodes | undefined, depth: number): void {
  if (depth > depthMax) throw malformed(w, `deeper than ${depthMax} messages`);
  addBytes(w.tally, bounds.bytes);
  const nodes = nodesOf(w.tally, bounds, around);
  let counts: number[] | undefined;
  let seen = 0;
  while (w.at < end) {
    const tag = readVarint(w, end);
    const type = tag & 7;
    const field = bounds.byNumber.get(tag >>> 3);
    if (field === undefined) {
      addBytes(w.tally, passedOverBytes);
      skip(w, type, end);
      continue;
    }
    const { fieldKind } = field.field;
    if (fieldKind === "scalar" || fieldKind === "enum") {
      if (type !== wireType(field.field.scalar)) throw wrongType(w, field);
      const bit = 1 << field.index; // of messages with more than 32 fields some share theirs
      if ((seen & bit) !== 0) addBytes(w.tally, passedOverBytes);
      seen |= bit;
      skip(w, type, end);
      continue;
    }
    counts ??= new Array<number>(bounds.fields.length).fill(0);
    const before = counts[field.index] as number;
    w.tally.path.push(field);
    if (fieldKind === "list" && field.field.message === undefined)
      counts[field.index] = scalars(w, field, before, type, end, nodes);
    else {
      if (type !== delimited) throw wrongType(w, field);
      counts[field.index] = before + 1;
      if (fieldKind === "map") entry(w, field, before + 1, end, nodes, depth);
      else held(w, field, before + 1, end, nodes, depth);
    }
    w.tally.path.pop();
  }
  leaveNode(bounds, nodes);
}

/** A message in a field of its own, or in a list. */
function held(w: Walk, field: FieldBounds, count: number, end: number, nodes: Nodes | undefined, depth: number): void {
  const { tally } = w;
  const inList = field.field.fieldKind === "list";
  if (inList) {
    countElement(tally, field, count);
    tally.path.push(count - 1);
  } else if (count > 1) throw invalidValue(pathOfNode(tally), "occurs twice");
  message(w, field.below() as MessageBounds, lengthEnd(w, end), innerNodes(field, nodes), depth + 1);
  if (inList) tally.path.pop();
}

/** An entry of a map: a message of a key, field 1, and a value, field 2. */
function entry(w: Walk, field: FieldBounds, count: number, end: number, nodes: Nodes | undefined, depth: number): void {
  const { mapKey, scalar } = field.field as DescField & { fieldKind: "map" };
  countElement(w.tally, field, count);
  addBytes(w.tally, entryBytes);
  const stop = lengthEnd(w, end);
  const below = field.below();
  const types = [wireType(mapKey), below === undefined ? wireType(scalar) : delimited];
  let values = 0;
  while (w.at < stop) {
    const tag = readVarint(w, stop);
    const number = tag >>> 3;
    const type = tag & 7;
    if (number >= 1 && number <= 2 && type !== types[number - 1]) throw wrongType(w, field);
    if (number !== 2 || below === undefined) {
      skip(w, type, stop);
      continue;
    }
    values += 1;
    if (values > 1) throw invalidValue(pathOfNode(w.tally), "has an entry with two values");
    message(w, below, lengthEnd(w, stop), innerNodes(field, nodes), depth + 1);
  }
  if (below !== undefined && values === 0) countValue(w.tally, below, nodes);
}

/** Elements of a list of scalars, one by one or packed; returns how many there are now. */
function scalars(
  w: Walk,
  field: FieldBounds,
  before: number,
  type: number,
  end: number,
  nodes: Nodes | undefined,
): number {
  const element = wireType(field.field.scalar);
  let count = before;
  if (type === delimited && element !== delimited) {
    const stop = lengthEnd(w, end);
    for (; w.at < stop; skip(w, element, stop)) countElement(w.tally, field, ++count);
    return count;
  }
  if (type !== element) throw wrongType(w, field);
  countElement(w.tally, field, ++count, nodes);
  skip(w, type, end);
  return count;
}

/** How a scalar is written; without one, the number of an enum. */
export function wireType(scalar: ScalarType | undefined): number {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return delimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return fixed64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return fixed32;
    default:
      return varint;
  }
}

function readVarint(w: Walk, end: number): number {
  let value = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    if (w.at >= end) throw malformed(w, "it ends early");
    const byte = w.bytes[w.at++] as number;
    if (shift < 32) value |= (byte & 127) << shift;
    if (byte < 128) return value >>> 0;
  }
  throw malformed(w, "a number is too long");
}

/** Where the thing ends whose length stands here. */
function lengthEnd(w: Walk, end: number): number {
  const length = readVarint(w, end);
  if (w.at + length > end) throw malformed(w, "it ends early");
  return w.at + length;
}

function skip(w: Walk, type: number, end: number): void {
  let bytes = numberBytes;
  if (type === varint) readVarint(w, end);
  else if (type === delimited) {
    const stop = lengthEnd(w, end);
    bytes = stop - w.at + stringBytes;
    w.at = stop;
  } else if (type === fixed64) w.at += 8;
  else if (type === fixed32) w.at += 4;
  else throw malformed(w, "it holds a group");
  if (w.at > end) throw malformed(w, "it ends early");
  addBytes(w.tally, bytes);
}

function wrongType(w: Walk, { field }: FieldBounds): ConnectError {
  return malformed(w, `${field.name} has another wire type`);
}

function malformed({ at }: Walk, why: string): ConnectError {
  return invalidValue("", `the message cannot be decoded: ${why}`, ` (byte ${at})`);
}
