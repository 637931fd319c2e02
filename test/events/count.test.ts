import { createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ActiveCriteria, EventQueryService } from "#gen/belfry/events/v1/query_service_pb.ts";
import { DataReceiverService } from "#gen/belfry/receiver/v1/receiver_service_pb.ts";
import { transport } from "../support/clients.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const tenant = await testTenant(server.database.sql);
const grpc = transport(server.target, "grpc", tenant.headers);
const receiver = createClient(DataReceiverService, grpc);
const events = createClient(EventQueryService, grpc);

const [OPEN, CLOSED] = [1, 3];
const [WARNING, ERROR, CRITICAL] = [3, 4, 5];
/** A whole minute, so that buckets of a minute begin with it. */
const base = (BigInt(Date.now()) / 60_000n - 60n) * 60_000n;
const at = (seconds: number) => base + BigInt(seconds) * 1000n;

const [web, db] = [{ source: "web-1" }, { source: "db-1" }];
const sent = [
  // One occurrence of three instances, of two severities, closed in the second minute.
  {
    name: "slow",
    dimensions: web,
    timestamp: at(0),
    severity: WARNING,
    status: OPEN,
    metadataFields: { tags: ["a", "b"] },
  },
  { name: "slow", dimensions: web, timestamp: at(30), severity: ERROR, status: OPEN },
  { name: "slow", dimensions: web, timestamp: at(70), severity: ERROR, status: CLOSED },
  // Its second occurrence.
  {
    name: "slow",
    dimensions: web,
    timestamp: at(200),
    severity: ERROR,
    status: OPEN,
    metadataFields: { tags: ["b", 7] },
  },
  {
    name: "down",
    dimensions: db,
    timestamp: at(65),
    severity: CRITICAL,
    status: OPEN,
    type: "net",
    acknowledged: true,
  },
];
for (const event of sent) await receiver.putEvents({ events: [event as never] });

type Counts = { [field: string]: { values: { value?: unknown; count: string }[] } };
type Json = (path: string, body: object) => Promise<never>;
/** Calls /v1; an answer that is an error is thrown. */
const caller = (headers: Record<string, string>): Json => {
  const call = v1(server.url, headers);
  return async (path, body) => {
    const answer = await call("POST", path, body);
    if (answer.status !== 200) throw answer.body;
    return answer.body as never;
  };
};
const json = caller(tenant.headers);
const count = async (body: object) => ((await json("/v1/events:count", body)) as { results: Counts }).results;
const pairs = (counts: Counts[string] | undefined) => counts?.values.map(({ value, count }) => [value, count]);

describe("counts", () => {
  test("one total without fields, under the key total, its value 0", async () => {
    expect(await count({})).toEqual({ total: { values: [{ value: 0, count: "3" }] } });
    expect(await count({ query: { severities: ["SEVERITY_DEBUG"] } })).toEqual({
      total: { values: [{ value: 0, count: "0" }] },
    });
  });

  test("an occurrence once, by its state: enumerations by number, in the order of values", async () => {
    const counts = await count({ fields: [{ field: "severity" }, { field: "status" }, { field: "name" }] });
    expect(counts).toEqual({
      severity: {
        values: [
          { value: ERROR, count: "2" },
          { value: CRITICAL, count: "1" },
        ],
      },
      status: {
        values: [
          { value: OPEN, count: "2" },
          { value: CLOSED, count: "1" },
        ],
      },
      name: {
        values: [
          { value: "down", count: "1" },
          { value: "slow", count: "2" },
        ],
      },
    });
  });

  test("each element of a list, and no missing value", async () => {
    const counts = await count({ fields: [{ field: "metadataFields.tags" }, { field: "endTime" }] });
    expect(pairs(counts["metadataFields.tags"])).toEqual([
      [7, "1"],
      ["a", "1"],
      ["b", "2"],
    ]);
    expect(pairs(counts.endTime)).toEqual([[Number(at(70)), "1"]]);
  });

  test("ids, times and booleans as texts and numbers", async () => {
    const { results } = await events.searchEvents({ query: { timeRange: { start: at(60), end: at(66) } } });
    const counts = await count({
      query: { clause: { filter: { field: "name", operation: "OP_EQUALS", value: "down" } } },
      fields: [{ field: "id" }, { field: "entity" }, { field: "acknowledged" }, { field: "lastSeen" }],
    });
    expect(pairs(counts.id)).toEqual([[results[0]?.id, "1"]]);
    expect(pairs(counts.entity)).toEqual([[results[0]?.entity, "1"]]);
    expect(pairs(counts.acknowledged)).toEqual([["true", "1"]]);
    expect(pairs(counts.lastSeen)).toEqual([[Number(at(65)), "1"]]);
  });

  test("occurrences last seen in the time range, or alive in it", async () => {
    const timeRange = { start: String(at(71)), end: String(at(199)) };
    expect(pairs((await count({ query: { timeRange } })).total)).toEqual([[0, "0"]]);
    expect(pairs((await count({ query: { timeRange, activeCriteria: "BY_OVERLAP" } })).total)).toEqual([[0, "1"]]);
  });

  test("instances in the time range, with the severity and status of their own", async () => {
    const query = { timeRange: { start: String(at(0)), end: String(at(70)) } };
    const counts = await count({ query, countInstances: true, fields: [{ field: "severity" }, { field: "name" }] });
    expect(pairs(counts.severity)).toEqual([
      [WARNING, "1"],
      [ERROR, "1"],
      [CRITICAL, "1"],
    ]);
    expect(pairs(counts.name)).toEqual([
      ["down", "1"],
      ["slow", "2"],
    ]);
    const severe = await count({ query: { ...query, severities: ["SEVERITY_WARNING"] }, countInstances: true });
    expect(pairs(severe.total)).toEqual([[0, "1"]]);
  });

  test.each(["start", "end"])("refuses the %s of an open range in seconds, with a hint", async (bound) => {
    const seconds = String(at(0) / 1000n);
    await expect(count({ query: { timeRange: { [bound]: seconds } } })).rejects.toMatchObject({
      code: 3,
      message: expect.stringMatching(`query\\.timeRange\\.${bound}: .*milliseconds`),
    });
    await expect(count({ query: { timeRange: { start: "0" } } })).resolves.toMatchObject({});
  });
});

