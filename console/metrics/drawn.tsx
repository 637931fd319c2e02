import { useSignal } from "@preact/signals";
import { listOf, listText, setParameters } from "../data/address.ts";
import { lineStyle, Plot } from "../ui/plot.tsx";
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
              <h2>{unit === "" || unit === "1" ? "Without a unit" : unit}</h2>
              <Plot
                name={name}
                series={together}
                start={start}
                end={end}
                height={units.length > 2 ? 180 : 260}
                zoom={zoom}
              />
              {tables.value && <ValueTable name={name} series={together} />}
            </section>
          );
        })}
      </div>
    </div>
  );
}

function LegendLine({ at }: { at: number }) {
  if (at < 0) return null;
  return <span class={ui.legendLine} style={lineStyle(at)} aria-hidden="true" />;
}
