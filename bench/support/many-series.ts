import type { Generator } from "./generator.ts";
import type { Target } from "./point-ingest.ts";
import { table } from "./table.ts";

interface Asked {
  generator: Generator;
  url: string;
  key: Record<string, string>;
  baseMs: number;
  /** How many series there are in the end. */
  series: number;
  countMs: number;
  rounds: number;
}

const few = 10_000;
const pointsEach = 10_000;
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** The rate of known series, and a search of one entity's, while there are few and when there are many. */
export async function manySeries(ours: Target, asked: Asked): Promise<string> {
  const before = await known(ours, few, asked);
  const startMs = performance.now();
  const after = await known(ours, asked.series, asked);
  const tookS = (performance.now() - startMs) / 1000;
  const row = (series: number, { perSec, searchMs }: typeof before) => [
    String(series),
    perSec.toFixed(0),
    (perSec / before.perSec).toFixed(2),
    searchMs.toFixed(2),
  ];
  const head = ["series", "points/s", "of few", "search of an entity, p50 ms"];
  return `\n${table(head, [row(few, before), row(asked.series, after)])}\n
10,000 points a request, 4 connections; ${tookS.toFixed(0)} s for all of the second row, making the series included.
aim: 0.4 with a million series, and a search as fast as before`;
}

async function known(ours: Target, series: number, { generator, url, key, baseMs, countMs, rounds }: Asked) {
  const { port } = ours;
  const load = { port, request: ours.put(pointsEach, series, baseMs), connections: 4, streams: 1, leadInMs: 0 };
  const run = async (forMs: number) => {
    const outcome = await generator.run({ ...load, countMs: forMs });
    if (outcome.bad > 0) throw new Error(`${outcome.bad} of ${outcome.answered} answers were not good`);
    return outcome;
  };
  // Each run begins with the first series again, so one run goes through all of them.
  for (let forMs = 4000; (await run(forMs)).answered * pointsEach < series; forMs *= 2);
  const rates: number[] = [];
  for (let i = 0; i < rounds; i++) rates.push((await run(countMs)).perSec * pointsEach);
  const took: number[] = [];
  for (let i = 0; i < 60; i++) {
    const startMs = performance.now();
    await search(url, key, baseMs);
    if (i >= 20) took.push(performance.now() - startMs);
  }
  return { perSec: median(rates), searchMs: median(took) };
}

async function search(url: string, key: Record<string, string>, baseMs: number): Promise<void> {
  const clause = (field: string, value: string) => ({ filter: { field, operation: "OP_EQUALS", value } });
  const body = JSON.stringify({
    entityClause: clause("host", "web-00000000"),
    metricClause: clause("name", "metric_00000007"),
    timeRange: { start: new Date(baseMs - 3_600_000).toISOString(), end: new Date(baseMs + 60_000).toISOString() },
    downsample: { aggregator: "MEAN", period: "1m" },
  });
  const headers = { ...key, "content-type": "application/json" };
  const answer = await fetch(`${url}/v1/metrics:search`, { method: "POST", headers, body });
  const { metrics } = (await answer.json()) as { metrics?: { values: number[] }[] };
  if (metrics?.length !== 1 || metrics[0]?.values.length === 0)
    throw new Error(`the series was not found (${answer.status})`);
}
