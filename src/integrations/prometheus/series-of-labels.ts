import { compareCodePoints } from "../../clause/code-point-order.ts";
import type { SeriesNames } from "../../metrics/series-names.ts";
import { entityOfLabels } from "../foreign-keys.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";

const metricLabel = "__name__";
/** The series that labels name, names and values in turn, in any order; a text: the rule that they break. */
export function seriesOfLabels(sent: readonly string[], entityLabels: ReadonlySet<string>): SeriesNames | string {
  const texts = sortedByName(sent);
  let metric = "";
  const entity: [string, string][] = [];
  const labels: [string, string][] = [];
  for (let i = 0; i < texts.length; i += 2) {
    const [name, value] = [texts[i] as string, texts[i + 1] as string];
    const before = texts[i - 2];
    if (name === before) return `the label ${JSON.stringify(name.slice(0, 100))} comes twice`;
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
    labels: labels.length === 0 ? undefined : Object.fromEntries(labels),
  };
}

/** Names and values in turn, in the order of the names; the same list where it has that order. */
function sortedByName(texts: readonly string[]): readonly string[] {
  for (let i = 2; i < texts.length; i += 2) {
    if (compareCodePoints(texts[i] as string, texts[i - 2] as string) >= 0) continue;
    const pairs: [name: string, value: string][] = [];
    for (let j = 0; j < texts.length; j += 2) pairs.push([texts[j] as string, texts[j + 1] as string]);
    return pairs.sort(([a], [b]) => compareCodePoints(a, b)).flat();
  }
  return texts;
}

const shownCharactersMax = 200;

/** A series as Prometheus writes it, cut. @param texts names and values in turn */
export function shownSeries(texts: Iterable<string>): string {
  let metric = "";
  let name: string | undefined;
  let characters = 0;
  const labels: string[] = [];
  for (const text of texts) {
    if (name === undefined) {
      if (characters >= shownCharactersMax) break;
      name = text;
      continue;
    }
    const value = text.slice(0, shownCharactersMax);
    if (name === metricLabel) metric = value;
    else labels.push(`${name.slice(0, shownCharactersMax)}=${JSON.stringify(value)}`);
    characters += name.length + value.length;
    name = undefined;
  }
  const shown = `${metric}{${labels.join(",")}}`;
  return (shown.length > shownCharactersMax ? `${shown.slice(0, shownCharactersMax)}…` : shown).toWellFormed();
}
