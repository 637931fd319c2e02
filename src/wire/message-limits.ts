import { create, type DescField, type DescMessage, hasOption } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { batch, items_max, type Tree, tree, values_max } from "#gen/belfry/limits/v1/limits_pb.ts";
import { field as fieldRules, Ignore } from "#gen/buf/validate/validate_pb.ts";
import { optionOf } from "../proto-option.ts";
import { invalidValue, refusalOf } from "./status.ts";

/** How many of a field a request may hold. */
export interface FieldBounds {
  readonly field: DescField;
  /** Its place among the fields of its message. */
  readonly index: number;
  /** Elements of a list, entries of a map; Infinity when something else bounds them. */
  readonly max: number;
  /** Whether its elements are items of a batch. */
  readonly batch: boolean;
  /** Values at any depth of a type of google.protobuf; 0 when the field says none. */
  readonly valuesMax: number;
  /** The message that it holds, or that its elements are. */
  below(): MessageBounds | undefined;
}

/** How much a message may hold. */
export interface MessageBounds {
  readonly desc: DescMessage;
  readonly fields: readonly FieldBounds[];
  readonly byNumber: ReadonlyMap<number, FieldBounds>;
  readonly tree: Tree | undefined;
  /** Memory of an empty one, about. */
  readonly bytes: number;
}

/** Bounds of one message of a request as a whole. */
export interface CountLimits {
  /** Items of all batches. */
  itemsMax: number;
  /** Memory that the message may become, about. */
  memoryBytesMax: number;
}

/** How many times its bound a list, map or tree of an item may hold before the request is refused, and not the item alone. */
const itemFactor = 16;
/** The same of a JSON value, of which a bound is much already: one item is decoded at once. */
const itemValuesFactor = 4;

const known = new Map<DescMessage, MessageBounds>();
const knownInItem = new Map<DescMessage, MessageBounds>();

/** Whether what a field holds is checked by its handler, one by one. */
export function checkedApart(field: DescField): boolean {
  return hasOption(field, fieldRules) && optionOf(field, fieldRules).ignore === Ignore.ALWAYS;
}

/** The bounds that the proto declares for a message and all that lies in it; `inItem`: those beyond which its request is refused. */
export function messageBoundsOf(desc: DescMessage, inItem = false): MessageBounds {
  const all = inItem ? knownInItem : known;
  let found = all.get(desc);
  if (found === undefined) {
    const fields = desc.fields.map((field, index) => fieldBounds(field, index, inItem));
    found = {
      desc,
      fields,
      byNumber: new Map(fields.map((each) => [each.field.number, each])),
      tree: treeBounds(desc, inItem),
      bytes: emptyBytes(desc),
    };
    all.set(desc, found);
  }
  return found;
}

function treeBounds(desc: DescMessage, inItem: boolean): Tree | undefined {
  if (!hasOption(desc, tree)) return undefined;
  const declared = optionOf(desc, tree);
  if (!inItem) return declared;
  return { ...declared, nodesMax: declared.nodesMax * itemFactor, depthMax: declared.depthMax * itemFactor };
}

function fieldBounds(field: DescField, index: number, inItem: boolean): FieldBounds {
  const { message } = field;
  const factor = inItem ? itemFactor : 1;
  const below = inItem || checkedApart(field);
  return {
    field,
    index,
    max: (declaredMax(field) ?? Number.POSITIVE_INFINITY) * factor,
    batch: optionOf(field, batch),
    valuesMax: optionOf(field, values_max) * (inItem ? itemValuesFactor : 1),
    below: message === undefined ? () => undefined : () => messageBoundsOf(message, below),
  };
}

/** The max_items or max_pairs of a field. */
function declaredMax(field: DescField): number | undefined {
  if (hasOption(field, items_max)) return optionOf(field, items_max);
  if (!hasOption(field, fieldRules)) return undefined;
  const { type } = optionOf(field, fieldRules);
  if (type.case === "repeated" && Object.hasOwn(type.value, "maxItems")) return Number(type.value.maxItems);
  if (type.case === "map" && Object.hasOwn(type.value, "maxPairs")) return Number(type.value.maxPairs);
  return undefined;
}

const objectBytes = 32;
const memberBytes = 8;

/** An object with a member for each field, and the empty lists and maps in it. */
function emptyBytes(desc: DescMessage): number {
  let bytes = objectBytes + desc.members.length * memberBytes;
  for (const value of Object.values(create(desc))) if (typeof value === "object") bytes += objectBytes;
  return bytes;
}

/** Memory beside its characters that a string takes, and that of a number which does not lie in its object. */
export const stringBytes = 24;
export const numberBytes = 16;
/** Memory of a value of google.protobuf.Struct, or of an entry of a map. */
export const entryBytes = 48;

/** Counts of one message while its bytes are walked through, and the place where the walk stands. */
export interface MessageTally {
  readonly limits: CountLimits;
  items: number;
  /** Memory that the message becomes, about. */
  bytes: number;
  /** Bytes that were reserved of them. */
  reserved: number;
  readonly reserve: ((bytes: number) => void) | undefined;
  /** Fields and places in lists, from the outermost in. */
  readonly path: (FieldBounds | number)[];
}

