import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { containsText, textAutomaton } from "../../src/clause/text-automaton.ts";
import { factor, seed } from "../support/seed.ts";

// Few letters, so that needles overlap and hold each other; units beyond Latin-1, and halves of pairs.
const text = (maxLength: number) =>
  fc.array(fc.constantFrom("a", "b", "ab", "é", "ж", "😀", "\ud83d"), { maxLength }).map((parts) => parts.join(""));

describe(`for generated texts (seed ${seed})`, () => {
  test("it finds exactly the needles that the text includes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(text(8), { maxLength: 30 }), fc.array(text(40)), async (needles, texts) => {
        const automaton = await textAutomaton(needles);
        const wanted = needles.filter((needle) => needle !== "");
        expect(wanted.filter((needle) => !automaton.has(needle))).toEqual([]);
        for (const each of texts) {
          expect([...automaton.search(each)].sort()).toEqual(wanted.filter((needle) => each.includes(needle)).sort());
        }
      }),
      { numRuns: 300 * factor, seed },
    );
  });

  test("needles that have no room are left out, and it says which", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(text(8), { maxLength: 30 }),
        text(40),
        fc.integer({ min: 0, max: 40 }),
        async (needles, each, nodesMax) => {
          const automaton = await textAutomaton(needles, { nodesMax });
          expect(automaton.nodes).toBeLessThanOrEqual(Math.max(1, nodesMax));
          const held = needles.filter((needle) => automaton.has(needle));
          expect(held).toHaveLength(automaton.needles);
          expect([...automaton.search(each)].sort()).toEqual(held.filter((needle) => each.includes(needle)).sort());
        },
      ),
      { numRuns: 300 * factor, seed },
    );
  });

  test("one long needle is found as includes finds it", () => {
    const long = fc
      .tuple(fc.nat(600), fc.nat(600), fc.boolean())
      .map(([a, b, x]) => `${"a".repeat(a)}${x ? "b" : ""}${"a".repeat(b)}`);
    const many = fc.array(long, { minLength: 8, maxLength: 12 }).map((parts) => parts.join("c"));
    fc.assert(
      fc.property(many, long, (each, needle) => containsText(each, needle) === each.includes(needle)),
      { numRuns: 500 * factor, seed },
    );
  });
});

test("a text in which every needle ends at every place takes a time that grows with the text alone", async () => {
  const needles = Array.from({ length: 2000 }, (_, i) => "a".repeat(i + 1));
  const automaton = await textAutomaton(needles);
  const cpu = (size: number) => {
    const { user } = process.cpuUsage();
    expect(automaton.search("a".repeat(size)).size).toBe(2000);
    return process.cpuUsage().user - user;
  };
  cpu(100_000);
  // All at all places would be 2,000 million steps.
  expect(cpu(1_000_000)).toBeLessThan(2_000_000);
});

test("building it lets others take their turns", async () => {
  let turns = 0;
  const pace = () => {
    turns += 1;
    return undefined;
  };
  await textAutomaton(
    Array.from({ length: 5000 }, (_, i) => `needle ${i * 7919}`),
    { pace },
  );
  expect(turns).toBeGreaterThan(20);
});
