import { create } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { EntityService } from "#gen/belfry/entities/v1/entity_service_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { address, linkTo, listOf, listText, setParameters } from "../frame/address.ts";
import { clientOf } from "../frame/calls.ts";
import { useAnswer } from "../parts/answer.ts";
import { lineClass, Plot } from "../parts/plot.tsx";
import { Empty, Problem } from "../parts/problem.tsx";
import { type PlotSeries, periodOf, readSeries } from "../parts/series.ts";
import { endsOf, TimeRangeChoice } from "../parts/time-range.tsx";
import { EntityChoice } from "./entity-choice.tsx";
import { ValueTable } from "./value-table.tsx";

const entities = clientOf(EntityService);
const parameter = (name: string) => address.value.parameters.get(name) ?? "";
const rangeText = () => parameter("range") || "1h";
const chosenMax = 24;

const aggregators = Object.entries(Aggregator)
  .filter(([, value]) => typeof value === "number" && value > 0)
  .map(([name]) => name)
  .filter((name) => Number.isNaN(Number(name)));

/** The series of an entity over time: which, how, and when stand in the address. */
export function MetricsScreen() {
  const named = useAnswer(async (signal) => {
    const id = parameter("entity");
    if (id === "") return undefined;
    const clause = create(ClauseSchema, { withIds: { ids: [id] } });
    const found = await entities.searchEntities({ searchInput: { query: { clause } } }, { signal });
    return found.entities?.entities[0]?.name ?? id;
  });
  const answer = useAnswer(async (signal) => {
    const entityId = parameter("entity");
    if (entityId === "") return undefined;
    const { start, end } = endsOf(rangeText()) ?? { start: Date.now() - 3_600_000, end: Date.now() };
    const aggregator = Aggregator[(parameter("aggregator") || "MEAN") as keyof typeof Aggregator];
    const period = parameter("period") || periodOf(start, end);
    const metric = listOf("metric");
    const asked = {
      entityId,
      start,
      end,
      aggregator,
      period,
      pageSize: 200,
      ...(metric.length > 0 && { metricClause: oneOf(metric) }),
    };
    return { start, end, period, ...(await readSeries(asked, signal)) };
  });
  const { value, loading, failure, again } = answer.value;
  return (
    <div class="screen">
      <div class="screen-head">
        <div>
          <h1>Metrics</h1>
          {named.value.value && (
            <p class="hint">
              of <a href={linkTo(["entities", parameter("entity")])}>{named.value.value}</a>
            </p>
          )}
        </div>
        <div class="tools">
          <EntityChoice
            name={named.value.value ?? ""}
            choose={(entity) => setParameters({ entity, metric: undefined, hidden: undefined })}
          />
          <TimeRangeChoice value={rangeText()} change={(range) => setParameters({ range })} />
          <label class="inline">
            Aggregator
            <select
              value={parameter("aggregator") || "MEAN"}
              onChange={({ currentTarget }) => setParameters({ aggregator: currentTarget.value })}
            >
              {aggregators.map((name) => (
                <option key={name} value={name}>
                  {name.toLowerCase().replace("_", " ")}
                </option>
              ))}
            </select>
          </label>
          <label class="inline">
            Period
            <input
              class="tiny"
              placeholder={value?.period ?? "auto"}
              value={parameter("period")}
              onChange={({ currentTarget }) => setParameters({ period: currentTarget.value })}
            />
          </label>
          <button type="button" onClick={again}>
            Read again
          </button>
        </div>
      </div>
      <Problem failure={failure} again={again} />
      {parameter("entity") === "" && (
        <Empty title="Whose metrics?">
          <p>
            Choose an entity above by words of its name. Its series are drawn here, and the address keeps what you
            chose.
          </p>
        </Empty>
      )}
      {value && value.series.length === 0 && !loading && (
        <Empty title="No series has a value in this time.">
          <p>
            Metrics come from agents, OpenTelemetry or Prometheus' remote write. Choose a longer range, or another
            entity.
          </p>
        </Empty>
      )}
      {value && value.series.length > 0 && <Drawn {...value} />}
    </div>
  );
}

const oneOf = (names: readonly string[]) =>
  create(ClauseSchema, {
    anyOf: {
      clauses: names.map((value) =>
        create(ClauseSchema, {
          filter: { field: "name", operation: Operation.OP_EQUALS, value: { kind: { case: "stringValue", value } } },
        }),
      ),
    },
  });

interface DrawnProps {
  start: number;
  end: number;
  series: readonly PlotSeries[];
  more: boolean;
}

/** Series with the same unit share a plot; the list chooses which are drawn. */
function Drawn({ start, end, series, more }: DrawnProps) {
  const tables = useSignal(false);
  const hidden = new Set(listOf("hidden"));
  const drawn = series.filter(({ key }) => !hidden.has(key)).slice(0, chosenMax);
  const units = [...new Set(drawn.map((each) => each.units))];
  const zoom = (from: number, to: number) => setParameters({ range: `${from}-${to}` });
  return (
    <div class="columns metrics">
      <section class="filters" aria-label="Series">
        <p class="hint">
          {drawn.length} of {series.length}
          {more ? " or more" : ""} series are drawn
        </p>
        {series.map((each) => (
          <label key={each.key} class="choice series-choice" title={each.description || each.name}>
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
          <span class="hint">Drag over a plot to zoom; the way back is the browser's.</span>
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
