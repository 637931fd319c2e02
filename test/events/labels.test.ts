import { describe, expect, test } from "vitest";
import { labelOf, labelView } from "../../src/events/labels.ts";

describe("an occurrence that came as no alert", () => {
  const event = { name: "Backup failed", dedupKey: "" };
  const view = (dimensions: Record<string, string>, metadata: Record<string, unknown>, type = "", severity = 4) =>
    labelView({ kind: "occurrence", event, occurrence: { type, severity, metadata }, dimensions });

  test("has its event's name, its severity, its type, dimensions and plain metadata as labels", () => {
    expect(
      view(
        { host: "db-1", "k8s.pod.uid": "7" },
        { job: "nightly", tries: 3, half: 0.5, large: 1e21, forced: false, list: ["a"], map: { a: 1 }, none: null },
        "backup",
      ),
    ).toEqual({
      alertname: "Backup failed",
      severity: "error",
      type: "backup",
      host: "db-1",
      "k8s.pod.uid": "7",
      job: "nightly",
      tries: "3",
      half: "0.5",
      large: "1e+21",
      forced: "false",
    });
  });

  test.each([
    [0, "default"],
    [1, "debug"],
    [2, "info"],
    [3, "warning"],
    [4, "error"],
    [5, "critical"],
  ])("severity %i is %s", (severity, name) => {
    expect(view({}, {}, "", severity).severity).toBe(name);
  });

  test("keeps the first of those whose names collide", () => {
    expect(
      view(
        { alertname: "a", severity: "s", type: "t", host: "dimension" },
        { alertname: "m", severity: "m", type: "m", host: "metadata" },
        "backup",
      ),
    ).toEqual({ alertname: "Backup failed", severity: "error", type: "backup", host: "dimension" });
  });

  test("has no label of an empty text, and any name may be one", () => {
    const dimensions = { host: "", ...JSON.parse('{"__proto__":"d"}') };
    const labels = view(dimensions, { host: "metadata", empty: "" });
    expect(Object.entries(labels)).toEqual([
      ["alertname", "Backup failed"],
      ["severity", "error"],
      ["__proto__", "d"],
      ["host", "metadata"],
    ]);
    expect([labelOf(labels, "__proto__"), labelOf(labels, "constructor"), labelOf(labels, "empty")]).toEqual([
      "d",
      "",
      "",
    ]);
  });

  test("is none because of its type alone", () => {
    expect(view({ host: "a" }, { "label.name": "n" }, "alert")).toMatchObject({ type: "alert", "label.name": "n" });
  });
});

test("a series has its trigger's name, its metric, its entity's dimensions and its labels", () => {
  const series = { kind: "series", triggerName: "Hot", metricName: "cpu.temperature" } as const;
  const dimensions = { host: "a", core: "all" };
  expect(labelView({ ...series, dimensions, labels: { core: "1", alertname: "x", __name__: "y", zone: "z" } })).toEqual(
    {
      alertname: "Hot",
      __name__: "cpu.temperature",
      host: "a",
      core: "all",
      zone: "z",
    },
  );
  expect(labelView({ ...series, dimensions: {}, labels: undefined })).toEqual({
    alertname: "Hot",
    __name__: "cpu.temperature",
  });
});

test("data that stay away have their trigger's name and their entity's dimensions", () => {
  expect(labelView({ kind: "stale", triggerName: "Silent", dimensions: { host: "a", alertname: "b" } })).toEqual({
    alertname: "Silent",
    host: "a",
  });
});
