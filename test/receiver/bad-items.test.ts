import { create, type DescMessage, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { EventSchema, MetricSchema, ModelSchema, TaggedMetricSchema } from "#gen/belfry/receiver/v1/receiver_pb.ts";
import {
  DataReceiverService,
  PutEventsRequestSchema,
  PutMetricsRequestSchema,
  PutModelsRequestSchema,
} from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const nowMs = Date.now();
const at = (ms: number) => BigInt(ms);
const many = <T>(count: number, of: (i: number) => T) => Array.from({ length: count }, (_, i) => of(i));
const dimensions = (count: number) => Object.fromEntries(many(count, (i) => [`d${i}`, "x"]));
const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) });

type Bad<T> = readonly [what: string, item: T, rule: string];

const common = (good: object): Bad<object>[] => [
  ["65 dimensions", { ...good, dimensions: dimensions(65) }, "dimensions: must have at most 64 entries"],
  ["1,024 dimensions", { ...good, dimensions: dimensions(1024) }, "dimensions: must have at most 64 entries"],
  ["no dimension", { ...good, dimensions: {} }, "dimensions: must have at least 1 entry"],
  ["an empty value", { ...good, dimensions: { a: "" } }, 'dimensions["a"]: must not be empty'],
  ["a long value", { ...good, dimensions: { a: "x".repeat(1025) } }, 'dimensions["a"]: must be at most 1024 char'],
  ["no time", { ...good, timestamp: undefined }, "timestamp: is required"],
  ["a time of 1970", { ...good, timestamp: 1000n }, "looks like seconds"],
  ["a time in microseconds", { ...good, timestamp: at(nowMs * 1000) }, "looks like microseconds"],
  ["a time in nanoseconds", { ...good, timestamp: at(nowMs) * 1_000_000n }, "looks like nanoseconds"],
  ["a time to come", { ...good, timestamp: at(nowMs + 86_400_000) }, "ahead"],
];

const metadata = (good: object): Bad<object>[] => [
  ["metadata of 64 KiB and more", { ...good, metadataFields: { a: "x".repeat(65_536) } }, "65536 bytes as JSON"],
  [
    "metadata of many values",
    { ...good, metadataFields: { a: many(32_768, () => 0) } },
    "metadataFields: must hold at most 32768 values",
  ],
  [
    "metadata of three times as many",
    { ...good, metadataFields: { a: many(100_000, () => true) } },
    "metadataFields: must hold at most 32768 values",
  ],
  ["deep metadata", { ...good, metadataFields: nested(31) }, "must not lie deeper than 30 levels"],
  ["NUL in metadata", { ...good, metadataFields: { a: "\0" } }, 'metadataFields["a"]: must not contain NUL'],
  ["NUL in a lot of metadata", { ...good, metadataFields: { a: many(7000, () => "\0") } }, "has 6990 more mistakes"],
  ["a long key", { ...good, metadataFields: { ["k".repeat(1025)]: 1 } }, "must have keys of at most 1024 bytes"],
];

const event = { timestamp: at(nowMs), name: "link down", dimensions: { source: "r1" } };
const events: Bad<object>[] = [
  ...common(event),
  ...metadata(event),
  ["no name", { ...event, name: "" }, "name: must not be empty"],
  ["a long name", { ...event, name: "x".repeat(256) }, "name: must be at most 255 characters"],
  ["a line break in its name", { ...event, name: "a\nb" }, "name: must not contain control characters"],
  ["a long summary", { ...event, summary: "x".repeat(129) }, "summary: must be at most 128 characters"],
  ["a long body", { ...event, body: "x".repeat(65_537) }, "body: must be at most 65536 bytes"],
  ["a severity that is none", { ...event, severity: 99 }, "severity: must be one of"],
  ["a status that is none", { ...event, status: -1 }, "status: must be one of"],
];

const model = { timestamp: at(nowMs), dimensions: { source: "r1" } };
const models: Bad<object>[] = [
  ...common(model),
  ...metadata(model),
  ["a name that is a number", { ...model, metadataFields: { name: 5 } }, "metadataFields.name: must be a string"],
  ...["true", 1, {}].map(
    (deleted): Bad<object> => [
      `a deletion that is ${JSON.stringify(deleted)}`,
      { ...model, metadataFields: { _svc_deleted_entity: deleted } },
      "metadataFields._svc_deleted_entity: must be true or false",
    ],
  ),
  ...[5, true, { source: "a" }, ["source=a", 5]].map(
    (parent): Bad<object> => [
      `a parent that is ${JSON.stringify(parent)}`,
      { ...model, metadataFields: { parent } },
      "metadataFields.parent: must be a string or a list of strings",
    ],
  ),
];

const point = { timestamp: at(nowMs), metric: "if.in", value: 1, dimensions: { source: "r1" } };
const points: Bad<object>[] = [
  ...common(point),
  ...metadata(point),
  ["no value", { ...point, value: undefined }, "value: is required"],
  ["a value that is none", { ...point, value: Number.NaN }, "value: must be finite"],
  ["no metric", { ...point, metric: "" }, "metric: must not be empty"],
];
const tagged: Bad<object>[] = common(point).map(([what, item, rule]) => {
  const { dimensions: tags, ...rest } = item as { dimensions: object };
  return [what, { ...rest, tags }, rule.replace("dimensions", "tags")];
});

const count = 1000;

/** A thousand good items, with the bad ones at places among them. */
function mixed<Desc extends DescMessage>(schema: Desc, good: object, bad: readonly Bad<object>[]) {
  const items = many(count, (i) => ({ ...good, timestamp: at(nowMs - i) }));
  for (const [i, [, item]] of bad.entries()) items.splice(i * 20, 0, item as typeof good & { timestamp: bigint });
  return items.map((item) => create(schema, item as unknown as MessageInitShape<Desc>));
}

