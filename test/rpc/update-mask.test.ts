import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { MetricEntrySchema } from "#gen/belfry/dictionary/v1/metric_entry_pb.ts";
import { changedFields } from "../../src/rpc/update-mask.ts";

const metric = create(MetricEntrySchema, { name: "m", label: "l", tags: [], isRate: false, layer: "DEFAULT" });
const changed = (...paths: string[]) => {
  const mask = { $typeName: "google.protobuf.FieldMask", paths } as const;
  return [...changedFields(MetricEntrySchema, metric, mask)];
};

describe("an update changes", () => {
  test("what its mask names, set or not, by proto or JSON names", () => {
    expect(changed("tags", "is_rate", "scaleFactor")).toEqual(["tags", "isRate", "scaleFactor"]);
  });

  test("without a mask, and with an empty one, what is set, but for the name", () => {
    expect(changed()).toEqual(["label"]);
    expect([...changedFields(MetricEntrySchema, metric, undefined)]).toEqual(["label"]);
  });

  test("never what only the service sets", () => {
    expect(changed("layer", "default", "label")).toEqual(["label"]);
  });

  test.each([["nothing"], ["tags.0"], ["*"], [""], ["name"]])("and %j in a mask is code 3", (path) => {
    expect(() => changed("label", path)).toThrow(
      expect.objectContaining({ code: 3, rawMessage: expect.stringContaining("updateMask") }),
    );
  });
});
