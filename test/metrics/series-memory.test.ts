import { expect, test } from "vitest";
import { noNotes } from "../../src/metrics/notes.ts";
import { dimensionsKey, seriesMemory } from "../../src/metrics/series-memory.ts";

const entityId = Buffer.from("host");
const entity = { id: entityId, nextMs: 0 };

/** A memory for some series, whose entities are named by numbers. */
function world(seriesMax: number) {
  const memory = seriesMemory(seriesMax);
  const find = memory.finder("tenant", 0);
  return {
    find: (host: string, labels: Record<string, string>) => find("up", { host }, labels),
    remember(host: string, labels: Record<string, string>, number = 1) {
      const series = { number, entityId, metric: "up", labels, ...noNotes, confirmedMs: 0, entity };
      memory.remember("tenant", dimensionsKey({ host }), 1, series);
    },
  };
}

test("series with long labels are distinguished by all of their text", () => {
  const { find, remember } = world(1000);
  const long = "v".repeat(5000);
  remember("a", { k: `${long}1` }, 1);
  remember("a", { k: `${long}2` }, 2);
  expect([find("a", { k: `${long}1` })?.number, find("a", { k: `${long}2` })?.number]).toEqual([1, 2]);
  expect(find("a", { k: `${long}3` })).toBeUndefined();
});

test.each([
  ["20 with little text leave it", "v", 1],
  ["20 with much text take its room", "v".repeat(10_000), undefined],
])("a series that is not used: %s", (_, text, number) => {
  const { find, remember } = world(100);
  remember("first", { k: "v" });
  for (let i = 0; i < 20; i++) remember(`${i}`, { k: text });
  expect(find("first", { k: "v" })?.number).toBe(number);
  expect(find("19", { k: text })?.number).toBe(1);
});
