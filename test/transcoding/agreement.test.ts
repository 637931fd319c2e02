import { type DescMessage, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonReader } from "../../src/transcoding/json/read-json.ts";
import { finishScan, next, scanOf } from "../../src/transcoding/json/scan.ts";
import { cases } from "../support/cases.ts";
import { anyMessage, bytesOf } from "./messages.ts";
import { foreign, foreignMessage } from "./schema.ts";

const reader = jsonReader({ registry: foreign });

type Outcome = { bytes: string } | { error: string };

function outcome(fn: () => string): Outcome {
  try {
    return { bytes: fn() };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

function ours(desc: DescMessage, text: string): Outcome {
  return outcome(() => {
    const s = scanOf(text, { bytes: Buffer.from(text) });
    next(s);
    const message = reader.message(desc)(s);
    finishScan(s);
    return bytesOf(desc, message);
  });
}

function theirs(desc: DescMessage, text: string): Outcome {
  return outcome(() => bytesOf(desc, fromJsonString(desc, text, { registry: foreign })));
}

interface Exception {
  reason: string;
  /** What our error says; left out: we accept. */
  ours?: RegExp;
  /** What the error of protobuf-es says; left out: it accepts. */
  theirs?: RegExp;
  text?: RegExp;
}

/** Where our reader differs from protobuf-es 2.17 on purpose. */
const exceptions: Exception[] = [
  {
    reason: "a quoted integer has the form of a JSON number: no hexadecimal, plus, leading zero or blank",
    ours: /must be an integer/,
  },
  { reason: "so has a quoted double", ours: /must be a number/ },
  {
    reason: "1e3 and 1.0 are integers, also in quotes, also of 64 bits and as keys",
    theirs: /expected bigint .* (?:1e3|1\.0|1E2) out of range/,
  },
  { reason: "integers beyond 2^53 are exact, quoted or not", theirs: /expected bigint .*: -?[0-9]{16,} out of range/ },
  { reason: "integers beyond 2^53 are exact, quoted or not", text: /[:,[]-?[0-9]{16,}[,}\]]/ },
  { reason: "a float is rounded to a float when it is read, not when it is encoded", text: /[Ff]loat"/ },
  { reason: "1e400 is no number, in a Struct neither", ours: /outside the range of a double/ },
  { reason: "February has 28 days or 29", ours: /is no date of the calendar|is no time of the day/ },
  { reason: "a duration ends after its s and has nine decimals at most", ours: /must be a duration/ },
  { reason: "base64 has its full padding or none, and one alphabet", ours: /must be base64/ },
  { reason: "a surrogate has its pair", ours: /lone surrogate/ },
  { reason: "a field mask holds paths", ours: /must be field paths/ },
  {
    reason: "a field mask's paths may also be in the fields' own spelling",
    theirs: /path names must be lowerCamelCase/,
  },
  {
    reason: "null leaves a member of a oneof unset, also when it is a message",
    theirs: /oneof set multiple times/,
    text: /:null/,
  },
  { reason: "null is no item of a list", ours: /a list may not hold null/ },
  { reason: "the address of an Any's type stays as it came", text: /"@type":"x\/google\.protobuf\.Duration"/ },
  { reason: "the type of an Any is a URL", ours: /is no known type/, text: /"@type":"[^/"]*"/ },
];

// Values that are easy to get wrong, of all kinds.
const tricky = fc.oneof(
  fc.constantFrom(
    '"0x10"',
    '" 1"',
    '"1 "',
    '"+1"',
    '""',
    '"01"',
    '"1e3"',
    "1e3",
    "1.0",
    '"1.0"',
    "1.5",
    "-0",
    '"-0"',
    "1e400",
    "-1",
    "2147483648",
    '"4294967296"',
    "9007199254740993",
    '"9007199254740993"',
    "18446744073709551615",
    "1e-7",
    "1E2",
    "null",
    "true",
    "false",
    '"true"',
    "[]",
    "{}",
    "[null]",
    '[""]',
    "[[]]",
    "[{}]",
    '{"a":1}',
    '{"":""}',
    "3.5e38",
    '"NaN"',
    '"Infinity"',
    '"-Infinity"',
    '"inf"',
    '"COLOR_RED"',
    '"ALIASED_UNO"',
    '"NULL_VALUE"',
    '"color_red"',
    "7",
    '"1"',
    '"AQI="',
    '"AQI"',
    '"-_8"',
    '"+/8="',
    '"-/8"',
    '"A"',
    '"A=="',
    '"é"',
    '"\\u00e9"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"2024-02-29T00:00:00Z"',
    '"2023-02-29T00:00:00Z"',
    '"2024-01-01T00:00:00+25:00"',
    '"2024-01-01T24:00:00Z"',
    '"0001-01-01T00:00:00Z"',
    '"9999-12-31T23:59:59.999999999Z"',
    '"10000-01-01T00:00:00Z"',
    '"2024-01-01T00:00:00.1Z"',
    '"1s"',
    '"-1.5s"',
    '"1.0000000001s"',
    '"1sx"',
    '"315576000001s"',
    '"a.bC,d"',
    '"a_b"',
    '","',
    '"a b"',
    '"A"',
    '{"@type":"type.googleapis.com/foreign.v1.Book"}',
    '{"@type":"foreign.v1.Book"}',
    '{"@type":""}',
    '{"@type":1}',
    '{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"}',
    '{"value":"1s","@type":"x/google.protobuf.Duration"}',
    '{"1":"1","01":"2"}',
    '{"true":"AQ"}',
    '{"a":null}',
    '{"1":null}',
    '{"-1":1}',
    '{"1.0":1}',
    '{"fInt32":1,"f_int32":2}',
  ),
  fc.json({ maxDepth: 2 }),
  fc.double().map((value) => JSON.stringify(value)),
  fc.bigInt().map(String),
);

function explains({ ours, theirs, text: pattern }: Exception, a: Outcome, b: Outcome, text: string): boolean {
  const says = (outcome: Outcome, error: RegExp | undefined) =>
    error === undefined ? "bytes" in outcome : "error" in outcome && error.test(outcome.error);
  return says(a, ours) && says(b, theirs) && (pattern === undefined || pattern.test(text));
}

/** JSON of a message with some of its values replaced, keys doubled or renamed. */
function mutated(desc: DescMessage) {
  const keys = desc.fields.flatMap(({ name, jsonName }) => [name, jsonName]);
  return fc
    .tuple(anyMessage(desc, 1), fc.array(fc.tuple(fc.constantFrom(...keys), tricky), { minLength: 0, maxLength: 3 }))
    .map(([message, added]) => {
      const text = toJsonString(desc, message, { registry: foreign });
      const members = added.map(([key, value]) => `${JSON.stringify(key)}:${value}`);
      const inside = [...(text === "{}" ? [] : [text.slice(1, -1)]), ...members].join(",");
      return `{${inside}}`;
    });
}

test("the address of an Any's type stays as it came, which protobuf-es writes again", () => {
  const text = '{"any":{"value":"1s","@type":"x/google.protobuf.Duration"}}';
  const [a, b] = [ours, theirs].map((read) => JSON.stringify(read(foreignMessage("Everything"), text)));
  expect(a).toContain(Buffer.from("x/google.protobuf.Duration").toString("hex"));
  expect(a).not.toContain(Buffer.from("type.googleapis.com").toString("hex"));
  expect(b).toContain(Buffer.from("type.googleapis.com").toString("hex"));
});

for (const name of ["Everything", "Clause", "Editions", "Legacy"]) {
  test(`our reader and protobuf-es's agree on JSON of ${name}, right or wrong`, () => {
    const desc = foreignMessage(name);
    fc.assert(
      fc.property(mutated(desc), (text) => {
        const [a, b] = [ours(desc, text), theirs(desc, text)];
        if ("bytes" in a && "bytes" in b ? a.bytes === b.bytes : "error" in a && "error" in b) return;
        if (exceptions.some((one) => explains(one, a, b, text))) return;
        expect({ ours: a, theirs: b }, text).toBeUndefined();
      }),
      { numRuns: cases(800) },
    );
  });
}
