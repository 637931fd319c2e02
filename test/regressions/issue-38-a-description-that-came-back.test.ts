import { expect, test } from "vitest";
import { agrees, noNotes } from "../../src/metrics/notes.ts";
import { type KnownSeries, seriesMemory } from "../../src/metrics/series-memory.ts";

const entityId = Buffer.from("host");
const said = (description: string): KnownSeries => ({
  number: 1,
  entityId,
  metric: "orders",
  ...noNotes,
  description,
  confirmedMs: 0,
  entity: { id: entityId, nextMs: 0 },
});

test("a reader that holds a series sees what others said of it, so that a description that comes back is stored again", () => {
  const memory = seriesMemory();
  const remember = (series: KnownSeries) => memory.remember("tenant", "\0host\0a", 1, series);
  remember(said("first"));
  const held = memory.finder("tenant", 0)("orders", { host: "a" }, {});
  expect(held).toMatchObject({ description: "first" });
  for (const description of ["second", "third"]) {
    remember(said(description));
    expect(held).toMatchObject({ description });
  }
  expect(agrees(held as KnownSeries, said("first"))).toBe(false);
});
