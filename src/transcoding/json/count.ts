import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import {
  addBytes,
  type CountLimits,
  countElement,
  countHeld,
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
  stringBytes,
  tallyOf,
} from "../../wire/message-limits.ts";
import { invalidValue } from "../../wire/status.ts";
import { fieldsByKey, keyFinder } from "./key-finder.ts";
import { byteOffset, pathAt } from "./path.ts";
import { colon, endOf, enter, isJsonError, next, numberText, type Scan, unexpected, word } from "./scan.ts";

type FindKey = (s: Scan) => { readonly key: string; readonly field: FieldBounds } | undefined;

const finders = new Map<MessageBounds, FindKey>();

/**
 * Walks through a JSON text before it is read, and counts what would be made of it; the scan is at the beginning again.
 * What is wrong with the text is left to the reader, which finds it no later.
 * @returns the memory that the message becomes, about.
 * @throws code 3 for too many elements, code 8 for too large a batch, or too much memory.
 */
export function countJson(s: Scan, root: DescMessage | DescField, limits: CountLimits): number {
  const tally = tallyOf(limits);
  addBytes(tally, s.text.length);
  try {
    next(s);
    if (root.kind === "message") message(s, tally, messageBoundsOf(root), undefined);
    else value(s, tally, fieldOf(root), undefined, false);
  } catch (error) {
    if (!isJsonError(error)) throw error;
    if (s.depth > s.depthMax) {
      const place = ` (byte ${byteOffset(s.text, error.offset)})`;
      throw invalidValue(pathAt(s.text, error.offset, root), error.message, place);
    }
  }
  s.at = 0;
  s.depth = 0;
  return tally.bytes;
}

function fieldOf(field: DescField): FieldBounds {
  return messageBoundsOf(field.parent).fields[field.parent.fields.indexOf(field)] as FieldBounds;
}

function message(s: Scan, tally: MessageTally, bounds: MessageBounds, around: Nodes | undefined): void {
  const { desc } = bounds;
  if (desc.typeName.startsWith("google.protobuf.")) {
    ofGoogle(s, tally, bounds, around);
    return;
  }
  addBytes(tally, bounds.bytes);
  const nodes = nodesOf(tally, bounds, around);
  if (s.codes[s.at] === 123) members(s, tally, bounds, nodes);
  else any(s, tally, undefined);
  leaveNode(bounds, nodes);
}

function members(s: Scan, tally: MessageTally, bounds: MessageBounds, nodes: Nodes | undefined): void {
  const find = finderOf(bounds);
  for (let more = begins(s, 125); more; more = !endOf(s, 125, "}")) {
    next(s);
    const found = find(s);
    colon(s);
    if (found === undefined) any(s, tally, undefined);
    else {
      tally.path.push(found.field);
      value(s, tally, found.field, nodes, false);
      tally.path.pop();
    }
  }
}

/** Goes into an object or list; returns whether there is anything in it. */
function begins(s: Scan, close: number): boolean {
  enter(s);
  if (next(s) !== close) return true;
  s.at++;
  s.depth--;
  return false;
}

/** A field's value; `inside`: an element of its list or map. */
function value(s: Scan, tally: MessageTally, field: FieldBounds, nodes: Nodes | undefined, inside: boolean): void {
  const { fieldKind } = field.field;
  const c = s.codes[s.at];
  const below = field.below();
  if (!inside && fieldKind === "list" && c === 91) list(s, tally, field, nodes);
  else if (!inside && fieldKind === "map" && c === 123) map(s, tally, field, nodes);
  else if (below === undefined) any(s, tally, undefined);
  else message(s, tally, below, innerNodes(field, nodes));
}

function list(s: Scan, tally: MessageTally, field: FieldBounds, nodes: Nodes | undefined): void {
  let count = 0;
  for (let more = begins(s, 93); more; more = !endOf(s, 93, "]")) {
    next(s);
    countElement(tally, field, ++count);
    tally.path.push(count - 1);
    value(s, tally, field, nodes, true);
    tally.path.pop();
  }
}

function map(s: Scan, tally: MessageTally, field: FieldBounds, nodes: Nodes | undefined): void {
  let count = 0;
  for (let more = begins(s, 125); more; more = !endOf(s, 125, "}")) {
    next(s);
    countElement(tally, field, ++count);
    text(s, tally);
    colon(s);
    addBytes(tally, entryBytes);
    value(s, tally, field, nodes, true);
  }
}

/** A type of google.protobuf, most of which have a JSON form of their own. */
function ofGoogle(s: Scan, tally: MessageTally, { desc }: MessageBounds, nodes: Nodes | undefined): void {
  switch (desc.typeName) {
    case "google.protobuf.Struct":
    case "google.protobuf.Value":
    case "google.protobuf.ListValue":
      any(s, tally, nodes, desc.typeName === "google.protobuf.Value");
      break;
    case "google.protobuf.FieldMask":
      paths(s, tally, nodes);
      break;
    default:
      if (!isWrapperDesc(desc)) addBytes(tally, messageBoundsOf(desc).bytes);
      any(s, tally, undefined);
  }
}

/** The paths of a field mask, by the commas between them. */
function paths(s: Scan, tally: MessageTally, nodes: Nodes | undefined): void {
  const from = s.at;
  any(s, tally, undefined);
  if (nodes?.holder === undefined || s.codes[from] !== 34) return;
  countHeld(tally, nodes, nodes.holder);
  for (let at = from; at < s.at; at++) if (s.codes[at] === 44) countHeld(tally, nodes, nodes.holder);
}

/** Any value; `counted`: it counts itself. The values in it count for `nodes`. */
function any(s: Scan, tally: MessageTally, nodes: Nodes | undefined, counted = false): void {
  if (counted && nodes?.holder !== undefined) countHeld(tally, nodes, nodes.holder);
  const c = next(s);
  if (c !== 34) addBytes(tally, c === 123 || c === 91 ? entryBytes : numberBytes);
  if (c === 34) text(s, tally);
  else if (c === 123 || c === 91) inside(s, tally, nodes, c === 123);
  else if (c === 116) word(s, "true");
  else if (c === 102) word(s, "false");
  else if (c === 110) word(s, "null");
  else if (c === 45 || (c >= 48 && c <= 57)) numberText(s);
  else unexpected(s, "a value");
}

function inside(s: Scan, tally: MessageTally, nodes: Nodes | undefined, object: boolean): void {
  const close = object ? 125 : 93;
  for (let more = begins(s, close); more; more = !endOf(s, close, object ? "}" : "]")) {
    if (object) {
      next(s);
      text(s, tally);
      colon(s);
    }
    any(s, tally, nodes, true);
  }
}

/** Passes over a string, at its opening quote. */
function text(s: Scan, tally: MessageTally): void {
  const { codes } = s;
  if (codes[s.at] !== 34) unexpected(s, "a string");
  const from = s.at + 1;
  let at = from;
  for (let c = codes[at] as number; c !== 34; c = codes[at] as number) {
    if (!(c >= 32)) unexpected(s, "the end of a string");
    at += c === 92 ? 2 : 1;
  }
  s.at = at + 1;
  addBytes(tally, at - from + stringBytes);
}

function finderOf(bounds: MessageBounds): FindKey {
  let find = finders.get(bounds);
  if (find === undefined) {
    const entries = [...fieldsByKey(bounds.desc)].flatMap(([key, { number }]) => {
      const field = bounds.byNumber.get(number);
      return field === undefined ? [] : [{ key, field }];
    });
    find = keyFinder(entries);
    finders.set(bounds, find);
  }
  return find;
}
