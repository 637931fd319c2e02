import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { basename, join } from "node:path";

/** A table as a bench prints it. */
export interface Table {
  head: readonly string[];
  rows: readonly (readonly string[])[];
}

/** A run that is kept, in `bench/results/`. */
export interface Run {
  bench: string;
  args: string[];
  date: string;
  machine: string;
  tables: Table[];
}

/** What figures depend on: processors, memory and the version of Node. */
export function machine(): string {
  const gib = Math.round(totalmem() / 2 ** 30);
  return `${availableParallelism()} × ${cpus()[0]?.model.trim() ?? "unknown processor"}, ${gib} GiB, Node ${process.version}`;
}

const folder = process.env.BENCH_RESULTS ?? join(import.meta.dirname, "../results");
const tables: Table[] = [];

/** Notes a table that is printed; when the bench has ended well, it is compared with the run that was kept last, and kept itself with `--keep`. */
export function noteTable(noted: Table): void {
  if (tables.push(noted) === 1) process.once("exit", (code) => code === 0 && finish());
}

function finish(): void {
  const bench = basename(process.argv[1] ?? "", ".ts");
  const args = process.argv.slice(2);
  const before = lastRun(bench, args);
  if (before !== undefined) {
    const lines = tables.flatMap((now, i) => differences(now, before.tables[i]));
    process.stdout.write(
      `\nsince ${before.date} (${before.machine}):\n${lines.join("\n") || "no number has changed"}\n`,
    );
  }
  if (process.env.BENCH_KEEP !== "1") return;
  mkdirSync(folder, { recursive: true });
  const date = new Date().toISOString();
  const file = join(folder, `${bench}-${date.replaceAll(/[:.]/g, "-")}.json`);
  const run: Run = { bench, args, date, machine: machine(), tables };
  writeFileSync(file, `${JSON.stringify(run, undefined, 2)}\n`);
  process.stdout.write(`kept in bench/results/${basename(file)}\n`);
}

/** The latest kept run of a bench with the same options, on this machine if there is one. */
function lastRun(bench: string, args: readonly string[]): Run | undefined {
  let names: string[] = [];
  try {
    names = readdirSync(folder).filter((name) => name.startsWith(`${bench}-`) && name.endsWith(".json"));
  } catch {
    return undefined; // none is kept
  }
  const runs = names
    .map((name): Run => JSON.parse(readFileSync(join(folder, name), "utf8")))
    .filter((run) => run.bench === bench && run.args.join(" ") === args.join(" "))
    .toSorted((a, b) => a.date.localeCompare(b.date));
  return runs.findLast((run) => run.machine === machine()) ?? runs.at(-1);
}

const numberOf = (cell: string | undefined) => (cell ? Number(cell.replaceAll(/[ ,]/g, "")) : Number.NaN);

/** A line for each number that differs, of rows and columns that both tables have. */
export function differences(now: Table, before: Table | undefined): string[] {
  const old = namedRows(before?.rows ?? []);
  return [...namedRows(now.rows)].flatMap(([name, row]) =>
    now.head.flatMap((title, column) => {
      const [was, is] = [numberOf(old.get(name)?.[before?.head.indexOf(title) ?? -1]), numberOf(row[column])];
      if (column === 0 || !Number.isFinite(was) || !Number.isFinite(is) || was === is) return [];
      const change = was === 0 ? "" : ` (${is > was ? "+" : ""}${((is / was - 1) * 100).toFixed(0)} %)`;
      return [`  ${name}, ${title}: ${was} → ${is}${change}`];
    }),
  );
}

/** Rows by their first cell. One without a name continues the row above it. */
function namedRows(rows: Table["rows"]): Map<string, readonly string[]> {
  const named = new Map<string, readonly string[]>();
  let name = "";
  for (const row of rows) {
    name = row[0] || name;
    let place = 1;
    while (named.has(place === 1 ? name : `${name} (${place})`)) place += 1;
    named.set(place === 1 ? name : `${name} (${place})`, row);
  }
  return named;
}
