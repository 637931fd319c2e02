import type { LoadRequest, Outcome } from "../load/load.ts";
import type { Child } from "./child.ts";
import type { Generator } from "./generator.ts";
import { progress } from "./progress.ts";
import type { Settings } from "./settings.ts";

/** One line of a comparison: requests to a server, beside those of another line. */
export interface Competitor {
  name: string;
  server: { child: Child; port: number };
  request: LoadRequest;
  /** The names of the lines that this one is compared with. */
  baselines?: readonly string[];
}

/** A competitor's medians over the rounds; `answered` counts all answers, those of the warm-up too. */
export interface Line extends Outcome {
  name: string;
  /** Time of processor that the server's process took for a request, µs. */
  cpuUs: number;
  /** Requests per second in relation to the baseline's of the same round: median, least, most; `byCpu` of processor time. */
  ratios: { to: string; median: number; min: number; max: number; byCpu: number }[];
}

type Measured = Outcome & { cpuUs: number };

/**
 * Warms every competitor up, then measures all of them round by round, each round in another order, so that what else
 * the machine does meets all alike.
 */
export async function compare(
  competitors: readonly Competitor[],
  generator: Generator,
  settings: Settings,
): Promise<Line[]> {
  const answered = new Map<string, number>();
  async function measure({ name, server, request }: Competitor, countMs: number): Promise<Measured> {
    const load = { port: server.port, request, connections: settings.connections, streams: settings.streams };
    const before = await server.child.ask<{ cpuUs: number }>("cpu");
    const outcome = await generator.run({ ...load, leadInMs: 100, countMs });
    const after = await server.child.ask<{ cpuUs: number }>("cpu");
    if (outcome.bad > 0) throw new Error(`${name}: ${outcome.bad} of ${outcome.answered} answers were not good`);
    answered.set(name, (answered.get(name) ?? 0) + outcome.answered);
    return { ...outcome, cpuUs: (after.cpuUs - before.cpuUs) / outcome.answered };
  }

  for (const competitor of competitors) {
    progress(`warms up: ${competitor.name}`);
    // In two parts: the second knows from the first how fast the server is.
    await measure(competitor, settings.warmUpMs / 4);
    await measure(competitor, (settings.warmUpMs * 3) / 4);
  }
  const rounds: Map<string, Measured>[] = [];
  for (let i = 0; i < settings.rounds; i += 1) {
    const round = new Map<string, Measured>();
    progress(`round ${i + 1} of ${settings.rounds}`);
    const shift = i % competitors.length;
    for (const competitor of [...competitors.slice(shift), ...competitors.slice(0, shift)]) {
      round.set(competitor.name, await measure(competitor, settings.countMs));
    }
    rounds.push(round);
  }
  return competitors.map(({ name, baselines }) => ({
    ...lineOf(name, baselines ?? [], rounds),
    answered: answered.get(name) ?? 0,
  }));
}

function lineOf(name: string, baselines: readonly string[], rounds: Map<string, Measured>[]): Omit<Line, "answered"> {
  const of = (key: keyof Measured, competitor = name) =>
    rounds.map((round) => round.get(competitor)?.[key] ?? Number.NaN);
  const dividedBy = (divisors: number[]) => (value: number, index: number) => value / (divisors[index] ?? Number.NaN);
  const ratios = baselines.map((to) => {
    const each = of("perSec").map(dividedBy(of("perSec", to)));
    const byCpu = median(of("cpuUs", to).map(dividedBy(of("cpuUs"))));
    return { to, median: median(each), min: Math.min(...each), max: Math.max(...each), byCpu };
  });
  return {
    name,
    perSec: median(of("perSec")),
    p50Ms: median(of("p50Ms")),
    p99Ms: median(of("p99Ms")),
    cpuUs: median(of("cpuUs")),
    bad: 0,
    busy: median(of("busy")),
    ratios,
  };
}

/** The middle of values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}
