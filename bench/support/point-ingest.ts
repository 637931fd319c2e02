import type { LoadRequest } from "../load/load.ts";
import type { Child } from "./child.ts";
import type { Database } from "./database.ts";
import type { Generator } from "./generator.ts";
import { postgresCpuMs } from "./machine.ts";
import type { PlainTable } from "./plain-points.ts";
import { progress } from "./progress.ts";
import { table } from "./table.ts";

/** A store that takes points over HTTP. */
export interface Target {
  name: string;
  port: number;
  put(count: number, series: number, baseMs: number): LoadRequest;
  /** Time of processor so far, µs. */
  cpu?(): Promise<number>;
}

interface Measure {
  generator: Generator;
  series: number;
  baseMs: number;
  rounds: number;
  countMs: number;
}

/** Points a request, and connections. */
const shapes = [
  [1000, 4],
  [10_000, 4],
  [1, 64],
] as const;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const whole = (number: number) => Math.round(number).toLocaleString("en").replaceAll(",", " ");

/** What is aimed at: our rate over gRPC in relation to another's; for JSON to our own over gRPC. */
const aims: readonly (readonly [part: string, aim: number])[] = [
  ["JSON", 0.25],
  ["VictoriaMetrics", 0.35],
  ["InfluxDB", 1.8],
  ["Prometheus", 4],
  ["unnest", 3],
];

/** Resolves when a server has no more work of its own, after some seconds at the latest: 15 for rounds of 1.2 s. */
async function rest({ cpu }: Target, countMs: number): Promise<void> {
  for (let i = 0, before = await cpu?.(); before !== undefined && i < countMs / 80; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const now = (await cpu?.()) ?? 0;
    if (now - before < 100_000) return;
    before = now;
  }
}

/** Points a second of all, in turns: medians of the rounds, and ratios to the aims. */
export async function ingestTable(targets: readonly Target[], plain: PlainTable, measure: Measure): Promise<string> {
  const { generator, series, baseMs, rounds, countMs } = measure;
  const parts: string[] = [`Points a second: ${series} series; medians of ${rounds} rounds of ${countMs / 1000} s`];
  const made = new Set<string>();
  const unnest = "insert … unnest into an indexed table";
  for (const [count, connections] of shapes) {
    progress(`${count} a request, ${connections} connections`);
    const rates = new Map<string, number[]>();
    const cpuUs = new Map<string, number[]>();
    const note = (map: Map<string, number[]>, name: string, value: number) =>
      map.set(name, [...(map.get(name) ?? []), value]);
    for (let round = -1; round < rounds; round++) {
      // Merging what came in larger requests is no cost of smaller ones.
      if (round === 0) for (const target of targets) await rest(target, countMs);
      for (const { name, port, put, cpu } of targets) {
        const request = put(count, series, baseMs);
        const load = {
          port,
          request,
          connections,
          streams: 1,
          leadInMs: 100,
          countMs: round < 0 ? (countMs * 5) / 3 : countMs,
        };
        const run = async () => {
          const outcome = await generator.run(load);
          if (outcome.bad > 0) throw new Error(`${name}: ${outcome.bad} of ${outcome.answered} answers were not good`);
          return outcome;
        };
        if (round < 0) {
          // All series are made before anything counts.
          for (let sent = 0; sent < (made.has(name) ? 1 : series); ) sent += (await run()).answered * count;
          made.add(name);
          continue;
        }
        const before = await cpu?.();
        const { perSec, answered } = await run();
        note(rates, name, perSec * count);
        if (before !== undefined) note(cpuUs, name, (((await cpu?.()) ?? 0) - before) / answered / count);
      }
      const rate = await plain.run(count, connections, countMs);
      if (round >= 0) note(rates, unnest, rate);
    }
    const ours = rates.get(targets[0]?.name ?? "") ?? [];
    const rows = [...rates].map(([name, all]) => {
      const json = name.includes("JSON");
      const ratio = median(all.map((rate, i) => (json ? rate / (ours[i] ?? 0) : (ours[i] ?? 0) / rate)));
      const aim = aims.find(([part]) => name.includes(part))?.[1];
      const cpu = cpuUs.has(name) ? median(cpuUs.get(name) ?? []).toFixed(2) : "-";
      return [name, whole(median(all)), cpu, aim === undefined ? "" : ratio.toFixed(2), aim?.toString() ?? ""];
    });
    const title = `${whole(count)} a request, ${connections} connections`;
    parts.push(table([title, "points/s", "CPU µs/point", "ratio", "aim"], rows));
  }
  parts.push("ratio: ours over gRPC to the other; JSON to ours over gRPC.");
  return `\n${parts.join("\n\n")}\n`;
}

/**
 * The top rate for a minute, then a second of it in every two: memory of the server, and what lies in the head. Rates are those
 * of the machine at that moment; time of processor a point reports whether the server or something beside it has become slower.
 */
export async function* soakLines(
  { port, put }: Target,
  { generator, series, baseMs }: Measure,
  { server, database, minutes }: { server: Child; database: Database; minutes: number },
): AsyncGenerator<string> {
  const request = put(1000, series, baseMs);
  const load = { port, request, connections: 4, streams: 1, leadInMs: 0 };
  let last = { serverUs: 0, postgresUs: 0 };
  const look = async () => {
    const { rssBytes, cpuUs } = await server.ask<{ rssBytes: number; cpuUs: number }>("cpu");
    const now = { serverUs: cpuUs, postgresUs: postgresCpuMs(database.pid) * 1000 };
    const took = { serverUs: now.serverUs - last.serverUs, postgresUs: now.postgresUs - last.postgresUs };
    last = now;
    const [head] = await database.sql<[{ rows: number; points: number }]>`
      select count(*)::float8 as rows, coalesce(sum(points), 0)::float8 as points from metric_heads`;
    return { rssMb: rssBytes / 1e6, ...took, ...head };
  };
  const line = (name: string, stored: number, sec: number, looked: Awaited<ReturnType<typeof look>>) => {
    const { rssMb, rows, points, serverUs, postgresUs } = looked;
    const [ours, its] = [serverUs, postgresUs].map((us) => (us / stored).toFixed(1));
    const rate = `${whole(stored / sec)} points/s, CPU ${ours} µs a point and ${its} of PostgreSQL`;
    return `${name}: ${rate}, ${whole(rssMb)} MB, ${whole(rows)} rows and ${whole(points)} points in the head`;
  };
  await look();
  for (let i = 1; i <= 6; i++) {
    const { answered } = await generator.run({ ...load, countMs: 10_000 });
    yield line(`top rate, ${10 * i} s`, answered * 1000, 10, await look());
  }
  const seen: number[] = [];
  for (let i = 1; i <= minutes * 2; i++) {
    let stored = 0;
    for (let j = 0; j < 15; j++) {
      const { answered } = await generator.run({ ...load, countMs: 1000 });
      stored += answered * 1000;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    const state = await look();
    seen.push(state.rssMb);
    yield line(`half of it, ${i * 30} s`, stored, 30, state);
  }
  if (seen.length === 0) return;
  const middle = seen.length >> 1;
  const [before, after] = [median(seen.slice(0, middle)), median(seen.slice(middle))];
  yield `memory: median ${whole(before)} MB in the first half, ${whole(after)} in the second`;
}
