import type { Line } from "./compare.ts";
import { noteTable } from "./results.ts";

/** A table of text; all columns but the first are numbers and stand to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  noteTable({ head, rows });
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)));
  const lines = [head, widths.map((width) => "-".repeat(width)), ...rows].map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))),
  );
  return lines.map((cells) => cells.join("  ").trimEnd()).join("\n");
}

/** The same as Markdown. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  noteTable({ head, rows });
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, column) => (column === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}

/** The lines of a comparison; `items` says how many of what a request holds. */
export function comparisonTable(lines: readonly Line[], items?: { name: string; count: number }): string {
  const head = ["", "requests/s", "p50 ms", "p99 ms", "server CPU µs/request", "ratio", "least–most", "by CPU", "to"];
  if (items !== undefined) head.splice(2, 0, `${items.name}/s`);
  const rows = lines.flatMap(({ name, perSec, p50Ms, p99Ms, cpuUs, ratios }) => {
    const row = [name, whole(perSec), fixed(p50Ms), fixed(p99Ms), whole(cpuUs)];
    if (items !== undefined) row.splice(2, 0, whole(perSec * items.count));
    const compared = ratios.map(({ median, min, max, byCpu, to }) => [
      median.toFixed(2),
      `${min.toFixed(2)}–${max.toFixed(2)}`,
      byCpu.toFixed(2),
      to,
    ]);
    const [first = [], ...others] = compared;
    return [[...row, ...first], ...others.map((cells) => [...row.map(() => ""), ...cells])];
  });
  return table(
    head,
    rows.map((row) => head.map((_, column) => row[column] ?? "")),
  );
}

function whole(number: number): string {
  return Math.round(number).toLocaleString("en").replaceAll(",", " ");
}

/** A number that nothing was measured for is a dash. */
function fixed(number: number): string {
  return Number.isFinite(number) ? number.toFixed(2) : "-";
}
