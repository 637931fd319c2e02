import { create, fromJsonString } from "@bufbuild/protobuf";
import { ClauseSchema, Operation } from "#gen/belfry/clause/v1/clause_pb.ts";
import { Aggregator } from "#gen/belfry/metrics/v1/metric_query_service_pb.ts";
import { type MetricThresholdSource, MetricThresholdSourceSchema } from "#gen/belfry/notifications/v1/trigger_pb.ts";
import { type PlotSeries, periodOf, readSeries } from "../../data/series.ts";
import { allOf } from "../../events/query.ts";
import { endsOf } from "../../ui/time-range.tsx";
import { clauseText, findEntities } from "./names.ts";

/** How many entities are asked, how many at once, and how many series of each. */
const entitiesMax = 20;
const atOnce = 5;
const seriesMax = 20;

/** Values of the metric of a trigger, against its bounds. */
export interface Measured {
  readonly start: number;
  readonly end: number;
  /** Those that were outside come first. */
  readonly series: readonly PlotSeries[];
  readonly min: number | undefined;
  readonly max: number | undefined;
  /** How many series there are. */
  readonly count: number;
  /** How many of them were outside of the bounds; undefined: there are none. */
  readonly outside: number | undefined;
  readonly asked: number;
  readonly total: number;
}

/**
 * Reads the highest and lowest values of each period, so that none that was out of bounds is smoothed away. Values are as agents send
 * them: bounds hold for these.
 */
export async function readAgainstBounds(text: string, range: string, signal: AbortSignal): Promise<Measured> {
  const source = fromJsonString(MetricThresholdSourceSchema, text);
  const { metricName, min, max, metricClause, entityQuery } = source;
  const { start, end } = endsOf(range) ?? { start: Date.now() - 86_400_000, end: Date.now() };
  const found = await findEntities(clauseText(entityQuery?.clause), entitiesMax, signal);
  const named = create(ClauseSchema, {
    filter: {
      field: "name",
      operation: Operation.OP_EQUALS,
      value: { kind: { case: "stringValue", value: metricName } },
    },
  });
  const how = {
    start,
    end,
    period: periodOf(start, end),
    pageSize: seriesMax,
    asSent: true,
    metricClause: metricClause === undefined ? named : allOf([named, metricClause]),
  };
  const series: (PlotSeries & { id: string; outside: boolean })[] = [];
  const aggregators = aggregatorsOf(source);
  for (let from = 0; from < found.entities.length; from += atOnce) {
    const part = found.entities.slice(from, from + atOnce);
    const answers = await Promise.all(
      part.flatMap(({ id, name }) =>
        aggregators.map(async (aggregator) => ({
          name,
          word: aggregators.length > 1 ? (aggregator === Aggregator.MAX ? ", highest" : ", lowest") : "",
          read: await readSeries({ ...how, entityId: id, aggregator }, signal),
        })),
      ),
    );
    for (const { name, word, read } of answers) {
      series.push(
        ...read.series
          .filter(({ values }) => values.length > 0)
          .map((each) => ({
            ...each,
            id: each.key,
            key: `${each.key}${word}`,
            name: `${name} · ${each.name}${word}`,
            outside: isOutside(each, min, max),
          })),
      );
    }
  }
  const countOf = (of: typeof series) => new Set(of.map(({ id }) => id)).size;
  return {
    start,
    end,
    count: countOf(series),
    asked: found.entities.length,
    total: found.total,
    series: series.sort((a, b) => Number(b.outside) - Number(a.outside)),
    min,
    max,
    outside: min === undefined && max === undefined ? undefined : countOf(series.filter(({ outside }) => outside)),
  };
}

/** Which values of a period count against the bounds that there are. */
function aggregatorsOf({ min, max }: MetricThresholdSource): Aggregator[] {
  if (min === undefined && max === undefined) return [Aggregator.MEAN];
  return [...(max === undefined ? [] : [Aggregator.MAX]), ...(min === undefined ? [] : [Aggregator.MIN])];
}

const isOutside = ({ values }: PlotSeries, min = -Infinity, max = Infinity) =>
  values.some((value) => value < min || value > max);
