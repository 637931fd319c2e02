import { median } from "./compare.ts";
import { progress } from "./progress.ts";
import type { Settings } from "./settings.ts";
import { table } from "./table.ts";

/** What one measurement came to, items being what is counted. */
export interface Measured {
  itemsPerSec: number;
  p50Ms: number;
  p99Ms: number;
  refused: number;
  /** Time of processor that the server's process took for an item, µs. */
  cpuUs: number | undefined;
}

/** A relation that is aimed at: of the rates (as much at least), or of the medians of time (as much at most). */
export interface Aim {
  to: string;
  of: "rate" | "p50";
  aim: number;
}

/** One line of a race. */
export interface Runner {
  name: string;
  aims?: readonly Aim[];
  run(): Promise<Measured>;
}

const digits = (value: number | undefined, count: number) =>
  value === undefined || Number.isNaN(value) ? "" : value.toFixed(count);

/**
 * Lets all run round by round, each round in another order, so that what else the machine does meets all alike; answers
 * the table of medians, with ratios round by round. `only`: those whose name holds it, and what they are compared with.
 */
export async function race(
  all: readonly Runner[],
  { rounds, only }: Pick<Settings, "rounds" | "only">,
  items: string,
): Promise<string> {
  const wanted = all.filter(({ name }) => only === undefined || name.includes(only));
  const runners = all.filter(
    (each) => wanted.includes(each) || wanted.some(({ aims }) => aims?.some(({ to }) => to === each.name)),
  );
  const seen = new Map<string, Measured[]>(runners.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const shift = round % runners.length;
    for (const { name, run } of [...runners.slice(shift), ...runners.slice(0, shift)]) {
      progress(`round ${round + 1} of ${rounds}: ${name}`);
      seen.get(name)?.push(await run());
    }
  }
  const rows = runners.flatMap(({ name, aims = [] }) => {
    const own = seen.get(name) ?? [];
    const of = (key: keyof Measured) => median(own.map((each) => each[key] ?? Number.NaN));
    const figures = [of("itemsPerSec"), of("p50Ms"), of("p99Ms"), of("cpuUs")] as const;
    const refused = own.reduce((sum, each) => sum + each.refused, 0);
    const row = [
      name,
      digits(figures[0], 0),
      digits(figures[1], 2),
      digits(figures[2], 2),
      String(refused),
      digits(figures[3], 0),
    ];
    const compared = aims.map(({ to, of: what, aim }) => {
      const key = what === "rate" ? "itemsPerSec" : "p50Ms";
      const ratios = own.map((each, i) => each[key] / (seen.get(to)?.[i]?.[key] ?? Number.NaN));
      return [
        digits(median(ratios), 2),
        `${digits(Math.min(...ratios), 2)}–${digits(Math.max(...ratios), 2)}`,
        what === "rate" ? `${aim} or more` : `${aim} or less`,
        `${what} of ${to}`,
      ];
    });
    const [first = [], ...others] = compared;
    return [[...row, ...first], ...others.map((cells) => [...row.map(() => ""), ...cells])];
  });
  const head = [
    "",
    `${items}/s`,
    "p50 ms",
    "p99 ms",
    "refused",
    `server CPU µs/${items}`,
    "ratio",
    "least–most",
    "aim",
    "to",
  ];
  return table(
    head,
    rows.map((row) => head.map((_, column) => row[column] ?? "")),
  );
}