describe("frequency", () => {
  const minutes = { timeRange: { start: String(at(0)), end: String(at(240)) } };
  const frequency = (body: object): Promise<Frequency> => json("/v1/events:frequency", body);
  type Frequency = {
    timestamps: string[];
    results: { [field: string]: { values: { value: unknown; counts: string[] }[] } };
  };

  test("counts an occurrence in the bucket of its last instance; empty buckets are zeros", async () => {
    const body = { query: minutes, fields: [{ field: "name" }], groupBy: [{ field: "severity" }], downsample: 60_000 };
    expect(await frequency(body)).toEqual({
      timestamps: [0, 60, 120, 180].map((seconds) => String(at(seconds))),
      results: {
        name: {
          values: [
            { value: "down", counts: ["0", "1", "0", "0"] },
            { value: "slow", counts: ["0", "1", "0", "1"] },
          ],
        },
        severity: {
          values: [
            { value: ERROR, counts: ["0", "1", "0", "1"] },
            { value: CRITICAL, counts: ["0", "1", "0", "0"] },
          ],
        },
      },
    });
  });

  test("adds up to the count, also of what is alive in the range and was last seen outside of it", async () => {
    const { results: found } = await events.searchEvents({ query: {} });
    expect(found.length).toBe(2);
    for (const [from, to] of [
      [20, 60],
      [66, 72],
      [71, 199],
      [-50, 500],
    ] as const) {
      const query = { timeRange: { start: String(at(from)), end: String(at(to)) }, activeCriteria: "BY_OVERLAP" };
      const fields = [{ field: "severity" }];
      const counted = (await count({ query, fields })).severity?.values ?? [];
      const { results } = await frequency({ query, fields, downsample: 10_000 });
      const sums = results.severity?.values.map(({ value, counts }) => ({
        value,
        count: String(counts.reduce((sum, each) => sum + Number(each), 0)),
      }));
      expect([from, sums]).toEqual([from, counted]);
      expect(counted.length).toBeGreaterThan(0);
    }
    const query = { timeRange: { start: String(at(71)), end: String(at(90)) }, activeCriteria: "BY_OVERLAP" };
    const { results } = await frequency({ query, downsample: 10_000 });
    // Last seen before the range: in its first bucket.
    expect(results.total?.values).toEqual([{ value: 0, counts: ["1", "0"] }]);
  });

  test("counts instances in the buckets of their own times", async () => {
    const { results } = await frequency({ query: minutes, downsample: 60_000, countInstances: true });
    expect(results).toEqual({ total: { values: [{ value: 0, counts: ["2", "2", "0", "1"] }] } });
  });

  test("aligns buckets to multiples from the epoch", async () => {
    const query = { timeRange: { start: String(at(10)), end: String(at(70)) } };
    const { timestamps, results } = await frequency({ query, downsample: 60_000, countInstances: true });
    expect(timestamps).toEqual([String(at(0)), String(at(60))]);
    expect(results.total?.values[0]?.counts).toEqual(["1", "1"]);
  });

  test("without downsample buckets are a hundredth of the range, at least a second", async () => {
    const long = await frequency({ query: { timeRange: { start: String(at(0)), end: String(at(600)) } } });
    expect([long.timestamps.length, long.timestamps[1]]).toEqual([100, String(at(6))]);
    const short = await frequency({ query: { timeRange: { start: String(at(0)), end: String(at(5)) } } });
    expect(short.timestamps.length).toBe(5);
    expect(short.results.total?.values).toEqual([{ value: 0, counts: ["0", "0", "0", "0", "0"] }]);
  });

  test.each([
    [{ query: {} }, /query\.timeRange\.start: is needed/],
    [{ query: { timeRange: { start: "1700000000000" } } }, /query\.timeRange\.end: is needed/],
    [{ query: { timeRange: { start: "5", end: "5" } } }, /start must be before end/],
    [{ query: { timeRange: { start: "0", end: "1700000000000" } }, downsample: 1000 }, /downsample: makes .* buckets/],
    [{}, /query/],
  ])("%j is refused", async (body, message) => {
    await expect(frequency(body)).rejects.toMatchObject({ code: 3, message: expect.stringMatching(message) });
  });

  test("an answer that would not fit is refused", async () => {
    const crowded = await testTenant(server.database.sql);
    const many = createClient(DataReceiverService, transport(server.target, "grpc", crowded.headers));
    const names = Array.from({ length: 300 }, (_, i) => `event ${i}`);
    await many.putEvents({ events: names.map((name) => ({ name, timestamp: at(1), dimensions: web })) });
    await expect(
      caller(crowded.headers)("/v1/events:frequency", {
        query: { timeRange: { start: String(at(0)), end: String(at(1000)) } },
        fields: [{ field: "name" }],
        downsample: 1000,
      }),
    ).rejects.toMatchObject({ code: 9 });
  });
});

