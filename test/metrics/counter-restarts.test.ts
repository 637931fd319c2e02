import { beforeAll, expect, test } from "vitest";
import { tool } from "../integrations/calls.ts";
import { testServer } from "../support/server.ts";
import { testTenant } from "../support/tenant.ts";
import { v1 } from "../support/v1.ts";

const server = await testServer();
const minuteMs = 60_000;
const baseMs = Math.floor(Date.now() / minuteMs) * minuteMs - 30 * minuteMs;
/** By minutes: it starts again before the fourth. */
const values = [100, 160, 220, 40, 100];
const delta = 1;
const cumulative = 2;

const points = values.map((value, i) => ({
  timeUnixNano: `${baseMs + i * minuteMs}000000`,
  asDouble: value,
  count: value,
  sum: value,
  min: value,
}));
const sum = (aggregationTemporality: number, isMonotonic: boolean) => ({
  sum: {
    aggregationTemporality,
    isMonotonic,
    dataPoints: points.map(({ timeUnixNano, asDouble }) => ({ timeUnixNano, asDouble })),
  },
});
const histogram = (aggregationTemporality: number) => ({
  histogram: { aggregationTemporality, dataPoints: points.map(({ asDouble: _, ...rest }) => rest) },
});
const metrics = {
  counter: sum(cumulative, true),
  labelled: sum(cumulative, true),
  deltas: sum(delta, true),
  gauge: { gauge: sum(0, false).sum },
  level: sum(cumulative, false),
  latency: histogram(cumulative),
  "latency.deltas": histogram(delta),
};

let call: ReturnType<typeof v1>;
beforeAll(async () => {
  const { headers } = await testTenant(server.database.sql);
  call = v1(server.url, headers);
  const resource = { attributes: [{ key: "host.name", value: { stringValue: "web-1" } }] };
  const scopeMetrics = [{ metrics: Object.entries(metrics).map(([name, data]) => ({ name, ...data })) }];
  const { status, body } = await tool(server, headers)("POST", "/v1/metrics", {
    resourceMetrics: [{ resource, scopeMetrics }],
  });
  expect({ status, body }).toEqual({ status: 200, body: {} });
  const entry = { name: "labelled", label: "Labelled" };
  expect(await call("POST", "/v1/dictionary/metrics", entry)).toMatchObject({ status: 200 });
});

async function change(name: string, aggregator: string) {
  const clause = (field: string, value: string) => ({ filter: { field, operation: "OP_EQUALS", value } });
  const { body } = await call("POST", "/v1/metrics:search", {
    entityClause: clause("host.name", "web-1"),
    metricClause: clause("name", name),
    timeRange: { start: new Date(baseMs).toISOString(), end: new Date(baseMs + 5 * minuteMs).toISOString() },
    downsample: { aggregator, period: "1d" },
  });
  return body.metrics[0].values[0];
}

test.each([
  ["counter", "a cumulative sum that is monotonic", 220],
  ["labelled", "one whose dictionary entry does not say isRate", 220],
  ["latency.count", "the count of a cumulative histogram", 220],
  ["latency.sum", "the sum of a cumulative histogram", 220],
  ["latency.min", "the least value of a histogram", 0],
  ["deltas", "a sum of deltas", 0],
  ["latency.deltas.count", "the count of a histogram of deltas", 0],
  ["gauge", "a gauge", 0],
  ["level", "a sum that is not monotonic", 0],
])("the change of %s, %s, counts a restart only where the series is known to grow", async (name, _, wanted) => {
  expect(await change(name, "DELTA")).toBe(wanted);
  expect(await change(name, "RATE")).toBeCloseTo(wanted / 240, 9);
});