/** Counts that begin; `reserve` is notified of memory as it is counted, now and then and by `reserveCounted`. */
export function tallyOf(limits: CountLimits, reserve?: (bytes: number) => void): MessageTally {
  return { limits, items: 0, bytes: 0, reserved: 0, reserve, path: [] };
}

const reserveStep = 64 * 1024;

/** Reserves what was counted and is not reserved yet. @throws code 8 when there is no room */
export function reserveCounted(tally: MessageTally): void {
  tally.reserve?.(tally.bytes - tally.reserved);
  tally.reserved = tally.bytes;
}

/** The place of the walk as an error names it, `query.clause.and.clauses[3]`. */
export function pathOfNode({ path }: MessageTally): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? part.field.jsonName : `.${part.field.jsonName}`;
  }
  return text;
}

/** Messages of one type, or values within a type of google.protobuf, that are counted together. */
export interface Nodes {
  count: number;
  depth: number;
  readonly tree: Tree | undefined;
  /** The field whose `values_max` counts. */
  readonly holder: FieldBounds | undefined;
}

/** Counts a message that begins. Returns what the messages in it count for. @throws code 3 when it is one too many */
export function nodesOf(tally: MessageTally, bounds: MessageBounds, around: Nodes | undefined): Nodes | undefined {
  const { tree } = bounds;
  if (tree === undefined) {
    countValue(tally, bounds, around);
    return around;
  }
  const nodes = around?.tree === tree ? around : { count: 0, depth: 0, tree, holder: undefined };
  nodes.count += 1;
  nodes.depth += 1;
  if (nodes.depth > tree.depthMax) {
    throw invalidValue(pathOfNode(tally), `must not lie deeper than ${tree.depthMax} clauses`);
  }
  if (nodes.count > tree.nodesMax) {
    throw invalidValue(pathOfNode(tally), `must not be more than the ${tree.nodesMax}th clause`);
  }
  return nodes;
}

/** A message ends that `nodesOf` has counted. */
export function leaveNode({ tree }: MessageBounds, nodes: Nodes | undefined): void {
  if (tree !== undefined && nodes !== undefined) nodes.depth -= 1;
}

/** What the messages in a field count for. */
export function innerNodes(field: FieldBounds, nodes: Nodes | undefined): Nodes | undefined {
  return field.valuesMax === 0 ? nodes : { count: 0, depth: 0, tree: undefined, holder: field };
}

/** Counts a message when it is a google.protobuf.Value whose number is bounded. @throws code 3 when it is one too many */
export function countValue(tally: MessageTally, { desc }: MessageBounds, nodes: Nodes | undefined): void {
  if (nodes?.holder !== undefined && desc.typeName === "google.protobuf.Value") countHeld(tally, nodes, nodes.holder);
}

/** Counts one of the values of `holder`. @throws code 3 when it is one too many */
export function countHeld(tally: MessageTally, nodes: Nodes, holder: FieldBounds): void {
  nodes.count += 1;
  if (nodes.count <= holder.valuesMax) return;
  tally.path.length = tally.path.indexOf(holder) + 1;
  const what = holder.field.message?.typeName === "google.protobuf.FieldMask" ? "paths" : "values";
  throw invalidValue(pathOfNode(tally), `must hold at most ${holder.valuesMax} ${what}`);
}

/** Counts one more element of a list or map. @throws code 3 or 8 when it is one too many */
export function countElement(tally: MessageTally, bounds: FieldBounds, count: number, nodes?: Nodes): void {
  const { field, max } = bounds;
  if (count > max) {
    throw invalidValue(
      pathOfNode(tally),
      `must have at most ${max} ${field.fieldKind === "map" ? "entries" : "items"}`,
    );
  }
  if (field.parent.typeName === "google.protobuf.FieldMask" && nodes?.holder !== undefined) {
    countHeld(tally, nodes, nodes.holder);
  }
  if (!bounds.batch) return;
  tally.items += 1;
  if (tally.items > tally.limits.itemsMax) {
    const rule = `a request holds at most ${tally.limits.itemsMax} items; split it`;
    throw refusalOf(Code.ResourceExhausted, 413, `${pathOfNode(tally)}: ${rule}`);
  }
}

/** Adds memory. @throws code 8 when it is too much */
export function addBytes(tally: MessageTally, bytes: number): void {
  tally.bytes += bytes;
  const { memoryBytesMax } = tally.limits;
  if (tally.bytes > memoryBytesMax) throw tooMuchMemory(memoryBytesMax);
  if (tally.bytes - tally.reserved > reserveStep && tally.reserve !== undefined) reserveCounted(tally);
}

function tooMuchMemory(memoryBytesMax: number) {
  return refusalOf(
    Code.ResourceExhausted,
    413,
    `the request would take more than ${memoryBytesMax} bytes of memory; split it`,
  );
}

/** How many times the bytes of the largest message its memory may be. */
export const memoryFactor = 8;
