import { expect, test } from "vitest";
import { noNotes } from "../../src/metrics/notes.ts";
import { keptKey, kinds } from "../../src/metrics/series-key.ts";
import { seriesMemory } from "../../src/metrics/series-memory.ts";
import { nameSetter } from "../../src/metrics/series-names.ts";

const names = { metric: "orders", dimensions: { host: "a" } };
const said = (description: string) => ({ ...noNotes, description });

test("a series that was said to be something else meanwhile is stored again when its first description comes back", () => {
  const memory = seriesMemory().of("tenant");
  const setNames = nameSetter();
  function isKnown(description: string) {
    setNames(names, said(description));
    return memory.find(kinds.names, 0);
  }
  for (const description of ["first", "second", "third"]) {
    expect(isKnown(description)).toBe(false);
    const series = { number: 1, entityId: Buffer.from("host"), metric: "orders", ...said(description) };
    memory.learn(keptKey(kinds.names), series, said(description), 0);
    expect(isKnown(description)).toBe(true);
  }
  expect(isKnown("first")).toBe(false);
});
