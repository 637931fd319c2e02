import { create, createRegistry, fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SearchEntitiesResponseSchema } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { SearchEventsResponseSchema } from "#gen/belfry/events/v1/query_service_pb.ts";
import { paced } from "../../src/event-loop.ts";
import { jsonWriter } from "../../src/transcoding/json/write-json.ts";
import { binaryOf, longFields, messageJson, textInPortions } from "../../src/wire/write-message.ts";

const occurrences = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ body: `b ${i} ü "`, lastSeen: BigInt(i) }));
const answer = (...counts: number[]) =>
  create(SearchEventsResponseSchema, {
    results: counts.map((count, i) => ({ id: `e${i}`, name: i % 2 === 0 ? "" : "n", occurrences: occurrences(count) })),
    pageInfo: { count: 3n },
  });
const writer = jsonWriter(createRegistry(SearchEventsResponseSchema));
const schema = SearchEventsResponseSchema;

test.each([
  ["no list", answer()],
  ["a list that is short", answer(1, 2)],
  ["a list that is long", answer(...Array(40).fill(1))],
  ["a long list within a short one", answer(1, 100, 0, 17)],
  ["long lists within a long one", answer(...Array(20).fill(20), 1, ...Array(20).fill(1))],
])("an answer with %s is the same in portions", async (_what, message) => {
  const pace = paced(() => {});
  const values = message as unknown as Record<string, unknown>;
  expect(fromBinary(schema, await binaryOf(schema, message, pace))).toEqual(
    fromBinary(schema, toBinary(schema, message)),
  );
  expect(await textInPortions(writer, schema, values, pace)).toBe(JSON.stringify(writer.message(schema)(values)));
  expect(JSON.parse(await messageJson(schema, message, pace))).toEqual(toJson(schema, message));
});

test.each([0, 3, 200])("so is one that holds its %i entities in a message of its own", async (count) => {
  const desc = SearchEntitiesResponseSchema;
  const entities = Array.from({ length: count }, (_, i) => ({ id: `n${i}`, name: "ü" }));
  const message = create(desc, { entities: { entities }, pageInfo: { count: BigInt(count) } });
  const pace = paced(() => {});
  const values = message as unknown as Record<string, unknown>;
  expect(longFields(desc, values)).toHaveLength(count > 16 ? 1 : 0);
  expect(fromBinary(desc, await binaryOf(desc, message, pace))).toEqual(message);
  expect(JSON.parse(await messageJson(desc, message, pace))).toEqual(toJson(desc, message));
  const own = jsonWriter(createRegistry(desc));
  expect(await textInPortions(own, desc, values, pace)).toBe(JSON.stringify(own.message(desc)(values)));
});

test("what is written at once is bounded, and the work ends when the call does", async () => {
  expect(longFields(schema, answer(1, 2) as never)).toEqual([]);
  expect(longFields(schema, answer(1, 17) as never)).toHaveLength(1);
  const left = new Error("the client went away");
  const large = answer(...Array(5000).fill(10));
  const pace = paced(() => {
    throw left;
  });
  await expect(binaryOf(schema, large, pace)).rejects.toBe(left);
  const other = paced(() => {
    throw left;
  });
  await expect(textInPortions(writer, schema, large as never, other)).rejects.toBe(left);
});

test("others are served while a large answer is written", async () => {
  const large = answer(...Array(5000).fill(10));
  let turns = 0;
  const turn = setInterval(() => (turns += 1), 0);
  await binaryOf(
    schema,
    large,
    paced(() => {}),
  );
  await textInPortions(
    writer,
    schema,
    large as never,
    paced(() => {}),
  );
  clearInterval(turn);
  expect(turns).toBeGreaterThan(2);
});
