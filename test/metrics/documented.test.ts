import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Aggregator, AggregatorSchema } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { downsample } from "../../src/metrics/aggregate.ts";

const page = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");

/** The cells of the table row that begins with this word. */
function row(name: string): string[] {
  const line = page.split("\n").find((each) => each.startsWith(`| ${name} |`)) ?? "";
  return line
    .split("|")
    .slice(2, -1)
    .map((cell) => cell.trim());
}

const second = (cell: string) => Number(cell.replace(" s", "")) * 1000;
const points = {
  times: Float64Array.from(row("time"), second),
  values: Float64Array.from(row("value"), Number),
};
const range = { periodMs: 60_000, startMs: 20_000, endMs: 240_000 };
const aggregators = AggregatorSchema.values.filter(({ number }) => number > 0 && number !== Aggregator.NONE);

test.each(aggregators.map(({ name, number }) => [name, number] as const))(
  "%s is what the page says",
  (name, number) => {
    const { times, values } = downsample(points, { ...range, aggregator: number as Aggregator, isRate: false });
    const made = new Map([...times].map((time, i) => [time, values[i] as number]));
    const told = row(name).slice(0, 4);
    expect(
      row("aggregator")
        .slice(0, 4)
        .map((start) => made.get(second(start))),
    ).toEqual(told.map((cell) => (cell === "" ? undefined : expect.closeTo(Number(cell), 4))));
  },
);

test("changes of a counter that started again are what the page says", () => {
  const { values } = downsample(points, { ...range, aggregator: Aggregator.DELTA, isRate: true });
  expect([...values]).toEqual([10, 4, 5]);
});
