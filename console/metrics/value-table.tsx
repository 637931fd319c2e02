import type { PlotSeries } from "../data/series.ts";
import type { Column } from "../ui/column.ts";
import { numberText, timesOf } from "../ui/plot.tsx";
import { Table } from "../ui/table.tsx";
import { timeText } from "../ui/time.tsx";
import metricsLook from "./metrics.module.css";

/** The values of a plot, a row for each moment, the newest first. */
export function ValueTable({ name, series }: { name: string; series: readonly PlotSeries[] }) {
  const values = series.map((each) => new Map(each.timestamps.map((time, at) => [time, each.values[at]])));
  const columns: Column<number>[] = [
    { key: "time", label: "Time", width: "150px", line: 1, cell: (time) => timeText(time) },
    ...series.map(
      (each, at): Column<number> => ({
        key: each.key,
        label: each.name,
        width: "minmax(90px, 1fr)",
        end: true,
        cell: (time) => numberText(values[at]?.get(time), each.units),
      }),
    ),
  ];
  return (
    <div class={metricsLook.valueTable}>
      <Table label={`Values of ${name}`} rows={timesOf(series).reverse()} columns={columns} rowKey={String} />
    </div>
  );
}
