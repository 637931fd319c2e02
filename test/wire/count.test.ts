import { create, createRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ClauseSchema } from "#gen/belfry/clause/v1/clause_pb.ts";
import { UpdateEntityFieldRequestSchema } from "#gen/belfry/dictionary/v1/entity_field_service_pb.ts";
import { SearchEventsRequestSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService, PutEventsRequestSchema } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { messageReader } from "../../src/protocols/message-reader.ts";
import { jsonReader } from "../../src/transcoding/json/read-json.ts";
import { next, scanOf } from "../../src/transcoding/json/scan.ts";
import { jsonWriter } from "../../src/transcoding/json/write-json.ts";
import { countBinary } from "../../src/wire/count-binary.ts";
import { cases } from "../support/cases.ts";
import { turnMsMax } from "../support/loop-turns.ts";

const MiB = 1024 * 1024;
const limits = { itemsMax: 50, memoryBytesMax: 128 * MiB };
const reader = jsonReader({ registry: createRegistry() });

/** What is counted of a message that is read. */
function json(desc: DescMessage, text: string): number {
  const s = scanOf(text, { limits });
  next(s);
  reader.message(desc)(s);
  return s.tally.bytes;
}

const times = (count: number, text: string) => Array(count).fill(text).join(",");
const bytesOf = (...parts: (number[] | Uint8Array)[]) => Buffer.concat(parts.map((part): Buffer => Buffer.from(part)));
/** A field of a number below 16 that holds bytes. */
const held = (number: number, bytes: Uint8Array): Buffer => bytesOf([number * 8 + 2], varint(bytes.byteLength), bytes);
const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
const many = (count: number, part: number[] | Uint8Array): Buffer =>
  Buffer.alloc(count * part.length, Uint8Array.from(part));

/** A clause of `depth` clauses within each other, as text and as bytes. */
const nested = (depth: number): [string, Buffer] => {
  let text = "{}";
  let bytes: Buffer = Buffer.alloc(0);
  for (let i = 1; i < depth; i += 1) {
    text = `{"not":{"clause":${text}}}`;
    bytes = held(3, held(1, bytes));
  }
  return [text, bytes];
};

const struct = (count: number) => held(2, held(4, many(count, held(1, Buffer.alloc(0)))));

describe("what a request holds too much of is refused before it is made, in JSON and in binary", () => {
  test.each<[string, DescMessage, string, Buffer, object]>([
    [
      "items of a batch",
      PutEventsRequestSchema,
      `{"events":[${times(51, "{}")}]}`,
      many(51, [18, 0]),
      {
        code: 8,
        rawMessage: "events: a request holds at most 50 items; split it",
      },
    ],
    [
      "elements of a list",
      SearchEventsRequestSchema,
      `{"query":{"severities":[${times(101, "99")}]}}`,
      held(1, held(3, many(101, [99]))),
      { code: 3, rawMessage: "query.severities: must have at most 100 items" },
    ],
    [
      "entries of a map",
      PutEventsRequestSchema,
      `{"events":[{"dimensions":{${Array.from({ length: 1025 }, (_, i) => `"k${i}":"v"`)}}}]}`,
      held(2, many(1025, held(3, Buffer.alloc(0)))),
      { code: 3, rawMessage: "events[0].dimensions: must have at most 1024 entries" },
    ],
    [
      "clauses",
      ClauseSchema,
      `{"and":{"clauses":[${times(1000, "{}")}]}}`,
      held(1, many(1000, [10, 0])),
      { code: 3, rawMessage: "and.clauses[999]: must not be more than the 1000th clause" },
    ],
    [
      "clauses within each other",
      ClauseSchema,
      ...nested(33),
      {
        code: 3,
        rawMessage: expect.stringMatching(/^not(\.clause\.not){31}\.clause: must not lie deeper than 32 clauses$/),
      },
    ],
    [
      "values of a Struct",
      PutEventsRequestSchema,
      `{"events":[{},{"metadataFields":{"a":[${times(131_072, "0")}]}}]}`,
      bytesOf([18, 0], struct(131_073)),
      { code: 3, rawMessage: "events[1].metadataFields: must hold at most 131072 values" },
    ],
    [
      "paths of a field mask",
      UpdateEntityFieldRequestSchema,
      `{"updateMask":"${times(101, "a")}"}`,
      held(2, many(101, held(1, Buffer.from("a")))),
      { code: 3, rawMessage: "updateMask: must hold at most 100 paths" },
    ],
    [
      "memory",
      PutEventsRequestSchema,
      `{"events":[{"body":"${"x".repeat(129 * MiB)}"}]}`,
      held(2, held(7, Buffer.alloc(129 * MiB))),
      { code: 8, rawMessage: `the request would take more than ${128 * MiB} bytes of memory; split it` },
    ],
  ])("%s", (_name, desc, text, bytes, error) => {
    expect(() => json(desc, text)).toThrow(expect.objectContaining(error));
    expect(() => countBinary(desc, bytes, limits)).toThrow(expect.objectContaining(error));
  });

  test("as much as is allowed is not", () => {
    expect(json(PutEventsRequestSchema, `{"events":[${times(50, "{}")}]}`)).toBeGreaterThan(0);
    expect(countBinary(PutEventsRequestSchema, many(50, [18, 0]), limits)).toBeGreaterThan(0);
    const [text, bytes] = nested(32);
    expect(json(ClauseSchema, text)).toBeGreaterThan(0);
    expect(countBinary(ClauseSchema, bytes, limits)).toBeGreaterThan(0);
    expect(countBinary(PutEventsRequestSchema, struct(131_072), limits)).toBeGreaterThan(0);
  });
});

