import { fromJsonString } from "@bufbuild/protobuf";
import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { describe, expect, test } from "vitest";
import { EntityFieldSchema } from "#gen/belfry/dictionary/v1/entity_field_pb.ts";
import { EventFieldSchema } from "#gen/belfry/dictionary/v1/event_field_pb.ts";
import { MetricEntrySchema } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import entityFields from "../../src/dictionary/defaults/entity-fields.json" with { type: "json" };
import eventFields from "../../src/dictionary/defaults/event-fields.json" with { type: "json" };
import metrics from "../../src/dictionary/defaults/metrics.json" with { type: "json" };
import { validateItem } from "../../src/rpc/validate.ts";

const layers = [
  { title: "metrics", entries: metrics, schema: MetricEntrySchema, atLeast: 150 },
  { title: "entity fields", entries: entityFields, schema: EntityFieldSchema, atLeast: 40 },
  { title: "event fields", entries: eventFields, schema: EventFieldSchema, atLeast: 15 },
];

/** Names that OpenTelemetry publishes: METRIC_… of metrics, ATTR_… of attributes. */
const published = (prefix: string): Set<unknown> =>
  new Set(Object.entries(conventions).flatMap(([key, name]) => (key.startsWith(prefix) ? [name] : [])));

const openTelemetry = "OpenTelemetry";

describe.each(layers)("the default layer of $title", ({ entries, schema, atLeast }) => {
  test(`holds at least ${atLeast} entries, by name, none twice`, () => {
    const names = entries.map(({ name }) => name);
    expect(names.length).toBeGreaterThanOrEqual(atLeast);
    expect(names).toEqual([...new Set(names)].sort());
  });

  test("follows the rules of the API, and leaves nothing out that a reader needs", () => {
    for (const entry of entries) {
      expect(validateItem(schema, fromJsonString(schema, JSON.stringify(entry)), entry.name)).toEqual([]);
      for (const text of [entry.label, entry.description]) expect(text, entry.name).toMatch(/^\S.*\S$/);
      expect(entry.description, entry.name).toMatch(/[.]$/);
      expect(["Belfry", openTelemetry]).toContain(entry.tags[0]);
    }
  });
});

test.each([
  { title: "metric", entries: metrics, known: published("METRIC_") },
  { title: "entity field", entries: entityFields, known: published("ATTR_") },
])("each $title under OpenTelemetry's tag has a name that OpenTelemetry publishes", ({ entries, known }) => {
  const theirs = entries.filter(({ tags }) => tags[0] === openTelemetry).map(({ name }) => name);
  expect(theirs.filter((name) => !known.has(name))).toEqual([]);
  expect(theirs.length).toBeGreaterThan(40);
});

/** UCUM, as the semantic conventions use it: seconds, bytes, hertz, ratios, and counted things in braces. */
const unit = /^(s|By|By\/s|Hz|1|\{[a-z_]+\})$/;

test("each metric has a unit, and its other members fit it", () => {
  for (const entry of metrics) {
    const metric = fromJsonString(MetricEntrySchema, JSON.stringify(entry));
    const { name, units, minimum, maximum, scaleFactor, scaleFactorUnits } = metric;
    expect(units, name).toMatch(unit);
    if (name.endsWith("utilization")) expect(units, name).toBe("1");
    if (/\.(duration|uptime|time|io_time|operation_time|\w+_time)$/.test(name)) expect(units, name).toBe("s");
    if (maximum !== "") expect(Number(minimum), name).toBeLessThan(Number(maximum));
    expect(scaleFactor === "", name).toBe(scaleFactorUnits === "");
    if (scaleFactorUnits !== "") expect(scaleFactorUnits.split("->")[0], name).toBe(units);
  }
});

test("what only ever grows is shown as a rate, what may fall is not", () => {
  const rates = new Set<string>(metrics.filter((entry) => "isRate" in entry && entry.isRate).map(({ name }) => name));
  for (const name of ["system.cpu.time", "system.disk.io", "k8s.pod.network.errors", "process.paging.faults"]) {
    expect(rates).toContain(name);
  }
  const falling = /usage|limit|available|utilization|capacity|count$|uptime|duration|phase|pod\.|memory/;
  const grows = /packet\.count$|k8s\.(pod|node)\.(cpu\.time|network\.|paging\.)/;
  expect([...rates].filter((name) => falling.test(name) && !grows.test(name))).toEqual([]);
});