test("alive at some time in the range: from the first instance to the closing, both included", async () => {
  const overlapping = async (start: number, end: number) => {
    const timeRange = { start: at(start), end: at(end) };
    const { results } = await events.searchEvents({ query: { timeRange, activeCriteria: ActiveCriteria.BY_OVERLAP } });
    return results.flatMap(({ occurrences }) => occurrences.map(({ startTime }) => startTime)).sort();
  };
  expect(await overlapping(0, 1)).toEqual([at(0)]);
  expect(await overlapping(70, 71)).toEqual([at(0), at(65)]);
  expect(await overlapping(71, 200)).toEqual([at(65)]);
  expect(await overlapping(200, 201)).toEqual([at(65), at(200)]);
  expect(await overlapping(-10, 0)).toEqual([]);
});

test("a frequency has at most 200,000 counts, of all its fields together", async () => {
  const ask = (names: string[]) =>
    events.countEventFrequency({
      query: { timeRange: { start: at(0), end: at(10_000) } },
      downsample: 1000n,
      fields: names.map((field) => ({ field })),
    });
  const half = [
    ["id", "name", "entity", "severity", "status"],
    ["type", "startTime", "lastSeen", "entityName", "instanceCount"],
  ] as const;
  for (const names of half) expect(Object.keys((await ask([...names])).results)).toHaveLength(5);
  await expect(ask(half.flat())).rejects.toThrow("there are more than 200000 counts");
});

test.each([
  ["/v1/events:count", "sortBy", [{ byField: { field: "name" } }]],
  ["/v1/events:count", "pageInput", { limit: 5 }],
  ["/v1/events:frequency", "fields", [{ field: "name" }]],
  ["/v1/events:frequency", "pageInput", { cursor: "x" }],
  ["/v1/events:watch", "sortBy", [{ byField: { field: "name" } }]],
  ["/v1/events:watch", "pageInput", { limit: 5 }],
])("%s refuses %s of the query, which it would ignore", async (path, member, value) => {
  const timeRange = { start: String(at(0)), end: String(at(10)) };
  const answer = await v1(server.url, tenant.headers)("POST", path, { query: { timeRange, [member]: value } });
  const { code, message } = answer.body.error ?? answer.body;
  expect([code, message]).toEqual([3, `query.${member}: has no meaning here: leave it out`]);
});

test("members that hold nothing are no members", async () => {
  const query = { sortBy: [], pageInput: {}, fields: [] };
  expect((await count({ query })).total?.values).toHaveLength(1);
});