describe("bytes that the decoder would take, and of which more would be made than is counted, are refused", () => {
  test.each([
    ["a message twice, which is merged", held(2, bytesOf(held(4, Buffer.alloc(0)), held(4, Buffer.alloc(0)))), /twice/],
    ["a field of another wire type", Buffer.from([16, 0]), /wire type/],
    ["a key of a map of another wire type", held(2, held(3, Buffer.from([8, 1, 97]))), /wire type/],
    ["a value of a map of another wire type", held(2, held(3, Buffer.from([16, 1]))), /wire type/],
    ["a message that goes on behind its end", Buffer.from([18, 1, 18, 1, 0]), /ends early/],
    ["a group", Buffer.from([19, 20]), /group|wire type/],
    ["a length that is none", Buffer.from([18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), /too long/],
  ])("%s", (_name, bytes, message) => {
    expect(() => countBinary(PutEventsRequestSchema, bytes, limits)).toThrow(message);
  });

  test("whatever the bytes: what passes has no more items and elements than it may, and is decoded", () => {
    const byte = fc.integer({ min: 0, max: 255 });
    const good = toBinary(
      PutEventsRequestSchema,
      create(PutEventsRequestSchema, {
        events: [{ name: "a", dimensions: { a: "b" }, metadataFields: { a: [1, { b: null }] }, timestamp: 1n }, {}],
      }),
    );
    const mutated = fc.array(fc.tuple(fc.nat(good.length - 1), byte), { minLength: 1, maxLength: 4 }).map((changes) => {
      const bytes = Uint8Array.from(good);
      for (const [at, value] of changes) bytes[at] = value;
      return bytes;
    });
    fc.assert(
      fc.property(fc.oneof(mutated, fc.uint8Array({ maxLength: 40 })), (bytes) => {
        try {
          countBinary(PutEventsRequestSchema, bytes, { itemsMax: 2, memoryBytesMax: MiB });
        } catch {
          return;
        }
        let events: unknown[] = [];
        try {
          ({ events } = fromBinary(PutEventsRequestSchema, bytes));
        } catch (error) {
          // What the decoder alone knows: text that is no UTF-8, field 0.
          expect(String(error)).toMatch(/UTF-8|illegal tag|encoded data/i);
        }
        expect(events.length).toBeLessThanOrEqual(2);
      }),
      { numRuns: cases(3000) },
    );
  });
});

test("a text and the bytes of the same message count about the same", () => {
  const message = create(PutEventsRequestSchema, {
    events: Array.from({ length: 50 }, (_, i) => ({
      name: `event ${i}`,
      timestamp: 1_700_000_000_000n,
      dimensions: { host: `h${i}`, "a b": "c" },
      metadataFields: { a: [1, "two", { three: null }], b: true },
    })),
  });
  const write = jsonWriter({ getMessage: () => undefined } as never).message(PutEventsRequestSchema);
  const text = JSON.stringify(write(message as never));
  const inText = json(PutEventsRequestSchema, text);
  const inBytes = countBinary(PutEventsRequestSchema, toBinary(PutEventsRequestSchema, message), limits);
  expect(inText / inBytes).toBeGreaterThan(0.5);
  expect(inText / inBytes).toBeLessThan(2);
});

describe("what no field has is passed over in JSON, and nothing is kept of it", () => {
  const unknown = `{${Array.from({ length: 400_000 }, (_, i) => `"${i.toString(36)}":0`).join(",")}}`;
  async function read(text: string, pace: () => undefined) {
    const message = messageReader(DataReceiverService.method.putEvents, { bytesMax: 16 * MiB, itemsMax: 50 });
    return await message.read(Buffer.from(text), false, { reserve: () => undefined, pace });
  }

  test("others get their turn while a long one is", async () => {
    let turns = 0;
    await read(`{"unknown":${unknown},"events":[]}`, () => void ++turns);
    expect(turns).toBeGreaterThan(30);
  });

  test("wherever it lies it takes the processor no longer than a turn may", async () => {
    const begun = process.threadCpuUsage();
    await read(`{"events":[{"name":"a","unknown":${unknown}}]}`, () => undefined);
    const { user, system } = process.threadCpuUsage(begun);
    expect((user + system) / 1000).toBeLessThan(turnMsMax);
  });

  test("its form is checked", async () => {
    for (const broken of ['{"a":1', "[1,]", '{"a" 1}', '"\\x"', "01", "nul"])
      await expect(read(`{"unknown":${broken},"events":[]}`, () => undefined)).rejects.toMatchObject({ code: 3 });
  });
});
