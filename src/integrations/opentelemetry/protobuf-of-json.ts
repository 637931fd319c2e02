import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { bodyText } from "../../transcoding/body.ts";
import { keyFinder } from "../../transcoding/json/key-finder.ts";
import { parseText, type ReadingCall } from "../../transcoding/json/parse.ts";
import { passScalar } from "../../transcoding/json/pass-value.ts";
import { twice } from "../../transcoding/json/read-json.ts";
import { enumReader, scalarReader } from "../../transcoding/json/read-scalar.ts";
import { string } from "../../transcoding/json/read-string.ts";
import {
  colon,
  endOf,
  enter,
  fail,
  next,
  type Scan,
  takeNull,
  unexpected,
  unlimited,
} from "../../transcoding/json/scan.ts";
import { wireType } from "../../wire/count-binary.ts";
import { delimited, passField, pauseDue, type Walk, walkOf } from "./fields.ts";
import {
  beginLength,
  endLength,
  type Output,
  outputOf,
  writeInteger,
  writers,
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

const finders = new Map<DescMessage, FindMember>();

function finderOf(desc: DescMessage): FindMember {
  let find = finders.get(desc);
  if (find === undefined) {
    find = keyFinder(desc.fields.map(memberOf));
    finders.set(desc, find);
  }
  return find;
}

function memberOf(field: DescField): Member {
  const { message, number, parent, oneof } = field;
  const bitOf = (each: DescField) => 1 << parent.fields.indexOf(each);
  const bit = bitOf(field);
  const type = message === undefined ? wireType(field.scalar) : delimited;
  return {
    key: field.jsonName,
    field,
    bit,
    others: (oneof?.fields ?? []).reduce((bits, each) => bits | bitOf(each), 0) & ~bit,
    tag: number * 8 + type,
    write: message === undefined ? scalarOf(field) : undefined,
    packedTag: field.fieldKind === "list" && type !== delimited ? number * 8 + delimited : undefined,
    below: () => finderOf(message as DescMessage),
  };
}

/** Reads and writes a value of a field that is no message. */
function scalarOf({ enum: values, scalar = ScalarType.INT32 }: DescField): (out: Output, s: Scan) => void {
  if (scalar === ScalarType.STRING) return writeString;
  const read = values === undefined ? scalarReader(scalar, false) : enumReader(values);
  const write = writers[scalar] ?? writeInteger;
  return (out, s) => write(out, read(s) as never);
}

/** Characters of a text within which the path of a mistake is looked for. */
const pathCharactersMax = 256 * 1024;
/** Characters of a member or element, on average; numbers of lists take fewer, and may be fewer than that. */
const valueBytesMin = 8;
/** Memory beside the text, of its characters' codes and of what is written, in relation to the body. */
const memoryFactor = 3;

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
  call.reserve(body.length * memoryFactor);
  const out = outputOf(body.length, bytesMax);
  const inPortions = (s: Scan) => message(s, out, finderOf(desc), walkOf(bytesMax, valueBytesMin));
  const whole = (s: Scan) => {
    for (const stop of inPortions(s)) void stop;
  };
  const options = { root: desc, limits: unlimited, ignoreUnknown: true, discreet: false, pathCharactersMax };
  await parseText(bodyText(body), body, { whole, inPortions }, options, call);
  return out.bytes.subarray(0, out.at);
}

/** Writes the message that begins here, behind its tag if it has one; stops now and then. */
function* message(s: Scan, out: Output, find: FindMember, walk: Walk, tag = 0): Generator<undefined, void> {
  if (s.codes[s.at] !== 123) unexpected(s, "an object");
  const lengthAt = tag === 0 ? undefined : beginLength(out, tag);
  /** Bits of the members that have come, and of those that are set. */
  let [seen, set] = [0, 0];
  for (let ended = begins(s, 125); !ended; ended = endOf(s, 125, "}")) {
    next(s);
    passField(walk);
    if (pauseDue(walk)) yield;
    const keyAt = s.at;
    const found = find(s);
    colon(s);
    if (found === undefined) {
      if (!passScalar(s)) yield* unknown(s, walk);
      continue;
    }
    if ((seen & found.bit) !== 0) twice(s, keyAt);
    seen |= found.bit;
    if (takeNull(s)) continue;
    if ((set & found.others) !== 0) notBoth(found, set, keyAt);
    set |= found.bit;
    if (found.field.fieldKind === "list") yield* list(s, out, found, walk);
    else if (found.write === undefined) yield* message(s, out, found.below(), walk, found.tag);
    else {
      writeVarint(out, found.tag);
      found.write(out, s);
    }
  }
  if (lengthAt !== undefined) endLength(out, lengthAt);
}

/** Writes the elements of the list that begins here: numbers in one piece. */
function* list(s: Scan, out: Output, of: Member, walk: Walk): Generator<undefined, void> {
  if (s.codes[s.at] !== 91) unexpected(s, "a list");
  const lengthAt = of.packedTag === undefined ? undefined : beginLength(out, of.packedTag);
  for (let ended = begins(s, 93); !ended; ended = endOf(s, 93, "]")) {
    if (next(s) === 110) fail(s.at, "a list may not hold null");
    passField(walk);
    if (pauseDue(walk)) yield;
    if (of.write === undefined) yield* message(s, out, of.below(), walk, of.tag);
    else {
      if (lengthAt === undefined) writeVarint(out, of.tag);
      of.write(out, s);
    }
  }
  if (lengthAt !== undefined) endLength(out, lengthAt);
}

/** Passes over the object or list that begins here. */
function* unknown(s: Scan, walk: Walk): Generator<undefined, void> {
  const [close, sign] = s.codes[s.at] === 123 ? [125, "}"] : [93, "]"];
  for (let ended = begins(s, close); !ended; ended = endOf(s, close, sign)) {
    next(s);
    passField(walk);
    if (pauseDue(walk)) yield;
    if (close === 125) {
      string(s);
      colon(s);
    }
    if (!passScalar(s)) yield* unknown(s, walk);
  }
}

/** Goes into an object or list; true: it is empty, and has ended. */
function begins(s: Scan, close: number): boolean {
  enter(s);
  if (next(s) !== close) return false;
  s.at++;
  s.depth--;
  return true;
}

function notBoth({ field, others }: Member, set: number, keyAt: number): never {
  const { fields } = field.parent;
  const other = fields.find((_, i) => (set & others & (1 << i)) !== 0);
  fail(keyAt, `only one of ${JSON.stringify(other?.jsonName)} and ${JSON.stringify(field.jsonName)} may be set`);
}
