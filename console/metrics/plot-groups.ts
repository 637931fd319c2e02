import type { EntitySeries } from "./reading.ts";

/** A series in a plot, by what sets it apart there. */
export interface Line extends EntitySeries {
  readonly short: string;
}

/** The series of one plot: of one metric, the greatest last value first. */
export interface PlotGroup {
  readonly key: string;
  readonly title: string;
  /** What else all of its series share. */
  readonly shared: string;
  readonly units: string;
  readonly lines: readonly Line[];
}

const ofLabel = "label:";

/** What there may be a plot for: each metric, or each entity or value of a label of each metric. */
export function divisions(series: readonly EntitySeries[]): { value: string; text: string }[] {
  const keys = new Set(series.flatMap(({ labels }) => Object.keys(labels)));
  const entities = new Set(series.map(({ entity }) => entity));
  return [
    { value: "", text: "A plot for each metric" },
    ...(entities.size > 1 ? [{ value: "entity", text: "A plot for each entity" }] : []),
    ...[...keys].sort().map((key) => ({ value: ofLabel + key, text: `A plot for each ${key}` })),
  ];
}

/** Divides series into plots; metrics in the order in which they came, of a metric the plot with the greatest last value first. */
export function plotGroups(series: readonly EntitySeries[], by: string): PlotGroup[] {
  const label = by.startsWith(ofLabel) ? by.slice(ofLabel.length) : undefined;
  const partOf = ({ entity, labels }: EntitySeries) =>
    label !== undefined ? (labels[label] ?? `no ${label}`) : by === "entity" ? entity : "";
  const metrics = Map.groupBy(series, ({ metric, units }) => JSON.stringify([metric, units]));
  return [...metrics].flatMap(([metric, all]) =>
    [...Map.groupBy(all, partOf)]
      .map(([part, own]) => groupOf(`${metric} ${part}`, part, own, label))
      .sort((a, b) => greatest(b) - greatest(a)),
  );
}

const lastOf = ({ values }: EntitySeries) => values.at(-1) ?? Number.NEGATIVE_INFINITY;
const greatest = ({ lines: [first] }: PlotGroup) => (first ? lastOf(first) : Number.NEGATIVE_INFINITY);

function groupOf(key: string, part: string, series: readonly EntitySeries[], label: string | undefined): PlotGroup {
  const keys = [...new Set(series.flatMap(({ labels }) => Object.keys(labels)))]
    .filter((each) => each !== label)
    .sort();
  const values = (each: string) => new Set(series.map(({ labels }) => labels[each]));
  const apart = keys.filter((each) => values(each).size > 1);
  const sameLabels = keys.filter((each) => values(each).size === 1);
  const entities = new Set(series.map(({ entity }) => entity));
  const [first] = series;
  const title = first?.title ?? "";
  const shared = [
    part === "" ? "" : title,
    entities.size === 1 && first?.entity !== part ? (first?.entity ?? "") : "",
    ...sameLabels.map((each) => `${each}=${first?.labels[each]}`),
  ];
  const shortOf = ({ entity, labels }: EntitySeries) =>
    [entities.size > 1 ? entity : "", ...apart.map((each) => (each in labels ? `${each}=${labels[each]}` : ""))]
      .filter((text) => text !== "")
      .join(" · ");
  return {
    key,
    title: part === "" ? title : part,
    shared: shared.filter((text) => text !== "").join(" · "),
    units: first?.units ?? "",
    lines: series.map((each) => ({ ...each, short: shortOf(each) || each.name })).sort((a, b) => lastOf(b) - lastOf(a)),
  };
}
