import type { Outcome } from "../load/load.ts";
import type { Generator } from "./generator.ts";
import type { Target } from "./point-ingest.ts";
import { table } from "./table.ts";

interface Fleet {
  generator: Generator;
  baseMs: number;
  rounds: number;
  countMs: number;
  hosts: number;
}

/** Series of a host, which sends a point of each in one request. */
export const fleetMetrics = 100;
const connections = 8;
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/** Agents as they are: each request holds one host's points. Points a second, and time of processor a point, at first sight and after. */
export async function fleetTable(targets: readonly Target[], fleet: Fleet): Promise<string> {
  const { generator, baseMs, rounds, countMs, hosts } = fleet;
  const series = hosts * fleetMetrics;
  const rows: string[][] = [];
  for (const [i, target] of targets.entries()) {
    const { name, port, put, cpu } = target;
    async function run(
      count: number,
      at: number,
      clients: number,
      forMs: number,
    ): Promise<Outcome & { cpuUs: number }> {
      const before = (await cpu?.()) ?? 0;
      const load = {
        port,
        request: put(count, series, at),
        connections: clients,
        streams: 1,
        leadInMs: 0,
        countMs: forMs,
      };
      const outcome = await generator.run(load);
      if (outcome.bad > 0) throw new Error(`${name}: ${outcome.bad} of ${outcome.answered} answers were not good`);
      return { ...outcome, cpuUs: ((await cpu?.()) ?? 0) - before };
    }
    const cell = (all: readonly (Outcome & { cpuUs: number })[], each: number) => [
      String(Math.round(median(all.map(({ perSec }) => perSec * each)))),
      median(all.map(({ cpuUs, answered }) => cpuUs / answered / each)).toFixed(1),
    ];
    const first = i === 0 ? [await run(fleetMetrics, baseMs, connections, 4000)] : [];
    // Every host has sent once, and more, before anything counts.
    for (let sent = 0; sent < 2 * hosts; )
      sent += (await run(fleetMetrics, baseMs + 60_000, connections, 4000)).answered;
    const known = [];
    for (let j = 0; j < rounds; j++) known.push(await run(fleetMetrics, baseMs + 120_000, connections, countMs));
    const single = [];
    for (let j = 0; j < rounds; j++) single.push(await run(1, baseMs + 180_000, 64, countMs));
    rows.push([
      name,
      ...(first.length > 0 ? cell(first, fleetMetrics) : ["", ""]),
      ...cell(known, fleetMetrics),
      ...cell(single, 1),
    ]);
  }
  const head = ["", "first sight, points/s", "CPU µs", "known, points/s", "CPU µs", "one a request, /s", "CPU µs"];
  return `\n${hosts} hosts of ${fleetMetrics} series, one host a request, ${connections} connections; one point a request, 64\n\n${table(head, rows)}\n`;
}
