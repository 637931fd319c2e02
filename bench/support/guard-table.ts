import { median } from "./compare.ts";
import { table } from "./table.ts";

/** Figures of one measurement; less is better. NaN: too little to be measured. */
export interface Figures {
  serverUs: number;
  postgresUs: number;
  p50Ms: number;
}

/** A line's figures of both servers, round by round. */
export interface GuardRow {
  name: string;
  now: readonly Figures[];
  before: readonly Figures[];
}

/** What is worse by this factor in all rounds is slower. */
const slowerBy = 1.15;

const columns = { serverUs: "server µs", postgresUs: "PostgreSQL µs", p50Ms: "p50 ms" } as const;
const keys = Object.keys(columns) as (keyof Figures)[];
const text = (value: number) => (Number.isFinite(value) ? value.toPrecision(value < 1000 ? 3 : 4) : "-");

/** The figures that are worse by 15 % in all rounds. */
export function slower({ now, before }: GuardRow): (keyof Figures)[] {
  return keys.filter((key) =>
    now.every((figures, round) => figures[key] >= slowerBy * (before[round]?.[key] ?? Number.NaN)),
  );
}

/** Medians of both servers, with the median of the rounds' ratios; the last column names what is slower. */
export function guardTable(rows: readonly GuardRow[]): string {
  const head = ["", ...keys.flatMap((key) => [columns[key], "before", "ratio"]), ""];
  return table(
    head,
    rows.map((row) => {
      const cells = keys.flatMap((key) => {
        const [now, before] = [row.now, row.before].map((all) => all.map((figures) => figures[key]));
        const ratios = (now ?? []).map((value, round) => value / (before?.[round] ?? Number.NaN));
        return [text(median(now ?? [])), text(median(before ?? [])), text(median(ratios))];
      });
      const worse = slower(row).map((key) => columns[key].replace(/ .s$/, ""));
      return [row.name, ...cells, worse.length === 0 ? "" : `slower: ${worse.join(", ")}`];
    }),
  );
}
