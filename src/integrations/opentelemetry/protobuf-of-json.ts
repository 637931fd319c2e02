import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { bodyText } from "../../transcoding/body.ts";
import { keyFinder } from "../../transcoding/json/key-finder.ts";
import type { ReadingCall } from "../../transcoding/json/parse.ts";
import { skip } from "../../transcoding/json/pass-value.ts";
import { byteOffset, pathAt } from "../../transcoding/json/path.ts";
import { twice } from "../../transcoding/json/read-json.ts";
import { enumReader, scalarReader } from "../../transcoding/json/read-scalar.ts";
import { string } from "../../transcoding/json/read-string.ts";
import {
  colon,
  endOf,
  enter,
  fail,
  finishScan,
  isJsonError,
  next,
  type Scan,
  scanOf,
  takeNull,
  unexpected,
} from "../../transcoding/json/scan.ts";
import { invalidValue } from "../../wire/status.ts";
import { delimited, fixed64, passField, pauseDue, varint, walkOf } from "./fields.ts";
import {
  beginLength,
  endLength,
  type Output,
  outputOf,
  writeBytes,
  writeDouble,
  writeFixed32,
  writeFixed64,
  writeInteger,
  writeString,
  writeVarint,
} from "./protobuf-output.ts";

/** A field of a message, as it is read and written. */
interface Member {
  readonly key: string;
  readonly field: DescField;
  /** Its bit among the fields of its message, and those of the fields of which only one may be set. */
  readonly bit: number;
  readonly others: number;
  readonly tag: number;
  /** Of a list that stands in one piece. */
  readonly packedTag: number | undefined;
  readonly write: ((out: Output, s: Scan) => void) | undefined;
  /** The fields of the message that it is. */
  below(): FindMember;
}

type FindMember = (s: Scan) => Member | undefined;

/** An object or list that has begun. */
interface Frame {
  /** Absent: its members are unknown, or it is a list. */
  readonly find: FindMember | undefined;
  /** Of a list: what its elements are. */
  readonly element: Member | undefined;
  readonly isList: boolean;
  /** Where its length is written; -1: nowhere. */
  readonly lengthAt: number;
  begun: boolean;
  /** Bits of the members that have come, and of those that are set. */
  seen: number;
  set: number;
}

const finders = new Map<DescMessage, FindMember>();

function finderOf(desc: DescMessage): FindMember {
  let find = finders.get(desc);
  if (find === undefined) {
    find = keyFinder(desc.fields.map((field) => memberOf(desc, field.jsonName, field)));
    finders.set(desc, find);
  }
  return find;
}

function memberOf(desc: DescMessage, key: string, field: DescField): Member {
  const { message, number } = field;
  const bitOf = (each: DescField) => 1 << desc.fields.indexOf(each);
  const bit = bitOf(field);
  const group = field.oneof?.fields ?? [];
  const [type, write] = message === undefined ? scalarOf(field) : [delimited, undefined];
  return {
    key,
    field,
    bit,
    others: group.reduce((bits, each) => bits | bitOf(each), 0) & ~bit,
    tag: number * 8 + type,
    write,
    packedTag: field.fieldKind === "list" && type !== delimited ? number * 8 + delimited : undefined,
    below: () => finderOf(message as DescMessage),
  };
}

/** How a field that is no message is written: its wire type, and what reads and writes a value. */
function scalarOf(field: DescField): [type: number, write: (out: Output, s: Scan) => void] {
  if (field.enum !== undefined) {
    const read = enumReader(field.enum) as (s: Scan) => number;
    return [varint, (out, s) => writeInteger(out, BigInt(read(s)))];
  }
  const scalar = field.scalar as ScalarType;
  const read = scalarReader(scalar, false);
  switch (scalar) {
    case ScalarType.STRING:
      return [delimited, writeString];
    case ScalarType.BYTES:
      return [delimited, (out, s) => writeBytes(out, read(s) as Uint8Array)];
    case ScalarType.DOUBLE:
      return [fixed64, (out, s) => writeDouble(out, read(s) as number)];
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return [fixed64, (out, s) => writeFixed64(out, read(s) as bigint)];
    case ScalarType.FIXED32:
      return [5, (out, s) => writeFixed32(out, read(s) as number)];
    case ScalarType.BOOL:
      return [varint, (out, s) => writeVarint(out, read(s) ? 1 : 0)];
    case ScalarType.SINT32:
      return [varint, (out, s) => writeZigzag(out, read(s) as number)];
    default:
      return [varint, (out, s) => writeInteger(out, BigInt(read(s) as bigint | number))];
  }
}

const writeZigzag = (out: Output, number: number) => writeVarint(out, ((number << 1) ^ (number >> 31)) >>> 0);

