import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { readConfig } from "../../src/config/settings.ts";
import { entityOfLabels } from "../../src/integrations/foreign-keys.ts";
import { cut, cutBytes, oneLine } from "../../src/integrations/foreign-texts.ts";

const labels = Object.entries({
  alertname: "A",
  job: "node",
  instance: "web-1:9100",
  name: "n",
  cluster: "",
  zone: "a",
});

test("the labels that a setting names are the entity's dimensions; those that mean something here have another key", () => {
  const { entityLabels: usual } = readConfig({});
  expect(entityOfLabels(labels, usual)).toEqual({ job: "node", instance: "web-1:9100" });
  const { entityLabels } = readConfig({ BELFRY_ENTITY_LABELS: "cluster, name,zone" });
  expect(entityOfLabels(labels, entityLabels)).toEqual({ "attribute.name": "n", zone: "a" });
  expect(entityOfLabels([["alertname", "A"]], entityLabels)).toEqual({ source: "prometheus" });
  expect(() => readConfig({ BELFRY_ENTITY_LABELS: "job,,instance" })).toThrow("must be 1 to 64 names of labels");
});

test("texts are cut between characters, by characters and by bytes", () => {
  expect(cut("a😀b", 4)).toBe("a😀b");
  expect(cut("ab😀cd", 4)).toBe("ab…");
  expect(cutBytes("ééé", 6)).toBe("ééé");
  expect(cutBytes("éééé", 6)).toBe("é…");
  expect(oneLine("a\u0000b\nc\td")).toBe("a b c d");
});

test("what is cut off a long text does not keep all of it in memory", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: 50 }, (_, i) => cut(`${i}${Buffer.alloc(2 ** 20, "x")}`, 100));
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10 * 2 ** 20);
  expect(kept[49]).toHaveLength(100);
});
