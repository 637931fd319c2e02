import { fromBinary } from "@bufbuild/protobuf";
import { InstrumentationScopeSchema, type KeyValue } from "#gen/opentelemetry/proto/common/v1/common_pb.ts";
import { ResourceSchema } from "#gen/opentelemetry/proto/resource/v1/resource_pb.ts";
import type { CheckedSeries } from "../../receiver/put-points.ts";
import { countBinary } from "../../wire/count-binary.ts";
import type { CountLimits } from "../../wire/message-limits.ts";
import { cut, oneLine } from "../foreign-texts.ts";
import { recentMap } from "../recent-map.ts";
import { brokenCount, brokenLabel, brokenMetric } from "../series-rules.ts";
import { textOf } from "./attributes.ts";
import { type DataPoint, shapeOf, valueNamesOf } from "./data-points.ts";
import { decoded, latin1 } from "./fields.ts";
import { type MetricPart, pointSchemas } from "./metric-parts.ts";
import { entityOfResource, type ResourceEntity } from "./resource.ts";

/** A metric of a resource and scope that was named before. */
export interface KnownMetric {
  /** Its data points' series are remembered under it. */
  readonly id: number;
  readonly entity: ResourceEntity;
  readonly scope: string;
  readonly facts: { units: string; description: string };
}

/** The series that requests name, remembered by the bytes that name them: their labels are resolved once. */
export interface KnownSeries {
  metric(tenantId: string, part: MetricPart): KnownMetric;
  /** Those of the values that are made of a data point, in their order; a text: the rule that it breaks. @throws code 3 or 8 */
  seriesOf(metric: KnownMetric, part: MetricPart, point: DataPoint): readonly CheckedSeries[] | string;
  /** How often series were made of their labels. */
  resolved(): number;
}

const characters = { resources: 16 * 2 ** 20, metrics: 32 * 2 ** 20, series: 128 * 2 ** 20 };
const seriesCharacters = 1000;
const factCharactersMax = 1024;
const short = (text: string) => cut(oneLine(text), factCharactersMax).toWellFormed();

/** Begins without any. */
export function knownSeries(limits: CountLimits): KnownSeries {
  const resources = recentMap<{ id: number; entity: ResourceEntity }>(characters.resources, 4000);
  const metrics = recentMap<KnownMetric>(characters.metrics, 500);
  const series = recentMap<readonly CheckedSeries[]>(characters.series);
  let ids = 0;
  let resolved = 0;

  function resourceOf(bytes: Uint8Array) {
    const key = latin1(bytes);
    let found = resources.get(key);
    if (found === undefined) {
      countBinary(ResourceSchema, bytes, limits);
      const entity = entityOfResource(decoded(() => fromBinary(ResourceSchema, bytes)));
      found = { id: ids++, entity };
      resources.set(key, found);
    }
    return found;
  }

  return {
    resolved: () => resolved,
    metric(tenantId, { resource, scope, name, unit, description, kind }) {
      const { id, entity } = resourceOf(resource);
      const facts = { units: short(unit), description: short(description) };
      const texts = [name, facts.units, facts.description, latin1(scope)];
      const key = `${tenantId}${kind}${id}${texts.map((text) => ` ${text.length}:${text}`).join("")}`;
      let found = metrics.get(key);
      if (found === undefined) {
        countBinary(InstrumentationScopeSchema, scope, limits);
        const scopeName = decoded(() => fromBinary(InstrumentationScopeSchema, scope)).name;
        found = { id: ids++, entity, scope: scopeName, facts };
        metrics.set(key, found);
      }
      return found;
    },
    seriesOf(metric, part, point) {
      const key = [metric.id, shapeOf(point, part.kind), latin1(point.attributes)].join(" ");
      const known = series.get(key);
      if (known !== undefined) return known;
      const schema = pointSchemas[part.kind];
      countBinary(schema, point.attributes, limits);
      const { attributes } = decoded(() => fromBinary(schema, point.attributes));
      const labels = labelsOf(attributes, metric.scope);
      const made = valueNamesOf(point, part.kind).map(([suffix, label, value]): CheckedSeries | string => {
        const all = label === undefined ? labels : { ...labels, [label]: value as string };
        const name = part.name === "" ? "" : `${part.name}${suffix}`;
        return brokenNames(name, all) ?? seriesNamed(name, metric, all, counting.has(suffix));
      });
      const rule = made.find((each) => typeof each === "string");
      if (rule !== undefined) return rule as string;
      resolved += made.length;
      series.set(key, made as CheckedSeries[], made.length * seriesCharacters);
      return made as CheckedSeries[];
    },
  };
}

/** Values that count something else than the metric's unit. */
const counting: ReadonlySet<string> = new Set([".count", ".bucket"]);

function seriesNamed(
  metric: string,
  { entity, facts }: KnownMetric,
  labels: Record<string, string>,
  counts: boolean,
): CheckedSeries {
  const { dimensions } = entity;
  const units = counts ? "" : facts.units;
  const { description } = facts;
  return { metric, dimensions, units, description, labels: Object.keys(labels).length === 0 ? undefined : labels };
}

/** The labels of a point: its attributes, and the name of the library that made it. */
function labelsOf(attributes: readonly KeyValue[], scope: string): Record<string, string> {
  const labels = new Map<string, string>();
  if (scope !== "") labels.set("otel.scope.name", scope);
  for (const { key, value } of attributes) {
    const text = textOf(value);
    if (key !== "" && text !== "") labels.set(key, text);
  }
  return Object.fromEntries(labels);
}

/** What is wrong with a name and labels; undefined: nothing. */
function brokenNames(metric: string, labels: Record<string, string>): string | undefined {
  const names = Object.keys(labels);
  const rule = brokenMetric(metric) ?? brokenCount(names.length);
  if (rule !== undefined) return rule;
  for (const name of names) {
    const broken = brokenLabel(name, labels[name] as string);
    if (broken !== undefined) return broken;
  }
  return undefined;
}
