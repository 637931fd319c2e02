import fc from "fast-check";
import { expect, test } from "vitest";
import { allMatch, labelMatcher, type MatcherParts } from "../../../src/clause/label-matcher.ts";
import { unpaced } from "../../../src/event-loop.ts";
import { labelOf } from "../../../src/events/labels.ts";
import { loadedSilence, silencesInForce } from "../../../src/notifications/silences/silences-in-force.ts";
import { cases } from "../../support/cases.ts";

const values = ["", "a", "b", "web-1", "a|b", "A"];
const parts: fc.Arbitrary<MatcherParts> = fc.record({
  name: fc.constantFrom("x", "y"),
  operator: fc.constantFrom("=", "!=", "=~", "!~"),
  value: fc.constantFrom(...values, "^(?:a|web-1)$", "a|", "web-.", "(?i)a", ".*"),
});
const labels = fc.dictionary(fc.constantFrom("x", "y"), fc.constantFrom(...values.slice(1)));

test("what expressions were compared with is remembered within a bound of characters, which the silences weigh", async () => {
  const row = { id: "a", startsMs: 0, endsMs: null, ruleNames: [], destinationNames: [] };
  const loaded = loadedSilence({ ...row, matchers: [{ name: "x", operator: "=~", value: "web-." }] });
  const [matcher] = loaded.matchers;
  let compared = 0;
  const matches = (value: string) => {
    compared += 1;
    return matcher?.matches(value, unpaced) ?? false;
  };
  const silences = silencesInForce(new Map([["a", { ...loaded, matchers: [{ ...matcher, matches } as never] }]]));
  const ask = (i: number) => silences.matching({ x: `${i}`.padStart(250, "v") } as never, 0, () => undefined);
  await ask(0);
  await ask(0);
  expect(compared).toBe(1);
  for (let i = 1; i < 2000; i += 1) await ask(i);
  await ask(0);
  expect(compared).toBe(2001);
  expect(silences.weight).toBeGreaterThan(200_000);
});

test("silences that are looked up are those whose matchers all hold, while they are active", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(parts, { minLength: 1, maxLength: 3 }), { maxLength: 8 }),
      fc.array(fc.tuple(labels, fc.constantFrom(10, 30)), { minLength: 1, maxLength: 4 }),
      async (all, asked) => {
        const rows = all.map((matchers, i) => ({
          id: String(i),
          matchers,
          startsMs: i % 3 === 0 ? 20 : 0,
          endsMs: i % 4 === 0 ? 5 : null,
          ruleNames: [],
          destinationNames: [],
        }));
        const silences = silencesInForce(new Map(rows.map((row) => [row.id, loadedSilence(row)])));
        // Later views meet what was remembered of earlier ones.
        for (const [view, nowMs] of asked) {
          const found = await silences.matching(view, nowMs, () => undefined);
          const expected = rows.filter(
            ({ matchers, startsMs, endsMs }) =>
              startsMs <= nowMs &&
              endsMs === null &&
              allMatch(matchers.map(labelMatcher), (name) => labelOf(view, name), unpaced),
          );
          expect(found.map(({ id }) => id).sort()).toEqual(expected.map(({ id }) => id).sort());
        }
      },
    ),
    { numRuns: cases(2000) },
  );
});
