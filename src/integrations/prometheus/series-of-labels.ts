import { compareCodePoints } from "../../clause/code-point-order.ts";
import { noNotes } from "../../metrics/notes.ts";
import type { CheckedSeries } from "../../receiver/put-points.ts";
import { entityOfLabels } from "../foreign-keys.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";

const metricLabel = "__name__";
/** The series that labels name, names and values in turn; a text: the rule that they break. */
export function seriesOfLabels(texts: readonly string[], entityLabels: ReadonlySet<string>): CheckedSeries | string {
  let metric = "";
  const entity: [string, string][] = [];
  const labels: [string, string][] = [];
  for (let i = 0; i < texts.length; i += 2) {
    const [name, value] = [texts[i] as string, texts[i + 1] as string];
    const before = texts[i - 2];
    const order = before === undefined ? 1 : compareCodePoints(name, before);
    if (order === 0) return `the label ${JSON.stringify(name.slice(0, 100))} comes twice`;
    if (order < 0) return "labels must be sorted by their names";
    const rule = brokenLabel(name, value);
    if (rule !== undefined) return rule;
    if (name === metricLabel) metric = value;
    else if (value !== "") (entityLabels.has(name) ? entity : labels).push([name, value]);
  }
  const rule =
    metric === "" ? `there must be a label ${metricLabel}` : (brokenMetric(metric) ?? brokenCount(labels.length));
  if (rule !== undefined) return rule;
  return {
    metric,
    dimensions: entityOfLabels(entity, entityLabels),
    ...noNotes,
    labels: labels.length === 0 ? undefined : Object.fromEntries(labels),
  };
}

const shownCharactersMax = 200;

/** A series as Prometheus writes it, cut. */
export function shownSeries(texts: readonly string[]): string {
  let metric = "";
  const labels: string[] = [];
  for (let i = 0; i < texts.length && labels.join().length < shownCharactersMax; i += 2) {
    const value = (texts[i + 1] as string).slice(0, shownCharactersMax);
    if (texts[i] === metricLabel) metric = value;
    else labels.push(`${(texts[i] as string).slice(0, shownCharactersMax)}=${JSON.stringify(value)}`);
  }
  const shown = `${metric}{${labels.join(",")}}`;
  return (shown.length > shownCharactersMax ? `${shown.slice(0, shownCharactersMax)}…` : shown).toWellFormed();
}
