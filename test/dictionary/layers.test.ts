import fc from "fast-check";
import { expect, test } from "vitest";
import { defaultLayer, mergeLayers } from "../../src/dictionary/layers.ts";

interface Told {
  name: string;
  layer: string;
  overridden?: string | undefined;
}

const layering = (defaults: readonly string[]) => ({
  shipped: defaultLayer<Told>(
    defaults.map((name) => ({ name })),
    (name, _said, layer) => ({ name, layer }),
  ),
  own: ({ name }: { name: string }, overridden: Told | undefined): Told => ({
    name,
    layer: "TENANT",
    overridden: overridden?.layer,
  }),
});

const byCodePoint = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

const ascii = fc.string({ unit: fc.constantFrom(..."!.AZaz~"), minLength: 1, maxLength: 4 });
const anything = fc.string({ unit: fc.constantFrom(..."!.AZaz~ é\uffef\u{1f600}"), minLength: 1, maxLength: 4 });
const sets = {
  defaults: fc.uniqueArray(ascii, { maxLength: 20 }),
  own: fc.uniqueArray(anything, { maxLength: 20 }),
};

test("the layers together hold each name once, in the order of code points, the tenant's own first", () => {
  fc.assert(
    fc.property(fc.record(sets), ({ defaults, own }) => {
      const rows = [...own].sort(byCodePoint).map((name) => ({ name, entry: {} }));
      const merged = mergeLayers(layering(defaults), rows);
      expect(merged.map(({ name }) => name)).toEqual([...new Set([...defaults, ...own])].sort(byCodePoint));
      for (const { name, layer, overridden } of merged) {
        expect(layer).toBe(own.includes(name) ? "TENANT" : "DEFAULT");
        if (layer === "TENANT") expect(overridden).toBe(defaults.includes(name) ? "DEFAULT" : undefined);
      }
    }),
  );
});

test("pages of any size, each of rows that the database cut, make up the whole", () => {
  fc.assert(
    fc.property(fc.record({ ...sets, size: fc.integer({ min: 1, max: 8 }) }), ({ defaults, own, size }) => {
      const rows = [...own].sort(byCodePoint).map((name) => ({ name, entry: {} }));
      const found: Told[] = [];
      for (let after = ""; ; after = found.at(-1)?.name ?? "") {
        const cut = rows.filter(({ name }) => byCodePoint(name, after) > 0).slice(0, size + 1);
        const page = mergeLayers(layering(defaults), cut, after, size + 1);
        found.push(...page.slice(0, size));
        if (page.length <= size) break;
      }
      expect(found).toEqual(mergeLayers(layering(defaults), rows));
    }),
  );
});

test("a default name that is not ASCII, or stands twice, is found at the start", () => {
  expect(() => layering(["é"])).toThrow("é");
  expect(() => layering(["a", "b", "a"])).toThrow("a");
});
