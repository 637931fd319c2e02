import { useComputed, useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { conditionCount } from "../clause/draft.ts";
import { ClauseEditor } from "../clause/editor.tsx";
import { searchClauses } from "../clause/search-clause.ts";
import { linkTo, listOf, listText, setParameters } from "../data/address.ts";
import { useAnswer } from "../data/answer.ts";
import { clauseOf, clauseText } from "../events/query.ts";
import { More } from "../ui/more.tsx";
import { narrow } from "../ui/narrow.ts";
import { Doubt, Empty, Problem } from "../ui/problem.tsx";
import { ScreenHead } from "../ui/screen-head.tsx";
import { TimeRangeChoice } from "../ui/time-range.tsx";
import ui from "../ui/ui.module.css";
import { EntityChoice } from "./entity-choice.tsx";
import { nothing, readHappened } from "./happened.ts";
import metricsLook from "./metrics.module.css";
import { divisions } from "./plot-groups.ts";
import { Plots } from "./plots.tsx";
import { endsHere, parameters, type Read, readAll, readEntities } from "./reading.ts";
import { RefreshChoice, useRefresh } from "./refresh.tsx";

/** The series of an entity, or of those that meet a clause, over time: which, how and when are kept in the address. */
export function MetricsScreen() {
  const matching = useAnswer(readEntities, undefined, "entities");
  const matched = useComputed(() => matching.value.value);
  const answer = useAnswer((signal) => readAll(matched.value, signal), undefined, "metrics");
  const happened = useAnswer(
    async (signal) => {
      const id = parameters.entity.value;
      const { start, end } = endsHere();
      return id === "" ? nothing : await readHappened(id, start, end, signal);
    },
    undefined,
    "happened",
  );
  const read = useComputed(() => answer.value.value);
  const tables = useSignal(false);
  const { value } = answer.value;
  const loading = matching.value.loading || answer.value.loading;
  const failure = matching.value.failure ?? answer.value.failure;
  const again = () => {
    matching.peek().again();
    happened.peek().again();
  };
  const byItself = useRefresh([matching, answer, happened], read, again);
  const searching = loading && !byItself.value;
  const entity = parameters.entity.value;
  const own = entity === "" ? clauseOf(parameters.where.value) : undefined;
  // Until a person opens or closes it, the editor is open where there are conditions.
  const opened = useSignal<boolean | undefined>(undefined);
  const editing = opened.value ?? own !== undefined;
  const prefix = "search_input.query.clause";
  const errors = (own ? (failure?.fields ?? []) : [])
    .filter(({ field }) => field.startsWith(prefix))
    .map(({ field, description }) => ({ field: field.slice(prefix.length), description }));
  const which = (
    <>
      <button
        type="button"
        aria-expanded={editing}
        onClick={() => {
          opened.value = !editing;
        }}
      >
        Conditions{own ? ` (${conditionCount(searchClauses, own)})` : ""}
      </button>
      <MetricChoice names={value?.series.map(({ metric }) => metric) ?? []} />
      <DivisionChoice choices={divisions(value?.series ?? [])} />
    </>
  );
  return (
    <div class={ui.screen}>
      <ScreenHead
        title="Metrics"
        count={searching ? "Searching…" : value && <Whose {...value} name={matched.value?.entities[0]?.name ?? ""} />}
        tools={
          <>
            <EntityChoice
              name={entity === "" ? "" : (matched.value?.entities[0]?.name ?? "")}
              choose={(id) => setParameters({ entity: id, where: undefined, metric: undefined, only: undefined })}
            />
            {!narrow.value && which}
            <TimeRangeChoice value={parameters.range.value} change={(range) => setParameters({ range })} />
            <div class={metricsLook.menu}>
              <More label={narrow.value ? "Conditions, metric and aggregation" : "Aggregation"}>
                {narrow.value && which}
                <How period={value?.period} />
                <button
                  type="button"
                  aria-pressed={tables.value}
                  onClick={() => {
                    tables.value = !tables.value;
                  }}
                >
                  Values as tables
                </button>
                <button
                  type="button"
                  onClick={() => {
                    byItself.value = false;
                    again();
                  }}
                >
                  Refresh
                </button>
                <RefreshChoice />
              </More>
            </div>
          </>
        }
      />
      {editing && (
        <ClauseEditor
          of="entity"
          clause={own}
          errors={errors}
          apply={(clause) =>
            setParameters({
              where: clause && clauseText(clause),
              entity: clause ? undefined : entity,
              only: undefined,
            })
          }
        />
      )}
      <Doubt hint={matched.value?.hint} />
      <Problem failure={errors.length > 0 ? undefined : failure} again={again} />
      <Nothing value={value} settled={!searching && failure === undefined} />
      {value && value.series.length > 0 && (
        <Plots read={value} happened={happened.value.value ?? nothing} tables={tables.value} />
      )}
    </div>
  );
}

/** Whose series are shown, and whether those of all that match were read. */
function Whose({ name, asked, total }: Read & { name: string }) {
  const entity = parameters.entity.value;
  if (entity !== "") {
    return (
      <>
        of <a href={linkTo(["entities", entity])}>{name}</a>
      </>
    );
  }
  const where = parameters.where.value;
  const text = `${total.toLocaleString("en")} ${total === 1 ? "entity" : "entities"}`;
  return (
    <>
      of <a href={linkTo(["entities"], where === "" ? {} : { where })}>{text}</a>
      {asked < total && `, of which the first ${asked} were compared: narrow the conditions for others`}
    </>
  );
}

/** What is shown where there is no plot. */
function Nothing({ value, settled }: { value: Read | undefined; settled: boolean }) {
  if (!settled || (value?.series.length ?? 0) > 0) return null;
  if (value === undefined) {
    return (
      <Empty title="Choose an entity">
        <p>
          Search for one above by name, set conditions that several meet, or enter the name of a metric. Their series
          are plotted here, and the URL keeps your choice. No entities yet?{" "}
          <a href={linkTo(["settings", "send"])}>Send data</a>
        </p>
      </Empty>
    );
  }
  if (value.total === 0) {
    return (
      <Empty title="No entity matches.">
        <p>Change the conditions. An entity appears with the first model, metric or event that names its dimensions.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No series has a value in this time.">
      <p>
        Metrics come from agents, OpenTelemetry or Prometheus' remote write. Choose a longer range, another metric, or
        other entities; or <a href={linkTo(["settings", "send"])}>send data</a>.
      </p>
    </Empty>
  );
}

/** What there is a plot for. */
function DivisionChoice({ choices }: { choices: readonly { value: string; text: string }[] }) {
  if (choices.length < 2) return null;
  return (
    <select
      aria-label="Plots"
      value={parameters.by.value}
      onChange={({ currentTarget }) => setParameters({ by: currentTarget.value })}
    >
      {choices.map(({ value, text }) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** Keeps the series of metrics by a name, or by how their names begin; the names of those in sight are offered. */
function MetricChoice({ names }: { names: readonly string[] }) {
  const id = useId();
  return (
    <>
      <input
        type="search"
        class={ui.short}
        aria-label="Metric"
        placeholder="Any metric"
        list={id}
        autocomplete="off"
        spellcheck={false}
        value={listOf("metric").join(", ")}
        onChange={({ currentTarget }) =>
          setParameters({ metric: listText([currentTarget.value.trim()]), only: undefined })
        }
      />
      <datalist id={id}>
        {[...new Set(names)].map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}

const aggregators = Object.entries(Aggregator)
  .filter(([, value]) => typeof value === "number" && value > 0)
  .map(([name]) => name)
  .filter((name) => Number.isNaN(Number(name)));

/** How the points of a bucket become a value, and how long a bucket is. */
function How({ period }: { period: string | undefined }) {
  return (
    <>
      <label class={ui.inline}>
        Aggregator
        <select
          value={parameters.aggregator.value}
          onChange={({ currentTarget }) => setParameters({ aggregator: currentTarget.value })}
        >
          {aggregators.map((name) => (
            <option key={name} value={name}>
              {name.toLowerCase().replace("_", " ")}
            </option>
          ))}
        </select>
      </label>
      <label class={ui.inline}>
        Period
        <input
          class={metricsLook.tiny}
          placeholder={period ?? "auto"}
          value={parameters.period.value}
          onChange={({ currentTarget }) => setParameters({ period: currentTarget.value })}
        />
      </label>
    </>
  );
}