/** Characters of a text within which the path of a mistake is looked for; behind them its byte has to do. */
const pathCharactersMax = 256 * 1024;
/** Characters of a member or element, on average; numbers of lists take fewer, and may be fewer than that. */
const valueBytesMin = 8;
/** Memory of the text, of its characters' codes and of what is written, in relation to the body. */
const memoryFactor = 4;

/**
 * Writes a message's JSON as its Protobuf, in slices: unknown members are passed over, and no message is made.
 * @throws code 3 with the path and the place of what is wrong, code 8 for what is too large
 */
export async function protobufOfJson(
  body: Buffer,
  desc: DescMessage,
  bytesMax: number,
  call: ReadingCall,
): Promise<Buffer> {
  const text = bodyText(body);
  call.reserve(body.length * memoryFactor);
  const s = scanOf(text, { bytes: body, ignoreUnknown: true });
  const out = outputOf(body.length, bytesMax);
  const walk = walkOf(bytesMax, valueBytesMin);
  try {
    if (next(s) !== 123) unexpected(s, "an object");
    enter(s);
    const frames: Frame[] = [frameOf(finderOf(desc))];
    for (let top = frames[0]; top !== undefined; top = frames.at(-1)) {
      if (ends(s, top)) {
        frames.pop();
        if (top.lengthAt >= 0) endLength(out, top.lengthAt);
        continue;
      }
      passField(walk);
      if (pauseDue(walk)) {
        const wait = call.pace();
        if (wait !== undefined) await wait;
      }
      const inner = top.isList ? element(s, out, top) : member(s, out, top);
      if (inner !== undefined) frames.push(inner);
    }
    finishScan(s);
  } catch (error) {
    if (!isJsonError(error)) throw error;
    const { offset, message } = error;
    const path = offset < pathCharactersMax ? pathAt(text.slice(0, offset + 1), offset, desc) : "";
    throw invalidValue(path, message, ` (byte ${byteOffset(text, offset)})`);
  }
  return out.bytes.subarray(0, out.at);
}

/** An object whose members are found by `find`, or a list of `element`. */
const frameOf = (find: FindMember | undefined, isList = false, element?: Member, lengthAt = -1): Frame => ({
  find,
  element,
  isList,
  lengthAt,
  begun: false,
  seen: 0,
  set: 0,
});

/** Whether an object or list ends here; else its next member or element follows. */
function ends(s: Scan, top: Frame): boolean {
  const [close, sign] = top.isList ? [93, "]"] : [125, "}"];
  if (top.begun) return endOf(s, close, sign);
  top.begun = true;
  if (next(s) !== close) return false;
  s.at++;
  s.depth--;
  return true;
}

function element(s: Scan, out: Output, { element }: Frame): Frame | undefined {
  next(s);
  if (element === undefined) return unknown(s);
  if (s.codes[s.at] === 110) fail(s.at, "a list may not hold null");
  return value(s, out, element, element.packedTag === undefined);
}

function member(s: Scan, out: Output, top: Frame): Frame | undefined {
  next(s);
  const keyAt = s.at;
  if (top.find === undefined) string(s);
  const found = top.find?.(s);
  colon(s);
  if (found === undefined) return unknown(s);
  if ((top.seen & found.bit) !== 0) twice(s, keyAt);
  top.seen |= found.bit;
  if (takeNull(s)) return undefined;
  if ((top.set & found.others) !== 0) notBoth(found, top.set, keyAt);
  top.set |= found.bit;
  if (found.field.fieldKind !== "list") return value(s, out, found, true);
  if (s.codes[s.at] !== 91) unexpected(s, "a list");
  enter(s);
  if (found.packedTag === undefined) return frameOf(undefined, true, found);
  writeVarint(out, found.packedTag);
  return frameOf(undefined, true, found, beginLength(out));
}

function notBoth({ field, others }: Member, set: number, keyAt: number): never {
  const { fields } = field.parent;
  const other = fields.find((_, i) => (set & others & (1 << i)) !== 0);
  fail(keyAt, `only one of ${JSON.stringify(other?.jsonName)} and ${JSON.stringify(field.jsonName)} may be set`);
}

/** Writes a value, or begins the message that it is. */
function value(s: Scan, out: Output, of: Member, tagged: boolean): Frame | undefined {
  if (of.write === undefined && s.codes[s.at] !== 123) unexpected(s, "an object");
  if (tagged) writeVarint(out, of.tag);
  if (of.write === undefined) {
    enter(s);
    return frameOf(of.below(), false, undefined, beginLength(out));
  }
  of.write(out, s);
  return undefined;
}

/** Passes over a value, or begins what holds it. */
function unknown(s: Scan): Frame | undefined {
  const c = s.codes[s.at];
  if (c !== 123 && c !== 91) {
    skip(s);
    return undefined;
  }
  enter(s);
  return frameOf(undefined, c === 91);
}
