import { create, fromBinary, type MessageInitShape, toBinary, toJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ExportLogsServiceRequestSchema } from "#gen/opentelemetry/proto/collector/logs/v1/logs_service_pb.ts";
import { ExportMetricsServiceRequestSchema } from "#gen/opentelemetry/proto/collector/metrics/v1/metrics_service_pb.ts";
import { protobufOfJson } from "../../../src/integrations/opentelemetry/protobuf-of-json.ts";
import { cases } from "../../support/cases.ts";

const numRuns = cases(400);
const bytesMax = 16 * 2 ** 20;
const call = { reserve: () => {}, pace: () => undefined };
const metricsOf = (json: string, max = bytesMax) =>
  protobufOfJson(Buffer.from(json), ExportMetricsServiceRequestSchema, max, call);

const texts = fc.string({ unit: "grapheme", maxLength: 200 });
const longs = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const counts = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
// JSON.stringify writes -0 as 0.
const doubles = fc.double().map((value) => (Object.is(value, -0) ? 0 : value));
const { anyValue, attributes } = fc.letrec((tie) => ({
  anyValue: fc.record({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.record({ case: fc.constant("stringValue"), value: texts }),
      fc.record({ case: fc.constant("boolValue"), value: fc.boolean() }),
      fc.record({ case: fc.constant("intValue"), value: longs }),
      fc.record({ case: fc.constant("doubleValue"), value: doubles }),
      fc.record({ case: fc.constant("bytesValue"), value: fc.uint8Array({ maxLength: 300 }) }),
      fc.record({
        case: fc.constant("arrayValue"),
        value: fc.record({ values: fc.array(tie("anyValue"), { maxLength: 4 }) }),
      }),
      fc.record({ case: fc.constant("kvlistValue"), value: fc.record({ values: tie("attributes") }) }),
    ),
  }),
  attributes: fc.array(fc.record({ key: texts, value: tie("anyValue") }), { maxLength: 4 }),
}));
const histogram = fc.record({
  attributes,
  timeUnixNano: counts,
  count: counts,
  flags: fc.nat(),
  bucketCounts: fc.array(counts, { maxLength: 40 }),
  explicitBounds: fc.array(doubles, { maxLength: 40 }),
  sum: fc.option(doubles, { nil: undefined }),
});
const exponential = fc.record({
  scale: fc.integer(),
  positive: fc.record({ offset: fc.integer(), bucketCounts: fc.array(counts, { maxLength: 20 }) }),
});
const metrics = fc.record({
  resourceMetrics: fc.array(
    fc.record({
      resource: fc.record({ attributes }),
      scopeMetrics: fc.array(
        fc.record({
          scope: fc.record({ name: texts, attributes }),
          metrics: fc.array(
            fc.record({
              name: texts,
              unit: texts,
              data: fc.oneof(
                fc.record({
                  case: fc.constant("histogram"),
                  value: fc.record({
                    aggregationTemporality: fc.integer({ min: -3, max: 9 }),
                    dataPoints: fc.array(histogram, { maxLength: 3 }),
                  }),
                }),
                fc.record({
                  case: fc.constant("exponentialHistogram"),
                  value: fc.record({ dataPoints: fc.array(exponential, { maxLength: 3 }) }),
                }),
                fc.record({ case: fc.constant("sum"), value: fc.record({ isMonotonic: fc.boolean() }) }),
              ),
            }),
            { maxLength: 3 },
          ),
        }),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 2 },
  ),
});
const logs = fc.record({
  resourceLogs: fc.array(
    fc.record({
      scopeLogs: fc.array(
        fc.record({
          logRecords: fc.array(
            fc.record({
              timeUnixNano: counts,
              body: anyValue,
              attributes,
              flags: fc.nat(),
              severityNumber: fc.integer(),
              traceId: fc.uint8Array({ maxLength: 16 }),
              eventName: texts,
            }),
            { maxLength: 3 },
          ),
        }),
        { maxLength: 2 },
      ),
    }),
    { maxLength: 2 },
  ),
});

describe("JSON becomes the message that its Protobuf is", () => {
  test.each([
    ["metrics", ExportMetricsServiceRequestSchema, metrics],
    ["logs", ExportLogsServiceRequestSchema, logs],
  ] as const)("%s", async (_, schema, inits) => {
    await fc.assert(
      fc.asyncProperty(inits as fc.Arbitrary<unknown>, fc.nat({ max: 2 }), async (init, prettySpaces) => {
        const message = create(schema, init as MessageInitShape<typeof schema>);
        const json = toJsonString(schema, message, { prettySpaces, enumAsInteger: true });
        const written = await protobufOfJson(Buffer.from(json), schema, bytesMax, call);
        // Written again it has the one form that messages have: a list of doubles may hold NaN.
        expect(Buffer.from(toBinary(schema, fromBinary(schema, written)))).toEqual(
          Buffer.from(toBinary(schema, fromBinary(schema, toBinary(schema, message)))),
        );
      }),
      { numRuns },
    );
  });
});

const lead = '{"resourceMetrics":[{"scopeMetrics":[{"metrics":[';
describe("what is no message is refused with its place", () => {
  test.each([
    ["no object", "[]", /expected an object, found a list \(byte 0\)/],
    [
      "a member twice",
      '{"resourceMetrics":[],"resourceMetrics":[]}',
      /^resourceMetrics: "resourceMetrics" occurs twice \(byte 22\)/,
    ],
    ["two of which one may be", `${lead}{"gauge":{},"sum":{}}]}]}]}`, /only one of "gauge" and "sum" may be set/],
    ["null in a list", '{"resourceMetrics":[null]}', /resourceMetrics\[0\]: a list may not hold null/],
    [
      "what lies far behind",
      `{"x":"${"x".repeat(300_000)}","resourceMetrics":7}`,
      /^expected a list, found 7 \(byte 300026\)/,
    ],
    ["another type", '{"resourceMetrics":7}', /resourceMetrics: expected a list, found 7 \(byte 19\)/],
    ["a comma too many", '{"resourceMetrics":[{},]}', /expected an object/],
    ["text behind it", "{} 1", /text follows the value/],
    ["an end that is missing", '{"resourceMetrics":[', /the text ends where an object is expected/],
    ["depth", `{"x":${"[".repeat(200)}`, /nested deeper than 100 levels/],
    ["a text that is not closed", `${lead}{"name":"m`, /a string is not closed/],
  ])("%s", async (_, json, message) => {
    await expect(metricsOf(json)).rejects.toMatchObject({ code: 3, rawMessage: expect.stringMatching(message) });
  });
});

test("null and unknown members are passed over", async () => {
  const metric = '{"name":"m","x":{"a":[1,{}],"b":null},"gauge":null,"unit":"s"}';
  const { resourceMetrics } = fromBinary(
    ExportMetricsServiceRequestSchema,
    await metricsOf(
      `{"y":[[],"z",true],"resourceMetrics":[{"resource":null,"scopeMetrics":[{"metrics":[${metric}]}]}]}`,
    ),
  );
  expect(resourceMetrics[0]?.scopeMetrics[0]?.metrics[0]).toMatchObject({
    name: "m",
    unit: "s",
    data: { case: undefined },
  });
});

test("what becomes larger than a message may be is refused", async () => {
  const bounds = Array<number>(400).fill(0).join();
  const metric = `{"name":"${"m".repeat(3900)}","histogram":{"dataPoints":[{"explicitBounds":[${bounds}]}]}}`;
  const rawMessage = "the message is larger than 4000 bytes";
  await expect(metricsOf(`${lead}${metric}]}]}]}`, 4000)).rejects.toMatchObject({ code: 8, rawMessage });
});

test("more values than a request may have are refused", async () => {
  const rawMessage = "a request may have at most 500 fields; send fewer at once";
  const json = `{"x":[${Array<number>(600).fill(0).join()}]}`;
  await expect(metricsOf(json, 4000)).rejects.toMatchObject({ code: 8, rawMessage });
});