/** That all bad items failed, in their order and each for its reason, and the good ones did not. */
function expectAlone(
  { succeeded, failed }: { succeeded: number; failed: number },
  errors: readonly { error: string }[],
  bad: readonly Bad<object>[],
) {
  expect(errors.map(({ error }) => error)).toEqual(bad.map(([, , rule]) => expect.stringContaining(rule)));
  expect([succeeded, failed]).toEqual([count, bad.length]);
}

const lists = {
  events: mixed(EventSchema, event, events),
  models: mixed(ModelSchema, model, models),
  metrics: mixed(MetricSchema, point, points),
  tagged: mixed(
    TaggedMetricSchema,
    { timestamp: at(nowMs), metric: "if.out", value: 2, tags: { source: "r1" } },
    tagged,
  ),
};
const requests = {
  events: create(PutEventsRequestSchema, { detailedResponse: true, events: lists.events }),
  models: create(PutModelsRequestSchema, { detailedResponse: true, models: lists.models }),
  metrics: create(PutMetricsRequestSchema, { detailedResponse: true, metrics: lists.metrics }),
  tagged: create(PutMetricsRequestSchema, { detailedResponse: true, taggedMetrics: lists.tagged }),
};

// One that sends bytes, one that sends JSON.
describe.each(["grpc", "connect-json"] as const)(
  "over %s, of a thousand good items and every kind of bad one the good are stored",
  (protocol) => {
    async function receiver() {
      const { headers } = await testTenant(server.database.sql);
      return createClient(DataReceiverService, transport(server.target, protocol, headers));
    }

    test("events", async () => {
      const answer = await (await receiver()).putEvents(requests.events);
      expectAlone(answer, answer.failedEvents, events);
    });

    test("models", async () => {
      const answer = await (await receiver()).putModels(requests.models);
      expectAlone(answer, answer.failedModels, models);
    });

    test("points", async () => {
      const answer = await (await receiver()).putMetrics(requests.metrics);
      expectAlone(answer, answer.failedMetrics, points);
      const withTags = await (await receiver()).putMetrics(requests.tagged);
      expectAlone(withTags, withTags.failedTaggedMetrics, tagged);
    });
  },
);

describe("in a stream, of a thousand good items and every kind of bad one the good are stored", () => {
  async function receiver() {
    const { headers } = await testTenant(server.database.sql);
    return createClient(DataReceiverService, transport(server.target, "grpc", headers));
  }
  async function* stream<T, R>(items: readonly T[], wrap: (value: T) => R) {
    for (const value of items) yield wrap(value);
  }

  test("events", async () => {
    const wrap = (value: (typeof lists.events)[number]) => ({ event: { case: "canonical" as const, value } });
    const answer = await (await receiver()).putEvent(stream(lists.events, wrap));
    expectAlone(answer, answer.failedEvents, events);
  });

  test("models", async () => {
    const wrap = (value: (typeof lists.models)[number]) => ({ model: { case: "canonical" as const, value } });
    const answer = await (await receiver()).putModel(stream(lists.models, wrap));
    expectAlone(answer, answer.failedModels, models);
  });

  test("points", async () => {
    const wrap = (value: (typeof lists.metrics)[number]) => ({ metric: { case: "canonical" as const, value } });
    const answer = await (await receiver()).putMetric(stream(lists.metrics, wrap));
    expectAlone(answer, answer.failedMetrics, points);
    const wrapTagged = (value: (typeof lists.tagged)[number]) => ({ metric: { case: "tagged" as const, value } });
    const withTags = await (await receiver()).putMetric(stream(lists.tagged, wrapTagged));
    expectAlone(withTags, withTags.failedTaggedMetrics, tagged);
  });
});

/** Answers show failed items as they came, and the OpenAPI document has no form for these two. */
const isShowable = ([, item]: Bad<object>) => {
  const { severity, status, value } = item as { severity?: number; status?: number; value?: number };
  return severity === undefined && status === undefined && !Number.isNaN(value);
};

describe("over /v1, of a thousand good items and every kind of bad one the good are stored", () => {
  test.each([
    ["events", "failedEvents", PutEventsRequestSchema, EventSchema, event, events],
    ["models", "failedModels", PutModelsRequestSchema, ModelSchema, model, models],
    ["metrics", "failedMetrics", PutMetricsRequestSchema, MetricSchema, point, points],
  ] as const)("%s", async (list, failures, request, schema, good, bad) => {
    const { headers } = await testTenant(server.database.sql);
    const shown = bad.filter(isShowable);
    const items = { detailedResponse: true, [list]: mixed<DescMessage>(schema, good, shown) };
    const body = toJson<DescMessage>(request, create<DescMessage>(request, items)) as object;
    const answer = await v1(server.url, headers)("POST", `/v1/data-receiver/${list}`, body);
    expect(answer.status, JSON.stringify(answer.body).slice(0, 500)).toBe(200);
    expectAlone(answer.body, answer.body[failures], shown);
  });
});

test("an item that holds more than 16 times its bound refuses its request, before anything is made of it", async () => {
  const { headers } = await testTenant(server.database.sql);
  const call = v1(server.url, headers);
  const text = { ...event, timestamp: String(nowMs) };
  const body = { events: [text, { ...text, dimensions: dimensions(1025) }] };
  const answer = await call("POST", "/v1/data-receiver/events", body);
  expect(answer).toMatchObject({ status: 400, body: { code: 3 } });
  expect(answer.body.message).toBe("events[1].dimensions: must have at most 1024 entries");
  const search = await call("POST", "/v1/events:search", { query: { clause: { withIds: { ids: [event.name] } } } });
  expect(search.body.results ?? []).toEqual([]);
});
