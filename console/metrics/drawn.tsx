import { useSignal } from "@preact/signals";
import { listOf, listText, setParameters } from "../data/address.ts";
import type { PlotSeries } from "../data/series.ts";
import { lineStyle, Plot } from "../ui/plot.tsx";
import { quantityText, unitWords } from "../ui/quantity.ts";
import ui from "../ui/ui.module.css";
import metricsLook from "./metrics.module.css";
import type { Read } from "./reading.ts";
import { ValueTable } from "./value-table.tsx";

/** How many series are drawn at once. */
const drawnMax = 24;

/** Series with the same unit share a plot; the list chooses which are drawn. */
export function Drawn({ start, end, series, more }: Read) {
  const tables = useSignal(false);
  const hidden = new Set(listOf("hidden"));
  const chosen = series.filter(({ key }) => !hidden.has(key));
  const drawn = chosen.slice(0, drawnMax);
  const units = [...new Set(drawn.map((each) => each.units))];
  const zoom = (from: number, to: number) => setParameters({ range: `${from}-${to}` });
  return (
    <div class={`${ui.columns} ${metricsLook.drawn}`}>
      <section class={ui.filters} aria-label="Series">
        <p class={ui.hint}>
          {drawn.length} of {series.length}
          {more ? " or more" : ""} series are drawn
          {chosen.length > drawnMax && `, the first ${drawnMax} of those chosen`}
        </p>
        {series.map((each) => (
          <label
            key={each.key}
            class={`${ui.choice} ${metricsLook.seriesChoice}`}
            title={[each.name, each.description].filter((text) => text !== "").join(": ")}
          >
            <input
              type="checkbox"
              checked={!hidden.has(each.key)}
              onChange={({ currentTarget }) => {
                const next = currentTarget.checked
                  ? [...hidden].filter((key) => key !== each.key)
                  : [...hidden, each.key];
                setParameters({ hidden: listText(next) });
              }}
            />
            <span class={ui.choiceWord}>
              <LegendLine at={drawn.filter(({ units: own }) => own === each.units).indexOf(each)} /> {each.name}
            </span>
          </label>
        ))}
      </section>
      <div class={ui.scroll}>
        <p class={ui.buttons}>
          <button
            type="button"
            aria-pressed={tables.value}
            onClick={() => {
              tables.value = !tables.value;
            }}
          >
            Values as tables
          </button>
          <span class={ui.hint}>Drag across a plot to zoom; the browser's Back button undoes it.</span>
        </p>
        {units.map((unit) => {
          const together = drawn.filter((each) => each.units === unit);
          const name = `${together.length === 1 ? together[0]?.name : `${together.length} series`} in ${unit || "no unit"}`;
          return (
            <section key={unit} class={ui.card} aria-label={name}>
              <PlotTitle series={together} units={unit} />
              <Plot
                name={name}
                series={together}
                start={start}
                end={end}
                height={units.length > 2 ? 180 : 260}
                zoom={zoom}
              />
              {together.length > 1 && <Legend series={together} />}
              {tables.value && <ValueTable name={name} series={together} />}
            </section>
          );
        })}
      </div>
    </div>
  );
}

/** The name of the only series, or how many there are; their unit; of one, its last value. */
function PlotTitle({ series, units }: { series: readonly PlotSeries[]; units: string }) {
  const [only] = series;
  const words = unitWords(units);
  const one = series.length === 1 && only !== undefined;
  return (
    <div class={ui.cardHead}>
      <h2>
        {one ? only.name : `${series.length} series`} {words !== "" && <span class={ui.quiet}>in {words}</span>}
      </h2>
      {one && <strong>{quantityText(only.values.at(-1), units)}</strong>}
    </div>
  );
}

/** The series of a plot with what they come to, the greatest last value first. */
function Legend({ series }: { series: readonly PlotSeries[] }) {
  const told = series
    .map((each, at) => ({ each, at, values: each.values.filter((value) => value !== null) }))
    .sort((a, b) => (b.values.at(-1) ?? -Infinity) - (a.values.at(-1) ?? -Infinity));
  return (
    <table class={metricsLook.legend}>
      <thead>
        <tr>
          {["Series", "Last", "Least", "Most", "Mean"].map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {told.map(({ each, at, values }) => (
          <tr key={each.key}>
            <th scope="row">
              <LegendLine at={at} /> {each.name}
            </th>
            {[
              values.at(-1),
              outermost(values, Math.min),
              outermost(values, Math.max),
              values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length,
            ].map((value, column) => (
              <td key={String(column)}>{quantityText(value, each.units)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const outermost = (values: readonly number[], of: (a: number, b: number) => number) =>
  values.length === 0 ? undefined : values.reduce((a, b) => of(a, b));

function LegendLine({ at }: { at: number }) {
  if (at < 0) return null;
  return <span class={ui.legendLine} style={lineStyle(at)} aria-hidden="true" />;
}
