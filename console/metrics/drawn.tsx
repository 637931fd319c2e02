import { useSignal } from "@preact/signals";
import { listOf, listText, setParameters } from "../data/address.ts";
import { lineClass, Plot } from "../ui/plot.tsx";
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
    <div class="columns metrics">
      <section class="filters" aria-label="Series">
        <p class="hint">
          {drawn.length} of {series.length}
          {more ? " or more" : ""} series are drawn
          {chosen.length > drawnMax && `, the first ${drawnMax} of those chosen`}
        </p>
        {series.map((each) => (
          <label
            key={each.key}
            class="choice series-choice"
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
            <span class="choice-word">
              <LegendLine at={drawn.filter(({ units: own }) => own === each.units).indexOf(each)} /> {each.name}
            </span>
          </label>
        ))}
      </section>
      <div class="scroll">
        <p class="buttons">
          <button
            type="button"
            aria-pressed={tables.value}
            onClick={() => {
              tables.value = !tables.value;
            }}
          >
            Values as tables
          </button>
          <span class="hint">Drag across a plot to zoom; the browser's Back button undoes it.</span>
        </p>
        {units.map((unit) => {
          const together = drawn.filter((each) => each.units === unit);
          const name = `${together.length === 1 ? together[0]?.name : `${together.length} series`} in ${unit || "no unit"}`;
          return (
            <section key={unit} class="card" aria-label={name}>
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
  return <span class={`legend-line ${lineClass(at)} dash-${Math.floor(at / 6) % 4}`} aria-hidden="true" />;
}
